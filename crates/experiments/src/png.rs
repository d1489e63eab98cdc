//! Pictures of SVG documents, with a font that is shipped: the machine may have none.

use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use resvg::{
    tiny_skia::{Pixmap, Transform},
    usvg::{Options, Tree, fontdb::Database},
};

/// Pixels for each unit of the document: sharp on screens of high density.
const SCALE: f32 = 1.5;

fn fonts() -> Arc<Database> {
    static FONTS: OnceLock<Arc<Database>> = OnceLock::new();
    FONTS
        .get_or_init(|| {
            let mut fonts = Database::new();
            fonts.load_font_data(dejavu::sans::regular().to_vec());
            fonts.load_font_data(dejavu::sans::bold().to_vec());
            fonts.set_sans_serif_family("DejaVu Sans");
            Arc::new(fonts)
        })
        .clone()
}

/// The document as PNG.
///
/// # Errors
/// When it is not an SVG document, or too large.
pub fn render(svg: &str) -> Result<Vec<u8>> {
    let options = Options { fontdb: fonts(), font_family: "DejaVu Sans".into(), ..Options::default() };
    let tree = Tree::from_str(svg, &options).context("reading a figure")?;
    let size = tree.size().to_int_size().scale_by(SCALE).context("a figure without area")?;
    let mut picture = Pixmap::new(size.width(), size.height()).context("a figure too large for memory")?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut picture.as_mut());
    picture.encode_png().context("encoding a figure")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A document with one word and nothing else has dark pixels only if the word was drawn.
    #[test]
    fn text_is_drawn_without_fonts_of_the_system() {
        let page = |text: &str| {
            format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 60 20\" width=\"60\" height=\"20\" \
                 font-family=\"DejaVu Sans, Helvetica, sans-serif\"><rect width=\"60\" height=\"20\" fill=\"#fff\"/>\
                 <text x=\"2\" y=\"15\" font-size=\"12\">{text}</text></svg>"
            )
        };
        let dark = |text: &str| {
            let picture = Pixmap::decode_png(&render(&page(text)).unwrap()).unwrap();
            assert_eq!((picture.width(), picture.height()), (90, 30));
            picture.pixels().iter().filter(|p| p.red() < 128).count()
        };
        assert_eq!(dark(""), 0);
        assert!(dark("|Δ log Z|") > 30);
        assert!(render("no figure").is_err());
    }
}

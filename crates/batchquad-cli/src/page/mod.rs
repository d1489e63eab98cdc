//! Pages: self-contained HTML files that load nothing from any network.
//!
//! Everything that comes from a store is escaped by the template engine or by the charts. On top of that a Content-Security-Policy
//! allows the page's own style sheet and script, by their hashes, and nothing else.

mod compare;
mod convergence;
mod diagnostics;
mod failures;
mod live;
mod posterior;
mod repeat;
mod report;
mod save;
mod table;
mod timeline;
mod words;

pub use compare::{Compared, compare};
pub use live::{Live, live};
pub use report::report;
pub use save::{Named, save};

use anyhow::Result;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use batchquad_plot::{Figure, STYLESHEET};
use minijinja::{Environment, UndefinedBehavior, Value, context, value::Serde};
use serde::Serialize;
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
const LIVE: &str = include_str!("live.js");
const TEMPLATES: [(&str, &str); 6] = [
    ("base.html", include_str!("base.html")),
    ("figure.html", include_str!("figure.html")),
    ("report.html", include_str!("report.html")),
    ("compare.html", include_str!("compare.html")),
    ("live.html", include_str!("live.html")),
    ("live-body.html", include_str!("live-body.html")),
];

/// A figure with what is said about it.
#[derive(Debug, Serialize)]
struct Drawn {
    svg: Value,
    /// The same for a screen as narrow as that of a telephone.
    narrow: Option<Value>,
    caption: String,
}

/// The width of a figure on a narrow screen.
const NARROW: f64 = 360.0;

impl Drawn {
    fn new(id: &str, figure: &Figure, caption: impl Into<String>) -> Self {
        Self { svg: Value::from_safe_string(figure.inline(id)), narrow: None, caption: caption.into() }
    }

    fn with_narrow(mut self, id: &str, figure: &Figure) -> Self {
        self.narrow = Some(Value::from_safe_string(figure.inline(&format!("{id}-narrow"))));
        self
    }
}

/// The text of a page.
fn render(template: &str, page: &impl Serialize) -> Result<String> {
    render_with(template, page, SCRIPT, "")
}

/// The text of a page that asks its server for the current state.
fn render_live(page: &impl Serialize) -> Result<String> {
    render_with("live.html", page, LIVE, "; connect-src 'self'")
}

fn render_with(template: &str, page: &impl Serialize, script: &str, allowed: &str) -> Result<String> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    for (name, source) in TEMPLATES {
        environment.add_template(name, source)?;
    }
    let style = format!("{STYLESHEET}{STYLE}");
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; img-src data:; base-uri 'none'; form-action 'none'{allowed}",
        hash(&style),
        hash(script)
    );
    Ok(environment.get_template(template)?.render(context! {
        page => Value::from(Serde(page)),
        style => Value::from_safe_string(style),
        script => Value::from_safe_string(script.to_owned()),
        policy => Value::from_safe_string(policy),
        version => env!("CARGO_PKG_VERSION"),
    })?)
}

/// The name of a text in a Content-Security-Policy.
fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text.as_bytes())))
}

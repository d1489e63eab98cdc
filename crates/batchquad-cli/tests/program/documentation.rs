//! What `docs/problem-file.md` says is what the program accepts.

use std::path::Path;

use crate::common::{PARAMETERS, Place};

fn text() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/problem-file.md")).unwrap()
}

#[test]
fn every_example_is_accepted() {
    let place = Place::bump("");
    let text = text();
    let blocks: Vec<&str> = text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 6, "{}", blocks.len());
    for (i, block) in blocks.iter().enumerate() {
        let parameters = if block.contains("[[parameter]]") { "" } else { PARAMETERS };
        place.write("block.toml", &format!("{parameters}\n{block}"));
        place.run(&["new", "block.toml", "--store", &format!("store{i}")], 0);
    }
}

/// The words that the program says it knows, asked by a word that it cannot know.
fn known(place: &Place, problem: &str) -> Vec<String> {
    place.write("block.toml", problem);
    let refused = place.run(&["new", "block.toml", "--store", "never"], 2).stderr;
    let list = refused.split("expected one of ").nth(1).unwrap_or_else(|| panic!("{refused}"));
    list.trim().split(", ").map(str::to_owned).collect()
}

#[test]
fn every_key_and_choice_is_described() {
    let place = Place::bump("");
    let text = text();
    let mut words = Vec::new();
    for (section, at_least) in [("[likelihood]\ncommand = [\"a\"]", 11), ("[run]", 19)] {
        let found = known(&place, &format!("{PARAMETERS}\n{section}\nqqqq = 1\n"));
        assert!(found.len() >= at_least, "{found:?}");
        words.extend(found.into_iter().map(|key| format!("| `{key}` |")));
    }
    let families = known(&place, "[[parameter]]\nname = \"x\"\nprior = { qqqq = { a = 1 } }\n");
    assert!(families.len() >= 14, "{families:?}");
    words.extend(families.into_iter().map(|family| format!("| `{family}` |")));
    for key in ["surrogate", "batch_rule", "acquisition", "lie", "initial_design", "kernel", "schedule"] {
        let choices = known(&place, &format!("{PARAMETERS}\n[run]\n{key} = \"qqqq\"\n"));
        words.extend(choices.into_iter().map(|choice| format!("`\"{choice}\"`")));
    }
    for word in words {
        assert!(text.contains(&word), "{word} is not described");
    }
}

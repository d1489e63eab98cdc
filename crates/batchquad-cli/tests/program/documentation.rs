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

fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)).unwrap()
}

/// A directory in which `batchquad` can be typed, and the search path for that.
fn shell() -> (Place, String) {
    let place = Place { dir: tempfile::tempdir().unwrap() };
    let bin = place.path("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_batchquad"), bin.join("batchquad")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    (place, path)
}

#[test]
fn what_the_readme_has_for_the_command_line_can_be_typed() {
    let (place, path) = shell();
    let text = page("README.md");
    let blocks = text.split("```sh\n").filter(|block| block.starts_with("batchquad "));
    let script: String = blocks.filter_map(|block| block.split("```").next()).collect();
    assert_eq!(script.lines().count(), 4);
    let mut shell = std::process::Command::new("sh");
    let done = shell.args(["-ec", &script]).env("PATH", &path).current_dir(place.dir.path()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success() && said.contains("nothing speaks against log Z"), "{said}");
    assert!(place.dir.path().join("oscillator/problem.html").exists());
}

/// The same with a `#` for every number.
fn without_numbers(line: &str) -> String {
    let mut text = String::new();
    for c in line.chars() {
        match c {
            '0'..='9' if text.ends_with('#') => {}
            '0'..='9' => text.push('#'),
            c => text.push(c),
        }
    }
    text
}

#[test]
fn the_session_of_the_programs_page_can_be_typed() {
    let (place, path) = shell();
    let text = page("docs/program.md");
    let mut commands = Vec::new();
    let mut last = String::new();
    for block in text.split("```").skip(1).step_by(2) {
        if let Some(script) = block.strip_prefix("sh\n") {
            let mut shell = std::process::Command::new("sh");
            let done = shell.args(["-ec", script]).env("PATH", &path).current_dir(place.dir.path()).output().unwrap();
            last = String::from_utf8_lossy(&done.stdout).into_owned();
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            // `tell` without its `ask` would be refused, and so on: the session is one.
            assert!(done.status.success(), "{script}{last}{said}");
            commands.extend(script.lines().filter_map(|line| {
                let word = line.split("batchquad ").nth(1)?.split_whitespace().next()?;
                Some(word.to_owned())
            }));
        } else if let Some(shown) = block.strip_prefix("text\n") {
            // What is said to be printed is, line by line: the words, not the numbers.
            for line in shown.lines() {
                let words = without_numbers(line.split("  ").next().unwrap());
                let printed = last.lines().any(|found| without_numbers(found).starts_with(&words));
                assert!(printed, "{words:?} is not in {last}");
            }
        }
    }
    // Every command is on the page.
    let help = place.run(&["help"], 0).stdout;
    let listed = help.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    for command in listed
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|word| *word != "help")
    {
        assert!(commands.iter().any(|typed| typed == command), "{command} is not on the page: {commands:?}");
    }
}

#[test]
fn every_finding_is_described() {
    let source = page("crates/batchquad/src/run/diagnostics/findings.rs");
    let names: Vec<&str> = source.split("finding(\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(names.len() >= 15, "{names:?}");
    let text = page("docs/verdict.md");
    for name in names {
        let section =
            text.split(&format!("### `{name}`\n")).nth(1).unwrap_or_else(|| panic!("{name} is not described"));
        let section = section.split("### ").next().unwrap();
        for part in ["**What it is.**", "**When it is bad.**", "**What to do.**"] {
            assert!(section.contains(part), "{name} lacks {part}");
        }
    }
}

//! Which part may lean on which. The map is the table in `DESIGN.md`; this reads the sources to see that it is true.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// A file of the library: its module path, and its code without tests and comments.
struct Source {
    module: Vec<String>,
    code: String,
}

/// One row of the map.
struct Layer {
    name: String,
    parts: Vec<String>,
    uses: Vec<String>,
}

/// A module inside a layer.
type Part = (String, String);

fn sources() -> Vec<Source> {
    fn walk(root: &Path, dir: &Path, found: &mut Vec<Source>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let inside = path.strip_prefix(root).unwrap().with_extension("");
                let mut module: Vec<String> = inside.iter().map(|n| n.to_str().unwrap().to_owned()).collect();
                if module.last().is_some_and(|n| n == "mod" || n == "lib") {
                    module.pop();
                }
                found.push(Source { module, code: without_tests(&fs::read_to_string(&path).unwrap()) });
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    walk(&root, &root, &mut found);
    found
}

fn without_tests(text: &str) -> String {
    let code = text.split("#[cfg(test)]").next().unwrap();
    code.lines().map(|l| l.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// The rows of the table under "The map", from the top down.
fn layers() -> Vec<Layer> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../DESIGN.md")).unwrap();
    let map = text.split("\n## The map\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let rows = map.lines().filter(|l| l.starts_with("| `")).map(|l| l.split('|').skip(1).collect::<Vec<_>>());
    rows.map(|cells| Layer { name: names(cells[0]).remove(0), parts: names(cells[1]), uses: names(cells[2]) }).collect()
}

/// The paths of a `use` tree, one for each leaf: `a::{b, c::{self, D}}` is `a::b`, `a::c`, `a::c::D`.
fn leaves(tree: &str, before: &[String], found: &mut Vec<Vec<String>>) {
    let (head, group) = match tree.split_once('{') {
        Some((head, rest)) => (head, Some(&rest[..rest.rfind('}').unwrap()])),
        None => (tree, None),
    };
    let head = head.split(" as ").next().unwrap();
    let mut path = before.to_vec();
    path.extend(head.split("::").map(str::trim).filter(|n| !n.is_empty() && *n != "self").map(str::to_owned));
    let Some(group) = group else { return found.push(path) };
    let (mut depth, mut start) = (0, 0);
    for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !group[start..at].trim().is_empty() {
                    leaves(&group[start..at], &path, found);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// All paths into the crate that a source names, from the root: in `use` trees, re-exports and in passing, by `crate`, `self` or `super`.
fn paths(source: &Source) -> Vec<Vec<String>> {
    let mut named = Vec::new();
    let mut rest = String::new();
    for piece in source.code.split_inclusive(';') {
        let start = piece.lines().scan(0, |at, l| {
            let here = *at;
            *at += l.len() + 1;
            Some((here, l))
        });
        let is_use = |l: &str| {
            let l = l.trim_start();
            l.starts_with("use ")
                || (l.starts_with("pub") && l.split_once(' ').is_some_and(|(_, r)| r.starts_with("use ")))
        };
        match start.filter(|(_, l)| is_use(l)).last() {
            Some((at, _)) => {
                rest.push_str(&piece[..at]);
                let tree = piece[at..].split_once("use ").unwrap().1.trim_end_matches(';');
                leaves(tree, &[], &mut named);
            }
            None => rest.push_str(piece),
        }
    }
    for root in ["crate::", "super::"] {
        for (at, _) in rest.match_indices(root) {
            let inside = rest[..at].ends_with("::") || rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            // `pub(in crate::…)` says who may see, not what is used.
            if inside || rest[..at].ends_with("in ") {
                continue;
            }
            let path: String =
                rest[at..].chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':')).collect();
            named.push(path.split("::").filter(|n| !n.is_empty()).map(str::to_owned).collect());
        }
    }
    named.into_iter().filter_map(|path| absolute(&source.module, &path)).collect()
}

fn absolute(module: &[String], path: &[String]) -> Option<Vec<String>> {
    let mut base = match path.first()?.as_str() {
        "crate" => return Some(path[1..].to_vec()),
        "super" => module.to_vec(),
        // A child of this module, or another crate.
        _ => return None,
    };
    let ups = path.iter().take_while(|n| *n == "super").count();
    base.truncate(base.len().saturating_sub(ups));
    base.extend_from_slice(&path[ups..]);
    Some(base)
}

/// What a module re-exports: name to path.
fn reexports(found: &[Source], module: &[String]) -> BTreeMap<String, Vec<String>> {
    let mut names = BTreeMap::new();
    for source in found.iter().filter(|s| s.module == module) {
        for piece in source.code.split("pub use ").skip(1).chain(source.code.split("pub(crate) use ").skip(1)) {
            let mut all = Vec::new();
            leaves(piece.split(';').next().unwrap(), &[], &mut all);
            for path in all {
                let full: Vec<String> =
                    if path[0] == "crate" { path[1..].to_vec() } else { module.iter().chain(&path).cloned().collect() };
                names.insert(path.last().unwrap().clone(), full);
            }
        }
    }
    names
}

struct House {
    layers: Vec<Layer>,
    found: Vec<Source>,
    facades: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

impl House {
    fn read() -> Self {
        let (layers, found) = (layers(), sources());
        let mut facades = BTreeMap::from([(String::new(), reexports(&found, &[]))]);
        for layer in &layers {
            facades.insert(layer.name.clone(), reexports(&found, std::slice::from_ref(&layer.name)));
        }
        Self { layers, found, facades }
    }

    fn layer(&self, name: &str) -> Option<&Layer> {
        self.layers.iter().find(|l| l.name == name)
    }

    /// Which part a path leads to; re-exports are followed to where things are.
    fn part(&self, path: &[String]) -> Result<Part, String> {
        let [first, rest @ ..] = path else { return Err("the root".into()) };
        if self.layer("words").unwrap().parts.contains(first) {
            return Ok(("words".into(), first.clone()));
        }
        let Some(layer) = self.layer(first) else {
            return match self.facades[""].get(first) {
                Some(there) => self.part(there),
                None => Err(first.clone()),
            };
        };
        if layer.parts.is_empty() {
            return Ok((first.clone(), rest.first().cloned().unwrap_or_default()));
        }
        match rest.first() {
            Some(name) if layer.parts.contains(name) => Ok((first.clone(), name.clone())),
            Some(name) => match self.facades[first].get(name) {
                Some(there) => self.part(there),
                None => Err(path.join("::")),
            },
            None => Err(format!("the whole of {first}")),
        }
    }

    /// Every arrow between parts, leaving out what only re-exports: the root and the layers' lists.
    fn arrows(&self) -> BTreeSet<(Part, Part)> {
        let mut arrows = BTreeSet::new();
        for source in &self.found {
            let listed = source.module.len() == 1 && self.layer(&source.module[0]).is_some_and(|l| !l.parts.is_empty());
            if source.module.is_empty() || listed {
                continue;
            }
            let from = self.part(&source.module).unwrap_or_else(|e| panic!("{e} is not in the map"));
            for path in paths(source) {
                let to = self.part(&path).unwrap_or_else(|e| panic!("{:?} names {e}", source.module));
                if to != from {
                    arrows.insert((from.clone(), to));
                }
            }
        }
        arrows
    }
}

#[test]
fn the_map_names_every_module() {
    let house = House::read();
    for layer in house.layers.iter().filter(|l| !l.parts.is_empty()) {
        let depth = usize::from(layer.name != "words");
        let is_layer = |name: &String| house.layer(name).is_some();
        let there: BTreeSet<&String> = match depth {
            0 => house.found.iter().filter_map(|s| s.module.first()).filter(|n| !is_layer(n)).collect(),
            _ => house
                .found
                .iter()
                .filter(|s| s.module.first() == Some(&layer.name))
                .filter_map(|s| s.module.get(1))
                .collect(),
        };
        assert_eq!(there, layer.parts.iter().collect(), "{}", layer.name);
    }
}

#[test]
fn arrows_point_down() {
    let house = House::read();
    let place = |name: &str| house.layers.iter().position(|l| l.name == name).unwrap_or_else(|| panic!("{name}"));
    for layer in &house.layers {
        for other in &layer.uses {
            assert!(
                place(other) > place(&layer.name),
                "the map lets {} use {other}, which is not below it",
                layer.name
            );
        }
    }
    let arrows = house.arrows();
    assert!(arrows.len() > 150, "only {} arrows were read", arrows.len());
    let up: Vec<String> = arrows
        .iter()
        .filter(|((from, _), (to, _))| from != to && !house.layer(from).unwrap().uses.contains(to))
        .map(|(from, to)| format!("{}::{} uses {}::{}", from.0, from.1, to.0, to.1))
        .collect();
    assert!(up.is_empty(), "not in the map: {up:#?}");
    let unused: Vec<String> = house
        .layers
        .iter()
        .flat_map(|l| l.uses.iter().map(move |to| (l.name.clone(), to.clone())))
        .filter(|(from, to)| !arrows.iter().any(|(a, b)| a.0 == *from && b.0 == *to))
        .map(|(from, to)| format!("{from} uses {to}"))
        .collect();
    assert!(unused.is_empty(), "in the map but not in the code: {unused:#?}");
}

#[test]
fn no_layer_has_a_cycle() {
    let house = House::read();
    let arrows = house.arrows();
    for layer in &house.layers {
        let inside: Vec<(&String, &String)> = arrows
            .iter()
            .filter(|(a, b)| a.0 == layer.name && b.0 == layer.name)
            .map(|(a, b)| (&a.1, &b.1))
            // What stands in `mod.rs` of a layer without parts is shared by its files.
            .filter(|(a, b)| !a.is_empty() && !b.is_empty() && !b.starts_with(char::is_uppercase))
            .collect();
        let mut left: BTreeSet<&String> = inside.iter().flat_map(|(a, b)| [*a, *b]).collect();
        while !left.is_empty() {
            let free: BTreeSet<&String> =
                left.iter().filter(|n| !inside.iter().any(|(a, b)| *a == **n && left.contains(b))).copied().collect();
            assert!(!free.is_empty(), "a cycle in {}: {left:?} of {inside:?}", layer.name);
            left.retain(|n| !free.contains(n));
        }
    }
}

#[test]
fn only_one_part_names_the_matrix_crate() {
    for source in sources() {
        assert!(
            source.module.iter().any(|part| part == "linalg") || !source.code.contains("faer::"),
            "{:?}",
            source.module
        );
    }
}

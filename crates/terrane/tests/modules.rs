//! The modules of the engine have ranks, and import only from below.
//!
//! The ranks are those of the table in `docs/ARCHITECTURE.md`. Code for tests may import what it
//! likes, and is left out: what is under `#[cfg(test)]`, and files named `tests.rs`.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "the sources are files")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The place of a module: rank, then place within the rank.
type Place = (usize, usize);

/// Modules by name, and where a name that the crate re-exports comes from.
struct Crate {
    modules: BTreeSet<String>,
    reexports: BTreeMap<String, String>,
}

/// Splits source text into identifiers and single signs, without comments and literals.
fn tokens(source: &str) -> Vec<String> {
    let text: Vec<char> = source.chars().collect();
    let is_word = |at: usize| text.get(at).is_some_and(|c| c.is_alphanumeric() || *c == '_');
    let starts =
        |at: usize, what: &str| what.chars().enumerate().all(|(i, c)| text.get(at + i) == Some(&c));
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if starts(at, "//") {
            at = (at..text.len()).find(|&end| text[end] == '\n').unwrap_or(text.len());
        } else if starts(at, "/*") {
            at = (at + 2..text.len())
                .find(|&end| starts(end, "*/"))
                .map_or(text.len(), |end| end + 2);
        } else if text[at] == '"' {
            at = end_of_string(&text, at);
        } else if text[at] == 'r' && (starts(at, "r\"") || starts(at, "r#\"")) {
            let close = if starts(at, "r\"") { "\"" } else { "\"#" };
            let from = at + 1 + close.len();
            at = (from..text.len())
                .find(|&end| starts(end, close))
                .map_or(text.len(), |end| end + close.len());
        } else if text[at] == '\'' {
            // A character, or else the sign of a lifetime.
            let is_escaped = starts(at + 1, "\\");
            let end = if is_escaped {
                (at + 3..text.len()).find(|&end| text[end] == '\'')
            } else {
                Some(at + 2)
            };
            at = end.filter(|&end| text.get(end) == Some(&'\'')).unwrap_or(at) + 1;
        } else if is_word(at) {
            let end = (at..=text.len()).find(|&end| !is_word(end)).unwrap_or(text.len());
            tokens.push(text[at..end].iter().collect());
            at = end;
        } else {
            if !text[at].is_whitespace() {
                tokens.push(text[at].to_string());
            }
            at += 1;
        }
    }
    tokens
}

fn end_of_string(text: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < text.len() && text[at] != '"' {
        at += if text[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// Takes out every item under `#[cfg(test)]`.
fn without_tests(tokens: &[String]) -> Vec<&str> {
    let words: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let mut kept = Vec::new();
    let mut at = 0;
    while at < words.len() {
        if words[at..].starts_with(&["#", "[", "cfg", "(", "test", ")", "]"]) {
            at = end_of_item(&words, at + 7);
        } else {
            kept.push(words[at]);
            at += 1;
        }
    }
    kept
}

/// Where the item that begins at `at` ends: behind its last brace, or its semicolon.
fn end_of_item(words: &[&str], mut at: usize) -> usize {
    let mut depth = 0;
    while at < words.len() {
        match words[at] {
            "{" => depth += 1,
            "}" if depth == 1 => return at + 1,
            "}" => depth -= 1,
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
        at += 1;
    }
    at
}

/// The names at which the paths behind `words[at]` begin: one, or those of a group.
fn heads(words: &[&str], at: usize) -> Vec<String> {
    if words.get(at) != Some(&"{") {
        return words.get(at).map(|word| (*word).to_owned()).into_iter().collect();
    }
    let mut found = Vec::new();
    let (mut depth, mut is_first) = (0, true);
    for word in &words[at..] {
        match *word {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," if depth == 1 => is_first = true,
            name if depth == 1 && is_first => {
                found.push(name.to_owned());
                is_first = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    found
}

/// The names of the root of the crate that a file refers to. `depth` is how far below the root its
/// module is: that many `super` lead there.
fn names_of_root(source: &str, depth: usize) -> Vec<String> {
    let tokens = tokens(source);
    let words = without_tests(&tokens);
    let is_path = |at: usize| words[at..].starts_with(&[":", ":"]);
    let mut names = Vec::new();
    for at in 0..words.len() {
        let continues = at >= 2 && is_path(at - 2) && at >= 3 && words[at - 3] == "super";
        if words[at] == "crate" && is_path(at + 1) {
            names.extend(heads(&words, at + 3));
        } else if words[at] == "super" && !continues {
            let mut end = at;
            let mut count = 1;
            while is_path(end + 1) && words.get(end + 3) == Some(&"super") {
                end += 3;
                count += 1;
            }
            if count == depth && is_path(end + 1) {
                names.extend(heads(&words, end + 3));
            }
        }
    }
    names
}

impl Crate {
    fn parse(lib: &str) -> Self {
        let tokens = tokens(lib);
        let words = without_tests(&tokens);
        let declared = words.windows(3).filter(|window| window[0] == "mod" && window[2] == ";");
        let modules: BTreeSet<String> = declared.map(|window| window[1].to_owned()).collect();
        let mut reexports = BTreeMap::new();
        for at in 0..words.len() {
            let from = words.get(at + 1).copied().unwrap_or_default();
            if words[at] == "use" && modules.contains(from) {
                let names = heads(&words, at + 4);
                reexports.extend(names.into_iter().map(|name| (name, from.to_owned())));
            }
        }
        Self { modules, reexports }
    }

    /// The module that a name of the root stands for; `None` for what comes from another crate.
    fn module_of<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        match self.modules.get(name) {
            Some(module) => Some(module),
            None => self.reexports.get(name).map(String::as_str),
        }
    }
}

/// The table of the section "Modules and ranks".
fn places(document: &str) -> BTreeMap<String, Place> {
    let (_, section) = document.split_once("## Modules and ranks").expect("the section is there");
    let section = section.split("\n## ").next().unwrap();
    let mut places = BTreeMap::new();
    for line in section.lines().filter(|line| line.starts_with('|')) {
        let mut cells = line.split('|').skip(1).map(str::trim);
        let Some(Ok(rank)) = cells.next().map(str::parse::<usize>) else { continue };
        let names = cells.next().unwrap_or_default().split('`').skip(1).step_by(2);
        for (index, name) in names.enumerate() {
            assert!(
                places.insert(name.to_owned(), (rank, index)).is_none(),
                "{name} has two ranks"
            );
        }
    }
    places
}

/// What is wrong with the imports of some files, given by their paths below `src`.
fn violations(lib: &str, files: &[(String, String)], document: &str) -> Vec<String> {
    let whole = Crate::parse(lib);
    let places = places(document);
    let mut wrong = Vec::new();
    for module in whole.modules.iter().filter(|module| !places.contains_key(*module)) {
        wrong.push(format!("{module} has no rank"));
    }
    for module in places.keys().filter(|module| !whole.modules.contains(*module)) {
        wrong.push(format!("{module} has a rank, and is no module"));
    }
    for (path, source) in files {
        let parts: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
        let module = parts[0];
        for name in names_of_root(source, parts.len()) {
            if name == "*" || name == "self" {
                wrong.push(format!("{path} imports all of the crate"));
            }
            let Some(other) = whole.module_of(&name).filter(|other| *other != module) else {
                continue;
            };
            let (Some(mine), Some(theirs)) = (places.get(module), places.get(other)) else {
                continue;
            };
            if theirs >= mine {
                let (rank, their_rank) = (mine.0, theirs.0);
                wrong.push(format!("{path} (rank {rank}) imports {other} (rank {their_rank})"));
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    wrong
}

/// All source files below `dir` that are not tests, by their paths below `root`.
fn sources(root: &Path, dir: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
        if path.is_dir() {
            sources(root, &path, found);
        } else if name.ends_with(".rs") && name != "lib.rs" && !name.ends_with("tests.rs") {
            found.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn modules_import_only_from_below() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lib = std::fs::read_to_string(root.join("src/lib.rs")).unwrap();
    let document = std::fs::read_to_string(root.join("../../docs/ARCHITECTURE.md")).unwrap();
    let mut files = Vec::new();
    sources(&root.join("src"), &root.join("src"), &mut files);
    assert!(files.len() > 50 && names_of_root(&files[0].1, 1).len() < 100);
    let wrong = violations(&lib, &files, &document);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const LIB: &str = "mod low; #[cfg(test)] mod helpers; pub mod high; pub use high::{Thing, Other};";
const DOCUMENT: &str = "# A\n## Modules and ranks\n| rank | modules | x |\n|---|---|---|\n| 0 | `low` | x |\n| 1 | `high` | x |\n## B\n";

fn verdict(path: &str, source: &str) -> Vec<String> {
    violations(LIB, &[(path.to_owned(), source.to_owned())], DOCUMENT)
}

#[test]
fn an_import_from_above_is_found_in_all_its_forms() {
    let forms = [
        ("low.rs", "use crate::high::Thing;"),
        ("low.rs", "use crate::{low::Mine, high::{Thing, Other}};"),
        ("low.rs", "use crate::Thing;"),
        ("low.rs", "fn f(thing: &crate::high::Thing) {}"),
        ("low.rs", "use super::high;"),
        ("low/inner.rs", "use super::super::high::Thing;"),
        ("low/inner.rs", "fn f() -> super::super::Other { \"a // b\"; crate :: low :: g('\"') }"),
    ];
    for (path, source) in forms {
        let wrong = verdict(path, source);
        assert_eq!(wrong, [format!("{path} (rank 0) imports high (rank 1)")], "{source}");
    }
    assert_eq!(verdict("low.rs", "use crate::*;"), ["low.rs imports all of the crate"]);
}

#[test]
fn imports_from_below_and_those_of_tests_are_let_pass() {
    let forms = [
        ("high.rs", "use crate::low::A; use super::low; pub(crate) fn f() {}"),
        ("low.rs", "mod inner; use inner::high; // crate::high\n/* crate::high */"),
        ("low.rs", "const A: &str = \"use crate::high;\"; const B: char = '\"'; fn f<'a>() {}"),
        ("low.rs", "#[cfg(test)] mod tests { use crate::high::Thing; fn f() { {} } } fn g() {}"),
        ("low.rs", "#[cfg(test)] use crate::high;"),
        ("low/inner.rs", "use super::high; use crate::low::high; pub(super) fn f() {}"),
        ("low.rs", "use terrane_policy::crate_name; use std::fmt;"),
    ];
    for (path, source) in forms {
        assert!(verdict(path, source).is_empty(), "{path}: {source}: {:?}", verdict(path, source));
    }
}

#[test]
fn modules_and_ranks_must_name_each_other() {
    let lib = "mod low; mod middle;";
    let wrong = violations(lib, &[], DOCUMENT);
    assert_eq!(wrong, ["high has a rank, and is no module", "middle has no rank"]);
}

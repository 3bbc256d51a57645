use std::collections::BTreeMap;

use super::*;

const LIB: &str = "mod low; #[cfg(test)] mod helpers; pub mod high; pub use high::{Thing, Other};";
const DOCUMENT: &str = "# A\n\n## Modules and ranks\n\n### `other`\n\n| 9 | `low` | x |\n\n\
    ### `this`\n\n| rank | modules | x |\n|---|---|---|\n| 0 | `low` | x |\n| 1 | `high` | x |\n\n\
    ## B\n";

fn graph(files: &[(&str, &str)]) -> ModuleGraph {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    ModuleGraph::build("lib.rs", |path| files.get(path).map(|text| (*text).to_owned())).unwrap()
}

/// Returns the violations in a crate with the modules `low`, `low/inner` and `high`, in which the
/// file at `path` contains `source`.
fn violations(path: &str, source: &str) -> Vec<String> {
    let mut files = BTreeMap::from([
        ("lib.rs", LIB),
        ("low.rs", "mod inner;"),
        ("low/inner.rs", ""),
        ("high.rs", ""),
    ]);
    let source = if path == "low.rs" { format!("{source} mod inner;") } else { source.to_owned() };
    files.insert(path, &source);
    let files: Vec<_> = files.into_iter().collect();
    RankTable::parse(DOCUMENT, "this").unwrap().violations(&graph(&files))
}

#[test]
fn an_import_from_above_is_found_in_all_its_forms() {
    let forms = [
        ("low.rs", "use crate::high::Thing;"),
        ("low.rs", "use crate::{low::Mine, high::{Thing, Other}};"),
        ("low.rs", "use crate::Thing;"),
        ("low.rs", "fn f(thing: &crate::high::Thing) {}"),
        ("low.rs", "use super::high;"),
        ("low.rs", "mod a { use super::super::high; }"),
        ("low.rs", "mod a { fn f() { crate::high::g() } }"),
        ("low/inner.rs", "use super::super::high::Thing;"),
        ("low/inner.rs", "use crate::{high as other};"),
        ("low/inner.rs", "fn f() -> super::super::Other { \"a // b\"; crate :: low :: g('\"') }"),
    ];
    for (path, source) in forms {
        let wrong = violations(path, source);
        assert_eq!(wrong, [format!("{path}:1 (low, rank 0) imports high (rank 1)")], "{source}");
    }
    assert_eq!(violations("low.rs", "use crate::*;"), ["low.rs:1 imports all of the crate"]);
}

#[test]
fn imports_from_below_and_imports_of_tests_pass() {
    let forms = [
        ("high.rs", "use crate::low::A; use super::low; pub(crate) fn f() {}"),
        ("low.rs", "use inner::high; // crate::high\n/* crate::high */"),
        ("low.rs", "const A: &str = \"use crate::high;\"; const B: char = '\"'; fn f<'a>() {}"),
        ("low.rs", "#[cfg(test)] mod tests { use crate::high::Thing; fn f() { {} } } fn g() {}"),
        ("low.rs", "#[cfg(test)] use crate::high;"),
        ("low.rs", "#[cfg(all(test, not(loom)))] mod tests { use crate::high::Thing; }"),
        ("low/inner.rs", "use super::high; use crate::low::high; pub(super) fn f() {}"),
        ("low.rs", "use terrane_policy::crate_name; use std::fmt;"),
        ("low.rs", "pub(crate) fn f() {}"),
    ];
    for (path, source) in forms {
        let wrong = violations(path, source);
        assert!(wrong.is_empty(), "{path}: {source}: {wrong:?}");
    }
}

#[test]
fn modules_and_ranks_must_name_each_other() {
    let graph = graph(&[("lib.rs", "mod low; mod middle;"), ("low.rs", ""), ("middle.rs", "")]);
    let wrong = RankTable::parse(DOCUMENT, "this").unwrap().violations(&graph);
    assert_eq!(wrong, ["high has a rank, but is not a module", "middle has no rank"]);
    assert!(RankTable::parse(DOCUMENT, "missing").is_err());
}

#[test]
fn parts_of_a_module_have_places_of_their_own() {
    let document = "\n## Modules and ranks\n\n### `this`\n\n\
        | 0 | `engine/read` | x |\n| 1 | `engine/write`, `low`, `engine` | x |\n";
    let table = RankTable::parse(document, "this").unwrap();
    let of = |read: &str, write: &str, flush: &str| {
        table.violations(&graph(&[
            ("lib.rs", "mod engine; mod low;"),
            ("low.rs", "use crate::engine::{read::R, write::W};"),
            ("engine.rs", "mod read; mod write; mod flush; use read::R; pub struct Engine;"),
            ("engine/read.rs", &format!("mod deep; {read}")),
            ("engine/read/deep.rs", read),
            ("engine/write.rs", write),
            ("engine/flush.rs", flush),
        ]))
    };
    let none: [&str; 0] = [];
    assert_eq!(
        of("use crate::engine::Engine;", "use super::read::R;", "use super::write::W;"),
        none
    );
    assert_eq!(of("", "use crate::engine::read::deep::D;", "use crate::low::L;"), none);
    assert_eq!(
        of("use crate::engine::write::W;", "", ""),
        [
            "engine/read.rs:1 (engine/read, rank 0) imports engine/write (rank 1)",
            "engine/read/deep.rs:1 (engine/read, rank 0) imports engine/write (rank 1)"
        ]
    );
    let part_without_a_row = ["engine/write.rs:1 (engine/write, rank 1) imports engine (rank 1)"];
    assert_eq!(of("", "use super::flush::F;", ""), part_without_a_row);
    assert_eq!(of("", "use crate::low::L;", "").len(), 1);
}

#[test]
fn joined_modules_share_a_place() {
    let document = "\n## Modules and ranks\n\n### `this`\n\n| 0 | `low + high` | x |\n";
    let table = RankTable::parse(document, "this").unwrap();
    let files = [
        ("lib.rs", "mod low; mod high;"),
        ("low.rs", "use crate::high::H;"),
        ("high.rs", "use crate::low::L;"),
    ];
    assert!(table.violations(&graph(&files)).is_empty());
}

fn cycles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    graph(files).cycles().into_iter().map(|cycle| cycle.files).collect()
}

#[test]
fn cycles_are_found_through_reexports_and_paths_in_code() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; pub use a::A; pub use c::C;"),
        ("a.rs", "mod deep; pub use deep::Deep; pub struct A; fn f() { crate::b::g() }"),
        ("a/deep.rs", "use crate::C; pub struct Deep;"),
        ("b.rs", "use crate::a::Deep;"),
        ("c.rs", "use super::A; pub struct C;"),
    ];
    let expected = ["a.rs", "a/deep.rs", "b.rs", "c.rs"];
    assert_eq!(cycles(&files), [expected]);
    let cycle = graph(&files).cycles().remove(0);
    assert_eq!(
        cycle.imports,
        [
            "a.rs:1 imports b.rs",
            "a/deep.rs:1 imports c.rs",
            "b.rs:1 imports a/deep.rs",
            "c.rs:1 imports a.rs"
        ]
    );
}

#[test]
fn a_facade_is_not_a_cycle() {
    let child = ("a/child.rs", "use super::Helper; pub struct Child;");
    let facade = [("lib.rs", "mod a;"), ("a.rs", "mod child; pub use child::Child;"), child];
    assert!(cycles(&facade).is_empty());
    let user = "mod child; pub use child::Child; fn f(child: Child) {}";
    assert_eq!(cycles(&[("lib.rs", "mod a;"), ("a.rs", user), child]).len(), 1);
}

#[test]
fn a_name_of_another_crate_is_an_import_only_of_a_sibling() {
    let files = [
        ("lib.rs", "mod a; mod b; use other::Thing; fn f() { a::g() }"),
        ("a.rs", "use crate::Thing; use super::b::Passed;"),
        ("b.rs", "pub use other::Passed; use crate::a::A;"),
    ];
    assert_eq!(cycles(&files), [["a.rs", "b.rs"]]);
}

#[test]
fn names_resolve_through_globs_and_aliases() {
    let graph = graph(&[
        ("lib.rs", "pub mod a; mod b; pub use a::*; use b as other;"),
        ("a.rs", "pub struct A;"),
        ("b.rs", "use crate::A as Renamed; mod inner { pub struct A; }"),
    ]);
    assert_eq!(graph.origin("lib.rs", "A"), "a.rs");
    assert_eq!(graph.origin("b.rs", "Renamed"), "a.rs");
    assert_eq!(graph.origin("b.rs", "A"), "b.rs");
}

#[test]
fn a_module_without_a_file_is_an_error() {
    let error = ModuleGraph::build("lib.rs", |path| (path == "lib.rs").then(|| "mod a;".into()));
    assert_eq!(error.unwrap_err().to_string(), "no source file a.rs or a/mod.rs");
}

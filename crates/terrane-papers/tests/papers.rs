//! `docs/papers/README.md` is the output of `terrane-papers items`, the other pages are the output of
//! `terrane-papers report`, and the tests that they name exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use terrane_papers::checklist::{self, LatestVerdicts};
use terrane_papers::experiments;
use terrane_papers::report::page_data;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Adds the names of all functions in the sources below `dir`.
fn add_functions(dir: &Path, functions: &mut BTreeSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            add_functions(&path, functions)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)?;
            let names = text.split("fn ").skip(1).filter_map(|rest| rest.split_once('('));
            functions.extend(names.map(|(name, _)| name.to_owned()));
        }
    }
    Ok(())
}

#[test]
fn every_named_test_exists() {
    let mut functions = BTreeSet::new();
    add_functions(&root().join("crates"), &mut functions).unwrap();
    for (item, test) in checklist::tests_named().unwrap() {
        assert!(functions.contains(&test), "{item} names the test {test}, which does not exist");
    }
}

#[test]
fn the_page_is_current() {
    let path = root().join("docs/papers/README.md");
    let page = checklist::page(&LatestVerdicts::stored().unwrap()).unwrap();
    if std::env::var_os("TERRANE_REWRITE").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "docs/papers/README.md is not current; TERRANE_REWRITE=1 cargo test -p terrane-papers --test \
         papers writes it"
    );
}

#[test]
fn the_pages_are_rendered_from_the_stored_results() {
    for experiment in experiments::ALL {
        let results = root().join("docs/results").join(experiment.name).with_extension("json");
        let results = serde_json::from_str(&fs::read_to_string(results).unwrap()).unwrap();
        let document = experiments::document(&results).unwrap();
        let path = root().join("docs/papers").join(experiment.name).with_extension("md");
        if std::env::var_os("TERRANE_REWRITE").is_some() {
            fs::write(&path, &document).unwrap();
        }
        assert!(
            fs::read_to_string(&path).unwrap_or_default() == document,
            "{} is not current; TERRANE_REWRITE=1 cargo test -p terrane-papers --test papers writes it",
            path.display()
        );
    }
}

#[test]
fn the_data_of_the_explorer_are_current() {
    let stored = |name: &str| {
        let path = root().join("docs/results").join(name).with_extension("json");
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let all: Vec<_> = experiments::ALL.iter().map(|experiment| stored(experiment.name)).collect();
    let data = page_data(&all).unwrap();
    let path = root().join("explorer/data/papers.json");
    if std::env::var_os("TERRANE_REWRITE").is_some() {
        fs::write(&path, &data).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == data,
        "{} is not current; TERRANE_REWRITE=1 cargo test -p terrane-papers --test papers writes it, and 'cargo \
         xtask page' the page",
        path.display()
    );
    // Every claim of the pages is in it.
    let parsed: serde_json::Value = serde_json::from_str(&data).unwrap();
    let claims = |one: &serde_json::Value| one["claims"].as_array().unwrap().len();
    assert!(parsed.as_array().unwrap().iter().map(claims).sum::<usize>() > 300);
}

//! Mutants: changes of the source, each of which a named test must notice.
//!
//! | module | one line |
//! |---|---|
//! | `list` | the files that list them |
//! | `tree` | a copy of the sources with all of them |
//! | `run` | builds and runs the tests |
//!
//! All mutants are compiled at once, into a copy of the sources, each behind a condition. A variable of the process
//! chooses one.

mod list;
mod run;
mod tree;

use std::collections::BTreeSet;
use std::time::Instant;

use list::{Mutant, TestName};
use run::{Programs, Verdict};

use crate::step::{StepResult, root, target_dir};

/// Where threads or the load of the machine decide, a test may miss its mutant once.
const RUNS_MAX: usize = 2;

/// The package and the target whose mutants take half a minute, most of it a wait for one that hangs.
const QUICK_TARGET: (&str, &str) = ("terrane-memtable", "lib");

/// Runs the tests of the mutants whose target compiles quickly.
pub(crate) fn run_quick() -> StepResult {
    run_those(|Mutant { test, .. }| (&test.package[..], &test.target[..]) == QUICK_TARGET)
}

/// Runs the tests of the mutants whose names begin with one of `names`, or of all if there is none. Fails if a test
/// does not notice its mutant.
pub(crate) fn run(names: &[&str]) -> StepResult {
    let is_named = |mutant: &Mutant| names.iter().any(|name| mutant.name.starts_with(name));
    run_those(|mutant| names.is_empty() || is_named(mutant))
}

fn run_those(is_chosen: impl Fn(&Mutant) -> bool) -> StepResult {
    let start = Instant::now();
    let mutants = read()?;
    let chosen: Vec<&Mutant> = mutants.iter().filter(|mutant| is_chosen(mutant)).collect();
    if chosen.is_empty() {
        return Err("no mutant has such a name".into());
    }
    let sources = target_dir().join("mutants/sources");
    std::fs::create_dir_all(&sources).map_err(|error| format!("{}: {error}", sources.display()))?;
    tree::copy_with(&mutants, &sources)?;
    let tests: BTreeSet<&TestName> = chosen.iter().map(|mutant| &mutant.test).collect();
    let programs = Programs::build(&sources, tests.iter().copied())?;
    let times = programs.times(tests.into_iter())?;
    let mut survivors = Vec::new();
    for mutant in &chosen {
        let since = Instant::now();
        let mut verdict = Verdict::Passed;
        for _ in 0..RUNS_MAX {
            verdict = programs.run_mutant(mutant, times[&mutant.test])?;
            if verdict != Verdict::Passed {
                break;
            }
        }
        let word = match verdict {
            Verdict::Failed => "noticed",
            Verdict::Hung => "hangs",
            Verdict::Passed => {
                survivors.push(mutant.name.as_str());
                "SURVIVED"
            }
        };
        let seconds = since.elapsed().as_secs_f64();
        println!("{word:<8} {seconds:>5.1} s  {:<36} {}", mutant.name, mutant.test.path);
    }
    let items: BTreeSet<&str> =
        chosen.iter().flat_map(|mutant| &mutant.items).map(String::as_str).collect();
    let (seconds, count) = (start.elapsed().as_secs_f64(), chosen.len());
    println!("==> mutants: {count}, of {} items of the papers, {seconds:.0} s", items.len());
    match survivors[..] {
        [] => Ok(()),
        _ => Err(format!("no test notices {}", survivors.join(", "))),
    }
}

/// Returns all mutants, after it has checked the items that they name.
fn read() -> Result<Vec<Mutant>, String> {
    let mutants = list::read(&root().join("xtask/mutants"))?;
    let items = root().join("crates/terrane-papers/papers/items.toml");
    let items = std::fs::read_to_string(&items).map_err(|error| format!("items.toml: {error}"))?;
    list::check_items(&mutants, &items)?;
    Ok(mutants)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only a release compiles all of them. This finds those whose source, test or items have changed since.
    #[test]
    fn the_sources_contain_what_mutants_change() {
        let mutants = read().unwrap();
        assert!(!mutants.is_empty());
        tree::check(&mutants).unwrap();
    }
}

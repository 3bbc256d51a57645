//! Miri: the tests of unsafe code, run by an interpreter that detects undefined behaviour.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::flags::{are_flags, number_after};
use crate::step::{StepResult, root, text, toolchain_cargo};

const MEMTABLE: &str = "terrane-memtable";

/// Tests of one crate.
struct Part {
    name: &'static str,
    package: &'static str,
    /// The arguments of cargo that choose the test programs.
    programs: &'static [&'static str],
    /// Texts in the names of the tests; none for all tests.
    tests: &'static [&'static str],
    /// Texts in the names of those whose threads run in an order that depends on the seed.
    concurrent: &'static [&'static str],
}

const PARTS: [Part; 4] = [
    Part {
        name: "memtable",
        package: MEMTABLE,
        programs: &["--lib", "--tests"],
        tests: &[],
        concurrent: &[
            "a_paused_writer_helps_with_the_drain",
            "concurrent_writers_lose_nothing",
            "ranges_are_aligned_and_disjoint",
            "ranges_read_while_writers_insert",
            "the_order_of_writes_never_turns_round",
        ],
    },
    Part {
        name: "buffer",
        package: "terrane",
        programs: &["--lib"],
        tests: &["files::buffer::"],
        concurrent: &["threads_share_blocks", "a_reader_that_lost_its_processor"],
    },
    Part {
        name: "maps",
        package: "terrane",
        programs: &["--lib"],
        tests: &["files::storage::mapping::", "files::storage::map_guard::"],
        concurrent: &["threads_store_side_by_side", "no_search_combines_two_ranges"],
    },
    Part {
        name: "ownership",
        package: "terrane-capi",
        programs: &["--lib"],
        tests: &["ownership_tests::"],
        concurrent: &[],
    },
];

/// The tests to interpret, and the number of seeds of the concurrent ones.
pub(crate) struct MiriArguments {
    part: Option<String>,
    seeds: u64,
}

impl MiriArguments {
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let (part, flags) = match words {
            [first, rest @ ..] if !first.starts_with('-') => (Some((*first).to_owned()), rest),
            all => (None, all),
        };
        let is_right = are_flags(flags, &["--seeds"]);
        is_right.then_some(Self { part, seeds: number_after(flags, "--seeds", 1)? })
    }
}

/// Runs the tests of all parts or of some, and the concurrent ones once for each seed. A failure does not
/// keep the others from running.
pub(crate) fn run(arguments: &MiriArguments) -> StepResult {
    let mut probe = toolchain_cargo("nightly", ".", ["miri", "--version"]);
    if !probe.output().is_ok_and(|output| output.status.success()) {
        let remedy = "rustup toolchain install nightly --component miri,rust-src";
        return Err(format!("Miri is missing: {remedy}"));
    }
    let runs = runs(arguments);
    let results = runs.iter().map(Run::interpret).collect::<Result<Vec<_>, _>>()?;
    println!("==> miri: tests by part");
    let mut failed = Vec::new();
    for (run, result) in runs.iter().zip(results) {
        let outcome = if result.is_ok { "ok" } else { "FAILED" };
        let Outcome { tests, seconds, .. } = result;
        println!("{:<24} {tests:>5} tests {seconds:>8.1} s  {outcome}", run.name());
        failed.extend((!result.is_ok).then(|| run.name()));
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("miri failed: {}", failed.join(", "))) }
}

/// Returns what to run: all parts, a part by its name, a test file of the memtables, or every test with a
/// text in its name.
fn runs(arguments: &MiriArguments) -> Vec<Run<'_>> {
    let seeds = arguments.seeds;
    let Some(word) = arguments.part.as_deref() else {
        return PARTS.iter().flat_map(|part| part.runs(seeds)).collect();
    };
    if let Some(part) = PARTS.iter().find(|part| part.name == word) {
        return part.runs(seeds).collect();
    }
    let file = root().join("crates").join(MEMTABLE).join("tests").join(word).with_extension("rs");
    if file.is_file() {
        let programs = vec!["--test", word];
        return vec![Run {
            part: word,
            package: MEMTABLE,
            programs,
            tests: &[],
            text: None,
            seeds,
        }];
    }
    let mut runs: Vec<Run<'_>> =
        PARTS.iter().map(|part| part.run(&[], Some(word), seeds)).collect();
    runs.dedup_by_key(|run| run.package);
    runs
}

impl Part {
    fn run<'a>(&'a self, tests: &'a [&'a str], text: Option<&'a str>, seeds: u64) -> Run<'a> {
        let programs = self.programs.to_vec();
        Run { part: self.name, package: self.package, programs, tests, text, seeds }
    }

    /// All tests once, and the concurrent ones with each seed.
    fn runs(&self, seeds: u64) -> impl Iterator<Item = Run<'_>> {
        let is_repeated = seeds > 1 && !self.concurrent.is_empty();
        let repeated = is_repeated.then(|| self.run(self.concurrent, None, seeds));
        std::iter::once(self.run(self.tests, None, 1)).chain(repeated)
    }
}

struct Run<'a> {
    part: &'a str,
    package: &'a str,
    programs: Vec<&'a str>,
    tests: &'a [&'a str],
    /// A text in the names of the tests, instead of those of a part.
    text: Option<&'a str>,
    seeds: u64,
}

/// The result of a run.
struct Outcome {
    /// The number of tests that passed, counted once for each seed.
    tests: u64,
    seconds: f64,
    is_ok: bool,
}

impl Run<'_> {
    fn name(&self) -> String {
        if self.seeds > 1 {
            format!("{}, {} seeds", self.part, self.seeds)
        } else {
            self.part.to_owned()
        }
    }

    fn command(&self) -> Command {
        let cargo = ["miri", "test", "--package", self.package];
        let tests = self.tests.iter().copied().chain(self.text);
        let words = cargo.into_iter().chain(self.programs.iter().copied()).chain(["--"]);
        let mut command = toolchain_cargo("nightly", ".", words.chain(tests));
        // Without isolation, tests may read their seed and the clock, and have temporary files.
        let mut flags = "-Zmiri-disable-isolation -Zmiri-strict-provenance".to_owned();
        if self.seeds > 1 {
            flags.push_str(&format!(" -Zmiri-many-seeds=0..{}", self.seeds));
        }
        command.env("MIRIFLAGS", flags);
        command
    }

    /// Runs the tests and shows their output.
    fn interpret(&self) -> Result<Outcome, String> {
        let name = self.name();
        let failed = |error: std::io::Error| format!("miri, {name}: {error}");
        let mut command = self.command();
        println!("==> miri, {name}: {}", text(&command));
        let start = Instant::now();
        let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
        let mut tests = 0;
        if let Some(stdout) = child.stdout.take() {
            for line in BufReader::new(stdout).lines() {
                let line = line.map_err(failed)?;
                println!("{line}");
                tests += passed(&line).unwrap_or(0);
            }
        }
        let is_ok = child.wait().map_err(failed)?.success();
        Ok(Outcome { tests, seconds: start.elapsed().as_secs_f64(), is_ok })
    }
}

/// Reads the number of tests that passed from the last line of a test program.
fn passed(line: &str) -> Option<u64> {
    let (_, counts) = line.split_once("test result: ")?;
    let (_, counts) = counts.split_once(". ")?;
    counts.split_once(" passed")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn names(words: &[&str]) -> Vec<String> {
        let arguments = MiriArguments::parse(words).unwrap();
        runs(&arguments).iter().map(|run| text(&run.command())).collect()
    }

    #[test]
    fn a_word_chooses_a_part_or_a_file_or_tests_of_each_crate() {
        assert_eq!(names(&[]).len(), PARTS.len());
        let seeded = names(&["buffer", "--seeds", "8"]);
        assert_eq!(seeded.len(), 2, "{seeded:?}");
        assert!(seeded[0].ends_with("-- files::buffer::") && !seeded[0].contains("seeds"));
        assert!(seeded[1].contains("-Zmiri-many-seeds=0..8"), "{seeded:?}");
        let file = names(&["flodb"]);
        assert!(file.len() == 1 && file[0].contains("--test flodb"), "{file:?}");
        assert_eq!(names(&["pinned"]).len(), 3, "one run for each crate");
        assert!(MiriArguments::parse(&["--seed", "8"]).is_none());
    }

    /// Returns the modules below a directory that allow unsafe code, as in `files/buffer`.
    fn unsafe_modules(sources: &Path, dir: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                unsafe_modules(sources, &path, found);
            } else if std::fs::read_to_string(&path).unwrap().contains("#![allow(unsafe_code") {
                let module = path.strip_prefix(sources).unwrap().with_extension("");
                found.push(module.to_str().unwrap().to_owned());
            }
        }
    }

    #[test]
    fn the_table_of_unsafe_code_has_every_module_of_the_engine() {
        let table = std::fs::read_to_string(root().join("docs/TESTING.md")).unwrap();
        let sources = root().join("crates/terrane/src");
        let mut modules = Vec::new();
        unsafe_modules(&sources, &sources, &mut modules);
        assert!(modules.contains(&"files/buffer".to_owned()), "{modules:?}");
        for module in modules {
            assert!(table.contains(&format!("\n| `{module}` |")), "no row of {module}");
        }
    }

    #[test]
    fn the_number_of_tests_that_passed_is_read() {
        let line = "test result: ok. 15 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out";
        assert_eq!(passed(line), Some(15));
        assert_eq!(passed("test result: FAILED. 3 passed; 1 failed"), Some(3));
        assert_eq!(passed("test it ... ok"), None);
    }
}

//! Loom, Miri and fuzzing.

use crate::step::{cargo, nightly_cargo, root, step};
use crate::{Outcome, are_flags, number_after};

/// Which targets to fuzz, and for how long each.
pub(crate) struct Fuzz {
    target: Option<String>,
    seconds: u64,
}

impl Fuzz {
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let (target, flags) = match words {
            [first, rest @ ..] if !first.starts_with('-') => (Some((*first).to_owned()), rest),
            all => (None, all),
        };
        let is_right = are_flags(flags, &["--seconds"]);
        is_right.then_some(Self { target, seconds: number_after(flags, "--seconds", 60)? })
    }
}

/// Every order of the threads in small tests of the lock-free parts, up to a number of switches
/// between threads that are not waiting: nearly all bugs show with two (Musuvathi and Qadeer 2007).
pub(crate) fn loom() -> Outcome {
    let test = |package: &str, target: &[&str]| {
        let arguments = ["test", "--profile", "loom", "--package", package];
        let mut command = cargo(arguments.into_iter().chain(target.iter().copied()));
        command.env("RUSTFLAGS", "--cfg loom").env("LOOM_MAX_PREEMPTIONS", "2");
        step(&format!("loom, {package}"), &mut command)
    };
    test("terrane-memtable", &["--test", "loom"])?;
    test("terrane", &["--test", "loom"])
}

/// The tests of the unsafe code in an interpreter that knows what is undefined: all of them, or those
/// with `part` in their names, such as a kind of memtable of the conformance tests. A kind takes a
/// minute or two.
pub(crate) fn miri(part: Option<&str>) -> Outcome {
    let mut probe = nightly_cargo(".", ["miri", "--version"]);
    if !probe.output().is_ok_and(|output| output.status.success()) {
        return Err("Miri is missing: rustup toolchain install nightly --component miri".into());
    }
    let all = ["miri", "test", "--package", "terrane-memtable"];
    let part = match part {
        None => Vec::new(),
        // A file of tests, or all that have this in their name.
        Some(part) if is_test_target(part) => vec!["--test", part],
        Some(part) => vec!["--lib", "--tests", "--", part],
    };
    let mut command = nightly_cargo(".", all.into_iter().chain(part));
    // Huge chunks are slow to make under Miri, but are the same code as small ones.
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation -Zmiri-strict-provenance");
    step("miri, terrane-memtable", &mut command)
}

fn is_test_target(name: &str) -> bool {
    root().join("crates/terrane-memtable/tests").join(name).with_extension("rs").is_file()
}

/// Fuzzes for a while, beginning with the corpus that is kept in the tree.
pub(crate) fn fuzz(fuzz: &Fuzz) -> Outcome {
    let names = match &fuzz.target {
        Some(name) => vec![name.clone()],
        None => targets()?,
    };
    // What `cargo fuzz` does, without having to have it: coverage for all crates, and the address
    // sanitizer.
    let flags = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                 -Cllvm-args=-sanitizer-coverage-pc-table -Zsanitizer=address";
    for name in names {
        let seconds = format!("-max_total_time={}", fuzz.seconds);
        // What is found goes to the first, and begins with what is kept in the second.
        let (found, kept) = (format!("target/corpus/{name}"), format!("corpus/{name}"));
        for dir in [&found, "artifacts"] {
            std::fs::create_dir_all(root().join("fuzz").join(dir))
                .map_err(|error| format!("{dir}: {error}"))?;
        }
        let host = host()?;
        let arguments = [
            "run",
            "--release",
            "--target",
            &host,
            "--bin",
            &name,
            "--",
            "-rss_limit_mb=1024",
            // No decoder takes as much at once, whatever it is told.
            "-malloc_limit_mb=64",
            "-print_final_stats=0",
            "-max_len=8192",
            "-artifact_prefix=artifacts/",
            &seconds,
            &found,
            &kept,
        ];
        step(&format!("fuzz {name}"), nightly_cargo("fuzz", arguments).env("RUSTFLAGS", flags))?;
    }
    Ok(())
}

/// The targets that there are: one file each.
fn targets() -> Result<Vec<String>, String> {
    let dir = root().join("fuzz/targets");
    let files = std::fs::read_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut names: Vec<String> = files
        .filter_map(|file| file.ok()?.path().file_stem()?.to_str().map(str::to_owned))
        .collect();
    names.sort();
    Ok(names)
}

/// The name of this kind of machine, without which the sanitizer would go into build scripts too.
fn host() -> Result<String, String> {
    let output = cargo(["--version", "--verbose"]).output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "cargo does not tell its host".into())
}

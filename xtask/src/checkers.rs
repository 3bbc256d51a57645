//! Loom, Miri and fuzzing.

use crate::flags::{are_flags, number_after};
use crate::step::{StepResult, cargo, root, step, toolchain_cargo};

/// The targets to fuzz, and the time for each.
pub(crate) struct FuzzArguments {
    target: Option<String>,
    seconds: u64,
}

impl FuzzArguments {
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let (target, flags) = match words {
            [first, rest @ ..] if !first.starts_with('-') => (Some((*first).to_owned()), rest),
            all => (None, all),
        };
        let is_right = are_flags(flags, &["--seconds"]);
        is_right.then_some(Self { target, seconds: number_after(flags, "--seconds", 60)? })
    }
}

/// Runs all thread interleavings of small tests of the lock-free parts, with up to two preemptions:
/// nearly all bugs show with two (Musuvathi and Qadeer 2007).
pub(crate) fn loom() -> StepResult {
    let test = |package: &str, target: &[&str]| {
        let arguments = ["test", "--profile", "loom", "--package", package];
        let mut command = cargo(arguments.into_iter().chain(target.iter().copied()));
        command.env("RUSTFLAGS", "--cfg loom").env("LOOM_MAX_PREEMPTIONS", "2");
        step(&format!("loom, {package}"), &mut command)
    };
    test("terrane-memtable", &["--test", "loom"])?;
    test("terrane", &["--test", "loom"])
}

/// Runs the tests of the unsafe code in an interpreter that detects undefined behaviour: all of them, or
/// those with `part` in their names, such as a memtable kind of the conformance tests. Testing one
/// kind takes a minute or two.
pub(crate) fn miri(part: Option<&str>) -> StepResult {
    let mut probe = toolchain_cargo("nightly", ".", ["miri", "--version"]);
    if !probe.output().is_ok_and(|output| output.status.success()) {
        return Err("Miri is missing: rustup toolchain install nightly --component miri".into());
    }
    let all = ["miri", "test", "--package", "terrane-memtable"];
    let part = match part {
        None => Vec::new(),
        // A test file, or all tests with this text in their names.
        Some(part) if is_test_target(part) => vec!["--test", part],
        Some(part) => vec!["--lib", "--tests", "--", part],
    };
    let mut command = toolchain_cargo("nightly", ".", all.into_iter().chain(part));
    // Without isolation, tests may read their seed and the clock.
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation -Zmiri-strict-provenance");
    step("miri, terrane-memtable", &mut command)
}

fn is_test_target(name: &str) -> bool {
    root().join("crates/terrane-memtable/tests").join(name).with_extension("rs").is_file()
}

/// Fuzzes each target for a while, starting from the committed corpus.
pub(crate) fn fuzz(fuzz: &FuzzArguments) -> StepResult {
    let names = match &fuzz.target {
        Some(name) => vec![name.clone()],
        None => targets()?,
    };
    // The compiler flags that `cargo fuzz` sets, so that it need not be installed: coverage for all
    // crates, and the address sanitizer.
    let flags = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                 -Cllvm-args=-sanitizer-coverage-pc-table -Zsanitizer=address";
    for name in names {
        let seconds = format!("-max_total_time={}", fuzz.seconds);
        // The fuzzer writes new inputs to the first directory and starts from those in the second.
        let (new, committed) = (format!("target/corpus/{name}"), format!("corpus/{name}"));
        for dir in [&new, "artifacts"] {
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
            // No decoder allocates this much at once, whatever lengths its input claims.
            "-malloc_limit_mb=64",
            "-print_final_stats=0",
            "-max_len=8192",
            "-artifact_prefix=artifacts/",
            &seconds,
            &new,
            &committed,
        ];
        step(
            &format!("fuzz {name}"),
            toolchain_cargo("nightly", "fuzz", arguments).env("RUSTFLAGS", flags),
        )?;
    }
    Ok(())
}

/// Returns the names of all targets; each target has one file.
fn targets() -> Result<Vec<String>, String> {
    let dir = root().join("fuzz/targets");
    let files = std::fs::read_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut names: Vec<String> = files
        .filter_map(|file| file.ok()?.path().file_stem()?.to_str().map(str::to_owned))
        .collect();
    names.sort();
    Ok(names)
}

/// Returns the host's target triple. Without `--target`, the sanitizer would apply to build scripts
/// too.
fn host() -> Result<String, String> {
    let output = cargo(["--version", "--verbose"]).output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "cargo --version --verbose has no host line".into())
}

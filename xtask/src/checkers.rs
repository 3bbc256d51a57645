//! Loom and fuzzing.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Instant;

use crate::flags::{are_flags, number_after};
use crate::step::{StepResult, cargo, host, root, step, text, toolchain_cargo};

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
    let mut command = cargo(["test", "--profile", "loom"]);
    command.args(["--package", "terrane-memtable", "--test", "loom", "--test", "commit_queue"]);
    command.env("RUSTFLAGS", "--cfg loom").env("LOOM_MAX_PREEMPTIONS", "2");
    step("loom", &mut command)
}

/// Fuzzes each target for a while, starting from the committed corpus. A target that fails does not
/// keep the others from running.
pub(crate) fn fuzz(fuzz: &FuzzArguments) -> StepResult {
    let names = match &fuzz.target {
        Some(name) => vec![name.clone()],
        None => targets()?,
    };
    // Without `--target`, the sanitizer would apply to build scripts too.
    let host = host()?;
    let mut runs = Vec::new();
    for name in names {
        let run = fuzz_target(&name, fuzz.seconds, &host)?;
        runs.push((name, run));
    }
    println!("==> fuzz: executions by target");
    for (name, run) in &runs {
        let outcome = run.failure.as_deref().map_or("ok", |_| "FAILED");
        println!("{name:<20} {:>12}  {outcome}", run.executions);
    }
    let total: u64 = runs.iter().map(|(_, run)| run.executions).sum();
    println!("{:<20} {total:>12}", "total");
    let failures: Vec<String> = runs.into_iter().filter_map(|(_, run)| run.failure).collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// The result of fuzzing one target.
struct FuzzRun {
    /// The number of inputs that were executed.
    executions: u64,
    /// The message of the failure; `None` if no input failed.
    failure: Option<String>,
}

fn fuzz_target(name: &str, seconds: u64, host: &str) -> Result<FuzzRun, String> {
    // The compiler flags that `cargo fuzz` sets, so that it need not be installed: coverage for all
    // crates, and the address sanitizer.
    let flags = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                 -Cllvm-args=-sanitizer-coverage-pc-table -Zsanitizer=address";
    let seconds = format!("-max_total_time={seconds}");
    // The fuzzer writes new inputs to the first directory and starts from those in the second.
    let (new, committed) = (format!("target/corpus/{name}"), format!("corpus/{name}"));
    for dir in [&new, "artifacts"] {
        std::fs::create_dir_all(root().join("fuzz").join(dir))
            .map_err(|error| format!("{dir}: {error}"))?;
    }
    let arguments = [
        "run",
        "--release",
        "--target",
        host,
        "--bin",
        name,
        "--",
        "-rss_limit_mb=1024",
        // No decoder allocates this much at once, whatever lengths its input claims.
        "-malloc_limit_mb=64",
        "-print_final_stats=1",
        "-max_len=8192",
        "-artifact_prefix=artifacts/",
        &seconds,
        &new,
        &committed,
    ];
    let mut command = toolchain_cargo("nightly", "fuzz", arguments);
    command.env("RUSTFLAGS", flags).stderr(Stdio::piped());
    let line = text(&command);
    println!("==> fuzz {name}: {line}");
    let start = Instant::now();
    let failed = |error: std::io::Error| format!("fuzz {name}: {error}");
    let mut child = command.spawn().map_err(failed)?;
    let mut executions = 0;
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).split(b'\n') {
            let line = line.map_err(failed)?;
            let line = String::from_utf8_lossy(&line);
            eprintln!("{line}");
            if let Some(count) = line.strip_prefix("stat::number_of_executed_units:") {
                executions = count.trim().parse().unwrap_or(0);
            }
        }
    }
    let status = child.wait().map_err(failed)?;
    let seconds = start.elapsed().as_secs_f64();
    let failure =
        (!status.success()).then(|| format!("fuzz {name} failed after {seconds:.1} s: {line}"));
    println!("==> fuzz {name}: {executions} executions, {seconds:.1} s");
    Ok(FuzzRun { executions, failure })
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

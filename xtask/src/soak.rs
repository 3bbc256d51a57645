//! Runs the random tests of the engine at length, in rounds with fresh seeds.
//!
//! A round runs every suite once, each in a process that is killed if it hangs. If a suite
//! fails, its output is printed with the command that repeats the run.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::flags::{are_flags, number_after};
use crate::step::{StepResult, cargo, root};

/// A test suite with the number of seeds that it tries in a round, chosen to take some seconds.
struct Suite {
    name: &'static str,
    seeds: u64,
}

const SUITES: &[Suite] = &[
    Suite { name: "metamorphic", seeds: 40 },
    Suite { name: "crash", seeds: 6 },
    Suite { name: "faults", seeds: 3 },
    Suite { name: "kill", seeds: 10 },
    Suite { name: "linearizability", seeds: 60 },
    Suite { name: "concurrency", seeds: 1 },
    Suite { name: "corruption", seeds: 1 },
];

/// The distance between the seeds of successive rounds: more than a suite tries in one round.
const SEEDS_PER_ROUND: u64 = 1_000_000;

/// A suite that runs longer than this is taken to hang, because suites take some seconds.
const HANGS_AFTER: Duration = Duration::from_secs(600);

/// The duration of the soak, and its first seed.
pub(crate) struct SoakArguments {
    minutes: u64,
    seed: u64,
}

impl SoakArguments {
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let minutes = number_after(words, "--minutes", 10)?;
        let seed = number_after(words, "--seed", now)?;
        are_flags(words, &["--minutes", "--seed"]).then_some(Self { minutes, seed })
    }
}

/// Runs rounds until the time is over. Continues after a failure, and reports all failures at the
/// end.
pub(crate) fn run(soak: &SoakArguments) -> StepResult {
    let programs = build()?;
    let end = Instant::now() + Duration::from_secs(soak.minutes * 60);
    println!("==> soak for {} minutes, seed {}", soak.minutes, soak.seed);
    let mut failures = Vec::new();
    let mut round = 0;
    while Instant::now() < end {
        let seed = soak.seed.wrapping_add(round * SEEDS_PER_ROUND);
        for (suite, program) in SUITES.iter().zip(&programs) {
            if Instant::now() >= end && round > 0 {
                break;
            }
            let start = Instant::now();
            let outcome = run_suite(suite, program, seed)?;
            let seconds = start.elapsed().as_secs_f64();
            println!("round {round} seed {seed} {}: {outcome} {seconds:.1} s", suite.name);
            if outcome != "ok" {
                let repeat = repeat(suite, seed);
                println!("    repeat: {repeat}");
                failures.push(repeat);
            }
        }
        round += 1;
    }
    if failures.is_empty() {
        println!("==> {round} rounds without a failure");
        return Ok(());
    }
    Err(format!(
        "{} failures in {round} rounds; repeat with\n{}",
        failures.len(),
        failures.join("\n")
    ))
}

/// Returns the command that repeats the run of a suite in a round.
fn repeat(suite: &Suite, seed: u64) -> String {
    format!(
        "TERRANE_SEED={seed} TERRANE_ROUNDS={} RUSTFLAGS='--cfg invariants' cargo test --package \
         terrane --test {}",
        suite.seeds, suite.name
    )
}

/// Builds all suites with `--cfg invariants`, and returns their executables in the order of
/// [`SUITES`].
fn build() -> Result<Vec<PathBuf>, String> {
    let mut command = cargo(["test", "--package", "terrane", "--no-run", "--message-format=json"]);
    for suite in SUITES {
        command.args(["--test", suite.name]);
    }
    command.env("RUSTFLAGS", "--cfg invariants").stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("build: {error}"))?;
    if !output.status.success() {
        return Err("the tests do not build; cargo's messages are above".into());
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    SUITES
        .iter()
        .map(|suite| {
            let program = messages.lines().filter_map(executable).find(|path| {
                let stem = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                stem.rsplit_once('-').is_some_and(|(name, _)| name == suite.name)
            });
            program.ok_or_else(|| format!("cargo reports no executable for {}", suite.name))
        })
        .collect()
}

/// Returns the executable named by a JSON message of cargo.
fn executable(message: &str) -> Option<PathBuf> {
    let (_, rest) = message.split_once("\"executable\":\"")?;
    rest.split('"').next().map(PathBuf::from)
}

/// Runs a suite, and prints its output if it fails.
fn run_suite(suite: &Suite, program: &Path, seed: u64) -> Result<&'static str, String> {
    let log = std::env::temp_dir().join(format!("terrane-soak-{}.txt", std::process::id()));
    let fail = |error: std::io::Error| format!("{}: {error}", suite.name);
    let output = File::create(&log).map_err(fail)?;
    let mut child = Command::new(program)
        .current_dir(root().join("crates/terrane"))
        .env("TERRANE_SEED", seed.to_string())
        .env("TERRANE_ROUNDS", suite.seeds.to_string())
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(output.try_clone().map_err(fail)?)
        .stderr(output)
        .spawn()
        .map_err(fail)?;
    let start = Instant::now();
    let outcome = loop {
        if let Some(status) = child.try_wait().map_err(fail)? {
            break if status.success() { "ok" } else { "FAILED" };
        }
        if start.elapsed() > HANGS_AFTER {
            child.kill().map_err(fail)?;
            child.wait().map_err(fail)?;
            break "HANGS";
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    if outcome != "ok" {
        let printed = std::fs::read(&log).map_err(fail)?;
        println!("{}", String::from_utf8_lossy(&printed));
    }
    std::fs::remove_file(&log).map_err(fail)?;
    Ok(outcome)
}

//! Builds the suites, and runs one of them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::suite::Suite;
use crate::step::{cargo, root};

/// The profile of the build: optimised, with assertions and overflow checks.
const PROFILE: &str = "soak";

/// A suite that runs longer than this counts as hanging, because suites take a few seconds.
const HANGS_AFTER: Duration = Duration::from_secs(600);

/// The result of a run.
pub(super) struct Outcome {
    /// "ok", "FAILED" or "HANGS".
    pub(super) verdict: &'static str,
    pub(super) output: String,
}

impl Outcome {
    pub(super) fn is_success(&self) -> bool {
        self.verdict == "ok"
    }
}

/// Returns the command that repeats the run of a suite.
pub(super) fn repeat(suite: &Suite, seed: u64) -> String {
    format!(
        "TERRANE_SEED={seed} TERRANE_ROUNDS={} cargo test --profile {PROFILE} --package terrane-tests \
         --test {}",
        suite.seeds, suite.name
    )
}

/// Builds all suites, and returns their executables in the order of `suites`.
pub(super) fn build(suites: &[Suite]) -> Result<Vec<PathBuf>, String> {
    let arguments = ["test", "--profile", PROFILE, "--package", "terrane-tests", "--no-run"];
    let mut command = cargo(arguments);
    command.arg("--message-format=json");
    for suite in suites {
        command.args(["--test", suite.name]);
    }
    command.stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("build: {error}"))?;
    if !output.status.success() {
        return Err("the tests do not build; cargo's messages are above".into());
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    suites
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

/// Runs a suite. Its tests run one by one, because the other cores are busy.
pub(super) fn run(suite: &Suite, program: &Path, seed: u64) -> Result<Outcome, String> {
    // Relaxed: only the uniqueness of the number matters.
    static LOGS: AtomicU64 = AtomicU64::new(0);
    let number = LOGS.fetch_add(1, Ordering::Relaxed);
    let log = format!("terrane-soak-{}-{number}.txt", std::process::id());
    let log = std::env::temp_dir().join(log);
    let fail = |error: std::io::Error| format!("{}: {error}", suite.name);
    let output = File::create(&log).map_err(fail)?;
    let mut child = Command::new(program)
        .args(["--nocapture", "--test-threads=1"])
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
    let verdict = loop {
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
    let printed = std::fs::read(&log).map_err(fail)?;
    std::fs::remove_file(&log).map_err(fail)?;
    Ok(Outcome { verdict, output: String::from_utf8_lossy(&printed).into_owned() })
}

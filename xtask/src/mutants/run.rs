//! Builds and runs the tests that must notice mutants.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::list::{Mutant, TestName};
use super::tree::VARIABLE;
use crate::step::{cargo, target_dir, text};

/// A mutant that makes its test wait for ever is noticed as well: after this time, or many times the time of the test
/// without a mutant.
const HANG_AFTER: Duration = Duration::from_secs(20);
const HANG_TIMES: u32 = 20;

/// A test without a mutant has failed after this time.
const UNCHANGED_MAX: Duration = Duration::from_secs(300);

/// The outcome of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    Failed,
    /// It did not end.
    Hung,
}

/// The programs of test targets that were built from a copy of the sources.
#[derive(Debug)]
pub(super) struct Programs {
    sources: PathBuf,
    by_target: BTreeMap<(String, String), PathBuf>,
}

impl Programs {
    /// Compiles the targets of some tests.
    pub(super) fn build<'a>(
        sources: &Path,
        tests: impl Iterator<Item = &'a TestName>,
    ) -> Result<Self, String> {
        let targets: BTreeSet<(String, String)> =
            tests.map(|test| (test.package.clone(), test.target.clone())).collect();
        let build = |target: (String, String)| {
            let program = build(sources, &target.0, &target.1)?;
            Ok((target, program))
        };
        let by_target: Result<_, String> = targets.into_iter().map(build).collect();
        Ok(Self { sources: sources.to_owned(), by_target: by_target? })
    }

    /// Returns how long each test takes without a mutant. All must pass.
    pub(super) fn times<'a>(
        &self,
        tests: impl Iterator<Item = &'a TestName>,
    ) -> Result<BTreeMap<&'a TestName, Duration>, String> {
        let time = |test: &'a TestName| {
            for _ in 0..super::RUNS_MAX {
                let since = Instant::now();
                if self.run(test, None, UNCHANGED_MAX)? == Verdict::Passed {
                    return Ok((test, since.elapsed()));
                }
            }
            Err(format!("{} fails without a mutant: see {}", test.path, log().display()))
        };
        tests.map(time).collect()
    }

    /// Runs the test of a mutant, which takes `usual` without it.
    pub(super) fn run_mutant(&self, mutant: &Mutant, usual: Duration) -> Result<Verdict, String> {
        let time_max = HANG_AFTER.max(usual * HANG_TIMES);
        self.run(&mutant.test, Some(&mutant.name), time_max)
    }

    fn run(
        &self,
        test: &TestName,
        mutant: Option<&str>,
        time_max: Duration,
    ) -> Result<Verdict, String> {
        let TestName { package, target, path } = test;
        let program = self.by_target.get(&(package.clone(), target.clone()));
        let mut command = Command::new(program.ok_or_else(|| format!("{target} is not built"))?);
        command.args(["--exact", path]);
        // Cargo runs tests in the directory of their package.
        command.current_dir(self.sources.join("crates").join(package));
        match mutant {
            Some(name) => command.env(VARIABLE, name),
            None => command.env_remove(VARIABLE),
        };
        let log = log();
        let failed = |error: std::io::Error| format!("{}: {error}", text(&command));
        let file = std::fs::File::create(&log).map_err(failed)?;
        let errors = file.try_clone().map_err(failed)?;
        let spawned = command.stdin(Stdio::null()).stdout(file).stderr(errors).spawn();
        let mut child = spawned.map_err(|error| format!("{path}: {error}"))?;
        let failed = |error: std::io::Error| format!("{path}: {error}");
        let since = Instant::now();
        while child.try_wait().map_err(failed)?.is_none() {
            if since.elapsed() > time_max {
                child.kill().map_err(failed)?;
                child.wait().map_err(failed)?;
                return Ok(Verdict::Hung);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let output = std::fs::read(&log).map_err(failed)?;
        let output = String::from_utf8_lossy(&output);
        verdict_of(&output).ok_or_else(|| format!("{path}: the test did not run:\n{output}"))
    }
}

/// The output of the last test.
fn log() -> PathBuf {
    target_dir().join("mutants/test.log")
}

/// Compiles a test target, and returns its program.
fn build(sources: &Path, package: &str, target: &str) -> Result<PathBuf, String> {
    let mut command = cargo(["test", "--no-run", "--message-format=json", "--package", package]);
    match target {
        "lib" => command.arg("--lib"),
        name => command.args(["--test", name]),
    };
    command.current_dir(sources).env("CARGO_TARGET_DIR", target_dir().join("mutants/build"));
    // Lints that the environment denies do not apply to generated code.
    command.env("RUSTFLAGS", "--cap-lints=warn").env_remove("CARGO_ENCODED_RUSTFLAGS");
    command.env("CARGO_PROFILE_DEV_DEBUG", "0").stderr(Stdio::inherit());
    println!("==> mutants: {}", text(&command));
    let output = command.output().map_err(|error| format!("{package} {target}: {error}"))?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let program = messages.lines().filter_map(executable_of).next_back();
    match program {
        Some(program) if output.status.success() => Ok(program),
        _ => Err(format!("{package} {target} does not compile:\n{}", errors_of(&messages))),
    }
}

/// Returns the program that a message of cargo names.
fn executable_of(message: &str) -> Option<PathBuf> {
    let (_, rest) = message.split_once("\"executable\":\"")?;
    Some(rest.split_once('"')?.0.into())
}

/// Returns what the compiler printed, from the messages of cargo.
fn errors_of(messages: &str) -> String {
    let rendered = messages.lines().filter(|line| line.contains("\"level\":\"error\""));
    let texts = rendered.filter_map(|line| line.split_once("\"rendered\":\"")?.1.split_once("\","));
    texts.map(|(text, _)| text.replace("\\n", "\n").replace("\\\"", "\"")).collect()
}

/// Returns how the test ended. A process that a test aborts has failed as well.
fn verdict_of(output: &str) -> Option<Verdict> {
    if !output.contains("running 1 test") {
        return None;
    }
    let is_passed = output.contains("test result: ok. 1 passed");
    Some(if is_passed { Verdict::Passed } else { Verdict::Failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_have_a_verdict_if_the_test_ran() {
        let ran = |rest: &str| verdict_of(&format!("\nrunning 1 test\n{rest}"));
        assert_eq!(ran("test t ... ok\n\ntest result: ok. 1 passed; 0"), Some(Verdict::Passed));
        assert_eq!(ran("test result: FAILED. 0 passed; 1 failed"), Some(Verdict::Failed));
        assert_eq!(ran(""), Some(Verdict::Failed));
        assert_eq!(verdict_of("running 0 tests\n\ntest result: ok. 0 passed"), None);
    }

    #[test]
    fn messages_name_programs_and_errors() {
        let message = r#"{"reason":"compiler-artifact","executable":"/t/deps/api-1","fresh":true}"#;
        assert_eq!(executable_of(message), Some("/t/deps/api-1".into()));
        assert_eq!(executable_of(r#"{"executable":null}"#), None);
        let error = r#"{"message":{"level":"error","rendered":"a\nb \"c\"","spans":[]}}"#;
        assert_eq!(errors_of(error), "a\nb \"c\"");
    }
}

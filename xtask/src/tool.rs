//! Runs tools, and skips a step whose tool is missing.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::report::Stop;
use crate::step::text;

/// Returns a skip with a remedy unless the tool runs.
pub(crate) fn require(tool: &str, remedy: &str) -> Result<(), Stop> {
    let missing = || Stop::Skipped(format!("no {tool}: {remedy}"));
    let mut probe = Command::new(tool);
    probe.arg("--version").stdin(Stdio::null());
    let is_there = probe.output().is_ok_and(|output| output.status.success());
    if is_there { Ok(()) } else { Err(missing()) }
}

/// Runs a command and returns its output; an error has both of its streams.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let line = text(command);
    println!("    {line}");
    let output =
        command.stdin(Stdio::null()).output().map_err(|error| format!("{line}: {error}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("{line}: {}: {}{}", output.status, stdout.trim(), stderr.trim()))
}

/// Runs a command whose output is of interest as it comes, such as that of a compiler.
pub(crate) fn show(command: &mut Command) -> Result<(), String> {
    let line = text(command);
    println!("    {line}");
    let status = command.status().map_err(|error| format!("{line}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{line}: {status}")) }
}

/// Returns a command without environment in a directory, as a program that was just installed runs.
pub(crate) fn bare(program: &Path, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().current_dir(dir);
    command
}

/// Returns an error that shows both texts unless `text` contains `expected`.
pub(crate) fn expect(text: &str, expected: &str) -> Result<(), String> {
    if text.contains(expected) {
        Ok(())
    } else {
        Err(format!("expected {expected:?}, and got {text:?}"))
    }
}

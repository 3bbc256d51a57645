//! Runs commands in the root of the workspace and reports their times.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The result of a step; the message of a failure is for the terminal.
pub(crate) type StepResult = Result<(), String>;

/// Returns the root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_owned()
}

/// Returns the directory of build outputs.
pub(crate) fn target_dir() -> PathBuf {
    // A relative one begins at the root, where cargo runs.
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Returns a command that runs the cargo of this toolchain in the root of the workspace.
pub(crate) fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(arguments).current_dir(root());
    command
}

/// Returns a command that runs the cargo of another toolchain in a directory of the workspace.
pub(crate) fn toolchain_cargo<'a>(
    toolchain: &str,
    dir: &str,
    arguments: impl IntoIterator<Item = &'a str>,
) -> Command {
    let mut command = Command::new("rustup");
    let cargo = ["run", toolchain, "cargo"];
    command.args(cargo).args(arguments).current_dir(root().join(dir));
    // These variables of the running cargo name the tools of its own toolchain.
    for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(variable);
    }
    command
}

/// Returns the platform of this machine as Rust names it, such as `x86_64-unknown-linux-gnu`.
pub(crate) fn host() -> Result<String, String> {
    let output = cargo(["--version", "--verbose"]).output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "cargo --version --verbose has no host line".into())
}

/// Runs a step until it ends.
pub(crate) fn step(name: &str, command: &mut Command) -> StepResult {
    println!("==> {name}: {}", text(command));
    let start = Instant::now();
    let status = command.status().map_err(|error| format!("{name}: {error}"))?;
    let seconds = start.elapsed().as_secs_f64();
    if !status.success() {
        return Err(format!("{name} failed after {seconds:.1} s: {}", text(command)));
    }
    println!("==> {name}: {seconds:.1} s");
    Ok(())
}

/// Formats a command as it would be typed in a shell, with the variables that it sets.
pub(crate) fn text(command: &Command) -> String {
    let mut words = Vec::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            words.push(format!("{}={:?}", name.to_string_lossy(), value.to_string_lossy()));
        }
    }
    let program = Path::new(command.get_program());
    words.push(program.file_name().unwrap_or_default().to_string_lossy().into_owned());
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}

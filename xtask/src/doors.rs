//! Tests of the ways into the engine other than Rust, with the clients that their users have.
//!
//! Each is a script, `doors/NAME/run`, which installs what it needs from package registries, and
//! ends with a line of counts. They stay outside `cargo test --workspace`, which needs only Rust.

use std::fs;
use std::process::Command;

use crate::step::{StepResult, root, step};

/// Runs one door, or all of them in order of their names, until one fails.
pub(crate) fn run(name: Option<&str>) -> StepResult {
    let known = names()?;
    if let Some(name) = name
        && !known.iter().any(|door| door == name)
    {
        return Err(format!("no door '{name}'; there are: {}", known.join(", ")));
    }
    for door in known.iter().filter(|door| name.is_none_or(|name| *door == name)) {
        let mut script = Command::new(root().join("doors").join(door).join("run"));
        step(&format!("door {door}"), script.current_dir(root()))?;
    }
    Ok(())
}

/// Returns the doors that have a script.
fn names() -> Result<Vec<String>, String> {
    let entries = fs::read_dir(root().join("doors")).map_err(|error| format!("doors: {error}"))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| format!("doors: {error}"))?;
        if entry.path().join("run").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

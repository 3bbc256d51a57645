//! Tests of the ways into the engine other than Rust, with the clients that their users have.
//!
//! Each is a script, `doors/NAME/run`, which installs what it needs from package registries, and
//! ends with a line of counts. They stay outside `cargo test --workspace`, which needs only Rust.

use std::fs;
use std::process::Command;
use std::time::Instant;

use crate::beside::Beside;
use crate::step::{StepResult, root, step};

/// Runs the named doors, or all of them if none is named. They run at the same time, because they wait for
/// registries, servers and single threads. Every door ends, also if another fails.
pub(crate) fn run(chosen: &[&str]) -> StepResult {
    let known = names()?;
    if let Some(name) = chosen.iter().find(|name| !known.iter().any(|door| door == *name)) {
        return Err(format!("no door '{name}'; there are: {}", known.join(", ")));
    }
    let all = known.iter().map(String::as_str);
    let doors: Vec<&str> = if chosen.is_empty() { all.collect() } else { chosen.to_vec() };
    if let [door] = doors[..] {
        return step(&format!("door {door}"), &mut script(door));
    }
    let start = Instant::now();
    println!("==> doors: {}", doors.join(", "));
    let running: Vec<_> = doors.iter().map(|door| Beside::start(door, script(door))).collect();
    let ended = running.into_iter().map(|door| door.and_then(Beside::end));
    let failures: Vec<String> = ended.filter_map(Result::err).collect();
    println!("==> doors: {:.1} s", start.elapsed().as_secs_f64());
    if failures.is_empty() { Ok(()) } else { Err(failures.join(", ")) }
}

fn script(door: &str) -> Command {
    let mut script = Command::new(root().join("doors").join(door).join("run"));
    script.current_dir(root());
    script
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

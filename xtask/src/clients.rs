//! Tests of the engine's interfaces other than Rust, with the clients that users have.
//!
//! Each is a script, `clients/NAME/run`, which installs what it needs from package registries, and
//! ends with a line of counts. They stay outside `cargo test --workspace`, which needs only Rust.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::beside::Beside;
use crate::step::{StepResult, root, step};

/// Runs the named client tests, or all of them if none is named. They run concurrently, because they
/// wait for registries, servers and single threads. Each runs to its end, even if another fails. `command` is the
/// command `terrane` to test, if it was built earlier.
pub(crate) fn run(chosen: &[&str], command: Option<&Path>) -> StepResult {
    let known = names()?;
    if let Some(name) = chosen.iter().find(|name| !known.iter().any(|known| known == *name)) {
        return Err(format!("no client tests '{name}'; there are: {}", known.join(", ")));
    }
    let all = known.iter().map(String::as_str);
    let selected: Vec<&str> = if chosen.is_empty() { all.collect() } else { chosen.to_vec() };
    if let [name] = selected[..] {
        return step(&format!("clients {name}"), &mut script(name, command));
    }
    let start = Instant::now();
    println!("==> clients: {}", selected.join(", "));
    let running: Vec<_> =
        selected.iter().map(|name| Beside::start(name, script(name, command))).collect();
    let ended = running.into_iter().map(|one| one.and_then(Beside::end));
    let failures: Vec<String> = ended.filter_map(Result::err).collect();
    println!("==> clients: {:.1} s", start.elapsed().as_secs_f64());
    if failures.is_empty() { Ok(()) } else { Err(failures.join(", ")) }
}

fn script(name: &str, command: Option<&Path>) -> Command {
    let mut script = Command::new(root().join("clients").join(name).join("run"));
    script.current_dir(root());
    if let Some(command) = command {
        script.env("TERRANE", command);
    }
    script
}

/// Returns the folders of `clients` that have a script.
fn names() -> Result<Vec<String>, String> {
    let entries =
        fs::read_dir(root().join("clients")).map_err(|error| format!("clients: {error}"))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| format!("clients: {error}"))?;
        if entry.path().join("run").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

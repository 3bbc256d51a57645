//! Runs the commands of `docs/guide`, as a reader does.
//!
//! All lines of the `sh` blocks of a page run in one directory, in order, and must succeed. A
//! `text` block that follows the comment `<!-- exact -->` must equal the output of the block before
//! it; `TERRANE_REWRITE=1` rewrites such blocks.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have files of their own")]

use std::path::{Path, PathBuf};
use std::process::Command;

const EXACT: &str = "<!-- exact -->";

fn guide() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide")
}

/// Runs a line of a shell with the command in its path, and returns the standard output.
fn run(line: &str, dir: &Path) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_terrane")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(dir).env("PATH", path).env("COLUMNS", "80");
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}\n{error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the text of a page with its exact blocks as the commands print them, and the number of
/// commands.
fn rerun(text: &str, dir: &Path) -> (String, usize) {
    let (mut out, mut printed, mut count) = (String::new(), String::new(), 0);
    let mut lines = text.lines();
    let mut is_exact = false;
    while let Some(line) = lines.next() {
        out.extend([line, "\n"]);
        let block = |lines: &mut std::str::Lines<'_>| -> Vec<String> {
            lines.take_while(|line| *line != "```").map(str::to_owned).collect()
        };
        if line == "```sh" {
            printed.clear();
            for command in block(&mut lines) {
                printed += &run(&command, dir);
                count += 1;
                out.extend([&command, "\n"]);
            }
            out += "```\n";
        } else if line == "```text" {
            let written = block(&mut lines);
            let exact = printed.trim_end().lines().map(|line| line.trim_end().to_owned());
            let kept = if is_exact { exact.collect() } else { written };
            kept.iter().for_each(|line| out.extend([line, "\n"]));
            out += "```\n";
        }
        is_exact = line == EXACT;
    }
    (out, count)
}

fn check(page: &str) {
    let path = guide().join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (now, count) = rerun(&text, dir.path());
    assert!(count > 0, "{page} has no commands");
    if std::env::var_os("TERRANE_REWRITE").is_some() {
        std::fs::write(&path, &now).unwrap();
    } else {
        assert_eq!(now, text, "{page}: TERRANE_REWRITE=1 rewrites its blocks");
    }
}

#[test]
fn the_commands_of_the_tutorial_run_and_print_what_it_shows() {
    check("tutorial.md");
}

#[test]
fn the_commands_of_the_other_pages_run() {
    ["keys.md", "designs.md", "durability.md", "moving.md"].into_iter().for_each(check);
}

#[test]
fn a_command_that_fails_fails_the_test() {
    let dir = tempfile::tempdir().unwrap();
    let failed =
        std::panic::catch_unwind(|| rerun("```sh\nterrane verify missing\n```\n", dir.path()));
    assert!(failed.is_err());
}

#[test]
fn every_page_is_checked_and_listed() {
    let index = std::fs::read_to_string(guide().join("README.md")).unwrap();
    for entry in std::fs::read_dir(guide()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name == "README.md" || index.contains(&format!("({name})")), "{name}");
    }
}

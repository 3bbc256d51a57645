//! Compiles the examples and the test programs in C, as C99 and as C++, and runs them against the shared and the
//! static library. Skipped, with a line that says so, if there is no `cc`; C++ also if there is no `c++`.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests; a skipped one says so"
)]
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The warnings that must not occur.
const WARNINGS: [&str; 5] = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-Wno-unused-function"];

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the directory that has the libraries of this build.
fn library_dir() -> PathBuf {
    // The test is in the directory in which cargo has built the library that it depends on.
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

fn has(compiler: &str) -> bool {
    let found = Command::new(compiler).arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED: there is no `{compiler}`");
    }
    found
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} ended with {}:\n{text}", output.status);
    output
}

fn static_library() -> PathBuf {
    let entries = std::fs::read_dir(library_dir()).unwrap();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with("libterrane_c") && name.ends_with(".a")
        })
        .collect();
    found.sort_by_key(|path| path.metadata().unwrap().modified().unwrap());
    found.pop().unwrap()
}

/// Compiles a program, and returns its path.
fn compile(source: &Path, dir: &Path, is_static: bool) -> PathBuf {
    let program = dir.join(if is_static { "static" } else { "shared" });
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu99", "-O1", "-g"]).args(WARNINGS);
    cc.arg("-I").arg(crate_dir().join("include")).arg(source).arg("-o").arg(&program);
    if is_static {
        cc.arg(static_library()).args(["-lpthread", "-ldl", "-lm"]);
    } else {
        cc.arg("-L").arg(library_dir()).args(["-lterrane_c", "-lpthread"]);
    }
    succeed(&mut cc);
    program
}

/// Compiles and runs a program with both libraries, and returns what it printed.
fn run(source: &str) -> Option<String> {
    if !has("cc") {
        return None;
    }
    let source = crate_dir().join(source);
    let mut printed = Vec::new();
    for is_static in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let program = compile(&source, dir.path(), is_static);
        let data = dir.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let mut run = Command::new(program);
        run.arg(&data)
            .env("LD_LIBRARY_PATH", library_dir())
            .env("DYLD_LIBRARY_PATH", library_dir());
        printed.push(String::from_utf8(succeed(&mut run).stdout).unwrap());
    }
    assert_eq!(printed[0], printed[1], "the shared and the static library differ");
    printed.pop()
}

fn assert_prints(source: &str, expected: &str) {
    if let Some(printed) = run(source) {
        assert_eq!(printed, expected);
    }
}

#[test]
fn the_first_example_prints_its_fruit() {
    let expected = "apple is red\nbanana is yellow\ncherry is dark red\n";
    assert_prints("examples/c/first.c", expected);
}

#[test]
fn transfers_keep_the_sum() {
    assert_prints("examples/c/accounts.c", "800 transfers, sum 800\n");
}

#[test]
fn events_arrive_and_their_context_is_freed() {
    assert_prints("examples/c/events.c", "statistics count writes\nevents arrived\n");
}

#[test]
fn every_function_works_from_c() {
    assert_prints("tests/c/functions.c", "all functions work\n");
}

#[test]
fn handles_outlive_their_database_and_threads_see_it_closed() {
    assert_prints("tests/c/closing.c", "closing is safe\n");
}

#[test]
fn the_header_is_clean_c99_and_cpp() {
    let include = crate_dir().join("include");
    let dir = tempfile::tempdir().unwrap();
    for (compiler, language, standard) in [("cc", "c", "-std=c99"), ("c++", "c++", "-std=c++11")] {
        if !has(compiler) {
            continue;
        }
        let source = dir.path().join("header");
        std::fs::write(&source, "#include <terrane.h>\n#include <terrane.h>\n").unwrap();
        let mut check = Command::new(compiler);
        check.args([standard, "-x", language, "-fsyntax-only"]).args(WARNINGS);
        succeed(check.arg("-I").arg(&include).arg(&source));
    }
}

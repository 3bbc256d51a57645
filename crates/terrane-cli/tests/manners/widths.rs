//! Text for people fits the terminal.

use std::process::Output;

use crate::support::{command, done, path};

/// Runs a command on an output of `columns` columns.
fn run_in(columns: usize, args: &[&str]) -> String {
    let output: Output = command(args).env("COLUMNS", columns.to_string()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

fn assert_fits(columns: usize, args: &[&str]) {
    let text = run_in(columns, args);
    assert!(!text.is_empty(), "{args:?} prints nothing");
    for line in text.lines() {
        // A path or a command is one word, so that it can be copied.
        let is_word = line.split_whitespace().any(|word| word.chars().count() + 8 > columns);
        assert!(line.chars().count() <= columns || is_word, "{args:?}:\n{line}");
    }
}

const SUBCOMMANDS: [&str; 21] = [
    "bench",
    "sweep",
    "stability",
    "replay",
    "workload",
    "shell",
    "cs265",
    "load",
    "dump",
    "inspect",
    "verify",
    "checkpoint",
    "backup",
    "compact",
    "repair",
    "design",
    "advise",
    "simulate",
    "stats",
    "options",
    "man",
];

#[test]
fn help_fits_the_terminal() {
    for name in SUBCOMMANDS {
        assert_fits(80, &[name, "--help"]);
    }
    for name in ["create", "list", "verify", "prune", "restore"] {
        assert_fits(80, &["backup", name, "--help"]);
    }
    assert_fits(80, &["--help"]);
}

#[test]
fn descriptions_fit_the_terminal() {
    for args in [
        &["options"][..],
        &["design", "list"],
        &["design", "list", "--about"],
        &["design", "enumerate"],
        &["design", "show", "leveling"],
        &["design", "show", "tiering T=4", "--records", "100M"],
        &["advise", "--mix", "update=80,get=20", "--records", "1M"],
        &["simulate", "--records", "1M", "--hours", "0.01"],
        &["workload", "show", "insert=50,update=10@zipf:0.99,get=30,missing=5,scan:16=4"],
    ] {
        assert_fits(80, args);
    }
}

#[test]
fn results_fit_the_terminal_and_use_a_wide_one() {
    let bench = ["bench", "--num", "5K", "--reads", "500"];
    let designs = ["--design", "leveling", "--design", "tiering", "--design", "lazy-leveling"];
    for columns in [60, 80] {
        assert_fits(columns, &bench);
        assert_fits(columns, &[&bench[..], &designs[..]].concat());
    }
    let wide = run_in(132, &bench);
    let measured = wide.lines().find(|line| line.starts_with("workload")).unwrap();
    assert!(measured.contains("p50") && measured.contains("stalls"), "{wide}");
    let mix = ["bench", "--num", "2K", "--mix", "insert=50,get=40,scan:16=10"];
    assert_fits(80, &mix);
    assert_fits(80, &["bench", "--memtable", "btree", "--memtable", "vector", "--num", "2K"]);
    let short = ["stability", "--records", "2K", "--testing", "0.5", "--running", "0.5"];
    assert_fits(80, &short);
}

#[test]
fn databases_fit_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let script: String =
        (0..3000).map(|number| format!("put user:{number:06} {number}\n")).collect();
    done(&["shell", &db, "--design", "leveling; buffer=64KiB"], &(script + "flush\n"));
    for args in [
        &["inspect", "tree", &db][..],
        &["inspect", "jobs", &db],
        &["inspect", "log", &db],
        &["inspect", "deletes", &db],
        &["inspect", "values", &db],
        &["inspect", "manifest", &db],
        &["inspect", "key", &db, "user:000001"],
        &["verify", &db],
        &["stats", &db],
        &["design", "show", "--db", &db],
        &["advise", &db, "--mix", "update=5,get=95"],
        &["shell", &db, "-c", "help"],
        &["shell", &db, "-c", "stats"],
        &["stats", &db],
        &["shell", &db, "-c", "tree"],
    ] {
        assert_fits(80, args);
    }
}

#[test]
fn a_pipe_gets_whole_lines() {
    let text = done(&["design", "show", "leveling", "--json"], "");
    assert_eq!(text.lines().count(), 1);
    assert_eq!(run_in(40, &["design", "show", "leveling", "--json"]), text);
    let text = done(&["options"], "");
    assert!(text.lines().any(|line| line.chars().count() > 120), "{text}");
}

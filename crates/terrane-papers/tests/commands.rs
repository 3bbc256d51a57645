//! The subcommands of `terrane-papers`, run as a user runs them.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::process::{Command, Output};

fn papers(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_terrane-papers")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Standard output of a command that must succeed.
fn done(args: &[&str]) -> String {
    let output = papers(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Exit code and standard error of a command that must fail.
fn fails(args: &[&str]) -> (i32, String) {
    let output = papers(args);
    assert!(!output.status.success(), "{args:?}: {}", text(&output.stdout));
    (output.status.code().unwrap(), text(&output.stderr))
}

#[test]
fn the_claims_of_a_paper_become_a_document() {
    let document = done(&["run", "memtables", "--scale", "0.005", "--rounds", "1"]);
    for figure in ["Fig. 1a", "Fig. 1b", "Fig. 2a", "Fig. 2b", "Fig. 3", "Fig. 4a", "Fig. 5"] {
        assert!(document.contains(&format!("\n| {figure}")), "{figure}: {document}");
    }
    for figure in ["| Fig. 6b | a vector makes the fewest flushes | ours |", "| published |"] {
        assert!(document.contains(figure), "{figure}: {document}");
    }
    assert!(document.contains("**(a)") && document.contains("**(c)"), "{document}");
    assert!(!document.contains("NaN"), "{document}");
}

#[test]
fn the_claims_of_flodb_become_a_document() {
    let claims = ["run", "flodb", "--scale", "0.0006", "--rounds", "1"];
    let document = done(&[&claims[..], &["--threads", "2"]].concat());
    for figure in 3..=17 {
        // Fig. 6 is a drawing.
        let is_there = figure == 6 || document.contains(&format!("Fig. {figure}"));
        // Figures that share a table with another one.
        assert!(is_there || [7, 10, 11].contains(&figure), "Fig. {figure}: {document}");
    }
    for claim in ["| published |", "| ours |", "2 threads", "restarts of 1000 scans"] {
        assert!(document.contains(claim), "{claim}: {document}");
    }
    assert!(!document.contains("NaN"), "{document}");
    assert_eq!(fails(&[&claims[..], &["--threads", "0"]].concat()).0, 2);
}

#[test]
fn dents_tree_is_measured_without_his_program_too() {
    let document = done(&["run", "dent", "--scale", "0.001", "--rounds", "1"]);
    for part in [
        "# Dent's tree",
        "| aim | every answer is right |  | 0 wrong | reproduced |",
        "| aim | five times the puts of Dent's program, for the same processor time |  | ?; by rate ? | \
         not measured |",
        "| then uniform gets |",
        "### Formulas",
        "## Fig. 2",
        "\n| 0.03125 | 10,700 |",
    ] {
        assert!(document.contains(part), "{part}: {document}");
    }
    assert!(!document.contains("NaN") && !document.contains("inf"), "{document}");
    let (code, _) = fails(&["run", "dent", "--beside", "/nowhere/lsm"]);
    assert_eq!(code, 2);
}

#[test]
fn the_claims_on_compaction_become_a_document() {
    let arguments = ["run", "compaction", "--scale", "0.00002", "--rounds", "1"];
    let document = done(&arguments);
    for number in 98..=111 {
        assert!(document.contains(&format!(" S2-{number} ")), "S2-{number}: {document}");
    }
    assert!(document.contains("| tsa33 |") && document.contains("| 1-lvl |"), "{document}");
}

#[test]
fn the_claims_on_stability_are_measured_too() {
    // All figures take half a minute at any scale.
    for (figure, rows, tables) in [
        (
            "12",
            ["Fig. 7a", "Fig. 9", "Fig. 12a"],
            ["### Fig. 7: ", "### Fig. 11: ", "### Fig. 12: "],
        ),
        ("13", ["Fig. 13", "Fig. 13", "Fig. 13"], ["### Fig. 13, 14: "; 3]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().to_str().unwrap();
        let run = ["run", "stability", "--scale", "0.00013", "--rounds", "1"];
        done(&[&run[..], &["--figure", figure, "--out", out]].concat());
        let document = std::fs::read_to_string(format!("{out}/stability.md")).unwrap();
        for row in rows {
            let line = document.lines().find(|line| line.starts_with(&format!("| {row}")));
            let is_measured = line.is_some_and(|line| !line.contains("not measured"));
            assert!(is_measured, "{row}: {document}");
        }
        assert!(tables.iter().all(|table| document.contains(table)), "{document}");
        assert!(!document.contains("### Fig. 10: ") && !document.contains("NaN"), "{document}");
    }
}

#[test]
fn the_claims_on_stability_become_a_document() {
    let small = ["run", "stability-simulated", "--hours", "0.05", "--records", "1M"];
    let document = done(&small);
    for figure in
        ["Fig. 1,", "Fig. 6a", "Fig. 7a", "Fig. 8", "Fig. 9", "Fig. 10a", "Fig. 11", "Fig. 12a"]
    {
        assert!(document.contains(&format!("\n| {figure}")), "{figure}: {document}");
    }
    for figure in ["Fig. 15", "Fig. 16", "Fig. 17", "Fig. 18a"] {
        assert!(document.contains(&format!("\n| {figure}")), "{figure}: {document}");
    }
    assert!(!document.contains("NaN"), "{document}");
}

#[test]
fn experiments_store_results_from_which_a_document_is_rendered_again() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let out = out.to_str().unwrap();
    let list = done(&["list"]);
    assert!(list.contains("compaction: ") && list.contains(" claims"), "{list}");
    let small = ["run", "compaction", "--scale", "0.00002", "--rounds", "1"];
    done(&[&small[..], &["--figure", "4a", "--out", out]].concat());
    let document = std::fs::read_to_string(format!("{out}/compaction.md")).unwrap();
    assert!(document.contains("## Claims"), "{document}");
    let results = format!("{out}/compaction.json");
    assert_eq!(done(&["report", &results]), document);
    let (code, error) = fails(&["report", &format!("{out}/compaction.md")]);
    assert!(code == 1 && error.contains("does not hold results of an experiment"), "{error}");
    assert_eq!(fails(&["run", "nothing"]).0, 2);
}

#[test]
fn one_figure_is_printed_with_its_numbers_and_claims() {
    let run = ["run", "compaction", "--scale", "0.00002", "--rounds", "1", "--figure", "4a"];
    let printed = done(&run);
    assert!(printed.starts_with("# Fig. 4a"), "{printed}");
    assert!(printed.contains("the paper") && printed.contains("here"), "{printed}");
    assert!(printed.contains("| source | the paper says |") && !printed.contains("Fig. 5"));
    let (code, error) = fails(&["run", "compaction", "--figure", "99"]);
    assert!(code == 2 && error.contains("no figure '99'"), "{error}");
}

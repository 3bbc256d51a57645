//! Reports of figures in a directory.

use std::fs;
use std::path::Path;

use crate::support::{done, path, run_to_end};

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_benchmark_leaves_a_report_with_the_verdict_and_the_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let out = path(dir.path(), "report");
    let args = ["bench", "--num", "20K", "--design", "leveling", "--design", "tiering", "--repeat"];
    let (code, _, error) = run_to_end(&[&args[..], &["2", "--out", &out]].concat(), "");
    assert!(code == 0 && error.contains("report.html"), "{error}");
    let found = names(Path::new(&out));
    for name in ["environment.json", "report.csv", "report.html", "report.jsonl", "throughput.svg"]
    {
        assert!(found.iter().any(|one| one == name), "{name} of {found:?}");
    }
    let read = |name: &str| fs::read_to_string(Path::new(&out).join(name)).unwrap();
    let page = read("report.html");
    assert!(page.contains("<h2>Verdict</h2>") && page.contains("tiering"), "{page}");
    assert!(page.contains("--repeat 2"), "the command is missing: {page}");
    let csv = read("report.csv");
    let line = |part: &str| csv.lines().filter(|line| line.contains(part)).count();
    assert_eq!(line("tiering,fillrandom,,2,,write_amplification,"), 1, "{csv}");
    assert_eq!(read("report.jsonl").lines().count(), 2 * 2 * 5);
}

#[test]
fn a_simulation_leaves_a_report_with_a_curve_for_each_design() {
    let dir = tempfile::tempdir().unwrap();
    let out = path(dir.path(), "report");
    let args = ["simulate", "--records", "1M", "--hours", "0.01"];
    let designs = ["--design", "leveling", "--design", "tiering T=3", "--out", &out];
    done(&[&args[..], &designs].concat(), "");
    let expected = [
        "environment.json",
        "latency.svg",
        "report.csv",
        "report.html",
        "report.jsonl",
        "runs.svg",
        "writes.svg",
    ];
    assert_eq!(names(Path::new(&out)), expected);
    let writes = fs::read_to_string(Path::new(&out).join("writes.svg")).unwrap();
    assert!(writes.contains("leveling") && writes.contains("tiering T=3"), "{writes}");
    let csv = fs::read_to_string(Path::new(&out).join("report.csv")).unwrap();
    assert!(csv.contains("phases.write_amplification,"), "{csv}");
}

#[test]
fn exports_of_benchmarks_and_sweeps_have_no_sentinels() {
    let dir = tempfile::tempdir().unwrap();
    let out = path(dir.path(), "sweep");
    // A kind of operation that never runs, workloads that write nothing, and a load without reads.
    let mix = ["bench", "--num", "500", "--mix", "get=1000000,delete=1", "--operations", "200"];
    let fill = ["bench", "--num", "500", "--workload", "fillrandom,readrandom"];
    let read = ["sweep", "--simulate", "--set", "num=100K", "--set", "mix=get=1|update=1", "--out"];
    let mut lines = done(&[&mix[..], &["--json"]].concat(), "");
    lines += &done(&[&fill[..], &["--json"]].concat(), "");
    done(&[&read[..], &[&out]].concat(), "");
    lines += &fs::read_to_string(Path::new(&out).join("results.jsonl")).unwrap();
    let mut idle = 0;
    for line in lines.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(terrane_lab::output::sentinels::sentinels(&value), [""; 0], "{line}");
        let kinds = value["kinds"].as_array().map_or(&[][..], Vec::as_slice);
        idle += kinds.iter().filter(|kind| kind["operations"] == 0).count();
    }
    assert!(idle > 0, "every kind of operation ran: {lines}");
}

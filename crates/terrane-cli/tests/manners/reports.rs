//! Reports of figures in a directory.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{done, path, run_to_end};

/// Returns the run inside a page.
fn run_of(page: &str) -> Value {
    let (_, data) =
        page.split_once("<script type=\"application/json\" id=\"terrane-run\">").unwrap();
    serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
}

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
    let run = run_of(&read("report.html"));
    let has = |part: &Value| run["blocks"].as_array().unwrap().contains(part);
    assert!(has(&json!({ "kind": "heading", "text": "Verdict" })), "{run}");
    let command = run["setting"].as_array().unwrap().iter().find(|row| row[0] == "command");
    assert!(command.unwrap()[1].as_str().unwrap().contains("--repeat 2"), "{run}");
    let figure =
        &run["blocks"].as_array().unwrap().iter().find(|block| block["name"] == "throughput");
    let figure = figure.unwrap();
    assert_eq!(figure["svg"], read("throughput.svg"));
    assert_eq!(figure["x_names"][0], "fillrandom");
    let curves = figure["curves"].as_array().unwrap();
    assert_eq!((curves.len(), &curves[1]["name"]), (2, &json!("tiering")));
    // Two repetitions: the median, and the range.
    let (value, range) = (&curves[1]["points"][0][1], &curves[1]["ranges"][0]);
    assert!(range[0].as_f64() <= value.as_f64() && value.as_f64() <= range[1].as_f64());
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
        let value: Value = serde_json::from_str(line).unwrap();
        assert_eq!(terrane_lab::output::sentinels::sentinels(&value), [""; 0], "{line}");
        let kinds = value["kinds"].as_array().map_or(&[][..], Vec::as_slice);
        idle += kinds.iter().filter(|kind| kind["operations"] == 0).count();
    }
    assert!(idle > 0, "every kind of operation ran: {lines}");
}

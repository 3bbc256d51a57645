//! `terrane stability`, run as a user runs it.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

use terrane_testkit::wait_until;

fn stability(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_terrane")).arg("stability").args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Standard output of an evaluation that must succeed.
fn done(args: &[&str]) -> String {
    let output = stability(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn path(dir: &Path, name: &str) -> String {
    dir.join(name).to_str().unwrap().to_owned()
}

/// Little data and a small tree, which still has something to merge.
const SMALL: [&str; 12] = [
    "--records",
    "3000",
    "--value-size",
    "100",
    "--design",
    "1-leveling T=4; buffer=128KiB; table=128KiB; scheduler=greedy",
    "--testing",
    "1.5",
    "--running",
    "1.2",
    "--warm-up",
    "0.5",
];

#[test]
fn an_evaluation_for_programs_has_both_phases_and_leaves_only_its_report() {
    let dir = tempfile::tempdir().unwrap();
    let (db, out) = (path(dir.path(), "db"), path(dir.path(), "out"));
    let more = ["--budget", "20MB/s", "--readers", "1", "--read", "short", "--utilization", "0.5"];
    let places = ["--db", &db, "--out", &out, "--json"];
    let printed = done(&[&SMALL[..], &more, &places].concat());
    assert!(printed.starts_with(r#"{"schema":1,"design":"1-leveling"#), "{printed}");
    let line: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let number = |of: &serde_json::Value, name: &str| of[name].as_f64().unwrap();
    let maximum = number(&line, "maximum_writes_per_second");
    let offered = number(&line, "offered_writes_per_second");
    assert!(maximum > 0.0 && (offered / maximum - 0.5).abs() < 0.01, "{maximum} {offered}");
    assert_eq!(terrane_lab::output::sentinels::sentinels(&line), [""; 0]);
    assert!(line["sustainable"].is_boolean() && line["mem"].is_null());
    assert!(line["conclusion"].is_string());
    assert!(line["outlook"].is_object() != line["outlook_withheld"].is_string());
    let scheduler = |name: &str| line[name].as_str().unwrap().contains("scheduler=greedy");
    assert!(scheduler("design_text") && !scheduler("testing_design_text"));
    assert!(line["testing_design_text"].as_str().unwrap().contains("intake=exact"));
    let running = &line["running"];
    let latency = |name: &str| number(&running[name], "p99");
    assert!(latency("write_latency_micros") >= latency("processing_latency_micros"));
    assert_eq!(running["readers"]["query"], "short");
    assert_eq!(running["readers"]["wrong_answers"], 0);
    assert!(!running["samples"].as_array().unwrap().is_empty());
    let levels: Vec<u64> = serde_json::from_value(running["merges_by_level"].clone()).unwrap();
    assert_eq!(Some(levels.iter().sum::<u64>()), running["merges"].as_u64());
    assert!(line["testing"]["flushes"].as_u64().unwrap() > 0);
    let ended = number(running, "completed") + number(running, "unfinished");
    assert_eq!(ended, number(running, "offered"), "every arrival is accounted for");

    assert!(!Path::new(&db).exists(), "the database is removed");
    let read = |name: &str| std::fs::read_to_string(Path::new(&out).join(name)).unwrap();
    assert_eq!(read("report.jsonl"), printed);
    let page = read("report.html");
    let (_, data) = page.split_once("id=\"terrane-run\">").unwrap();
    let run: serde_json::Value =
        serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    let blocks = run["blocks"].as_array().unwrap();
    for name in ["throughput", "latency", "longest", "runs", "queries"] {
        let name = format!("1-1-leveling-{name}");
        let figure = blocks.iter().find(|block| block["name"] == *name).unwrap();
        assert_eq!(figure["svg"], read(&format!("{name}.svg")));
        assert!(!figure["curves"].as_array().unwrap().is_empty(), "{name}");
    }
    assert!(blocks.iter().any(|block| block["mark"].is_string()), "the verdict");
    assert!(!page.contains("src=\""), "the page asks for nothing else");
}

#[test]
fn an_evaluation_for_people_ends_in_a_verdict_next_to_a_map_in_memory() {
    let more = ["--calibrate", "--arrival", "burst(20%,0.5,60%,0.2)", "--p99", "5s"];
    let printed = done(&[&SMALL[..], &more].concat());
    for words in [
        "testing 1.50 s, of which 500 ms warm-up",
        "arrivals burst(20%,0.5s,60%,0.2s)",
        "writes/s, ",
        "  runs     │",
        "percentile",
        "99.99 %",
        " × ",
        "an in-memory map",
        "as measured, 99.9 % within",
        "99 % of writes within",
        "longest stall",
    ] {
        assert!(printed.contains(words), "no '{words}' in {printed}");
    }
}

#[test]
fn records_may_have_secondary_indexes_whose_answers_are_right() {
    for how in ["eager(2)", "lazy(2)"] {
        let more = ["--index", how, "--readers", "1", "--read", "index:20", "--json"];
        let printed = done(&[&SMALL[..], &["--utilization", "0.3"], &more].concat());
        let line: serde_json::Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(line["indexes"], how);
        let readers = &line["running"]["readers"];
        assert_eq!(readers["query"], "index:20");
        assert_eq!(readers["wrong_answers"], 0, "{how}");
        assert!(readers["completed"].as_u64().unwrap() > 0, "{how}");
    }
}

#[test]
fn bad_arguments_are_refused_before_any_measurement() {
    let dir = tempfile::tempdir().unwrap();
    let full = path(dir.path(), "full");
    std::fs::create_dir(&full).unwrap();
    std::fs::write(Path::new(&full).join("file"), "precious").unwrap();
    let file = path(dir.path(), "full/file");
    for (args, code, words) in [
        (&["--utilization", "0"][..], 2, "utilization"),
        (&["--testing", "10", "--warm-up", "10"], 2, "warm-up"),
        (&["--design", "round"], 2, "terrane design list"),
        (&["--arrival", "poisson"], 2, "burst(LOW,SECONDS,HIGH,SECONDS)"),
        (&["--read", "sideways"], 2, "scan:ENTRIES"),
        (&["--readers", "1", "--read", "index"], 2, "needs --index"),
        (&["--index", "keen"], 2, "eager(3)"),
        (&["--budget", "1KB"], 2, "64 KiB"),
        (&["--budget", "1MB/s", "--io-budget", "1MB/s"], 2, "cannot be used with"),
        (&["--db", &full], 2, "is not empty"),
        (&["--db", &file], 2, "cannot use"),
        (&["--out", &file], 1, "cannot create"),
    ] {
        let output = stability(args);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
        assert!(error.contains(words), "{args:?}: {error}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
}

#[test]
fn an_interrupted_evaluation_removes_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_terrane"));
    command.args(["stability", "--records", "1000", "--value-size", "10"]);
    command.env("TMPDIR", dir.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let made = || std::fs::read_dir(dir.path()).unwrap().next();
    let has_database = || std::fs::read_dir(made()?.unwrap().path()).ok()?.next();
    wait_until(|| has_database().is_some(), || "the command makes no database".into());
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(made().is_none());
}

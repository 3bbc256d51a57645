//! Advice and sweeps, run as a user runs them.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use terrane_testkit::wait_until;

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_terrane"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(args: &[&str], input: &str) -> Output {
    let mut child = command(args).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input.as_bytes()));
        child.wait_with_output().unwrap()
    })
}

/// Standard output of a command that must succeed.
fn done(args: &[&str], input: &str) -> String {
    let output = run(args, input);
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {printed}");
    String::from_utf8(output.stdout).unwrap()
}

/// Standard error of a command that must end with a usage error.
fn refused(args: &[&str]) -> String {
    let output = run(args, "");
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn path(dir: &Path, name: &str) -> String {
    dir.join(name).to_str().unwrap().to_owned()
}

fn last_json(text: &str) -> Value {
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

#[test]
fn advice_names_the_best_and_the_worst_and_is_the_same_every_time() {
    let args = [
        "advise",
        "--mix",
        "update=90,get=10",
        "--records",
        "2M",
        "--record-size",
        "256",
        "--json",
    ];
    let first = done(&args, "");
    assert_eq!(first, done(&args, ""));
    let printed = last_json(&first);
    let score = |one: &Value| one["score_micros"].as_f64().unwrap();
    let (best, worst) = (&printed["best"], &printed["avoid"]);
    assert!(score(&best[0]) <= score(&printed["now"]) && score(&printed["now"]) < score(&worst[0]));
    assert!(score(&best[0]) <= score(&best[1]) && score(&worst[0]) >= score(&worst[1]));
    let design = best[0]["design"].as_str().unwrap();
    done(&["design", "show", design], "");

    let reads = ["advise", "--mix", "update=2,get=40,missing=58", "--records", "2M", "--json"];
    let reads = last_json(&done(&reads, ""));
    assert!(reads["best"][0]["runs"].as_f64() < best[0]["runs"].as_f64());

    let text = done(&["advise", "--records", "500K", "--max-space", "1.2"], "");
    for part in ["no --mix was given", "avoid", "compared with the present design", "terrane bench"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn advice_on_nonsense_is_refused() {
    for args in [
        &["advise", "--mix", "put=1"][..],
        &["advise", "--design", "round"],
        &["advise", "--objective", "speed=1"],
        &["advise", "--bits", "-3"],
        &["advise", "--max-space=-1"],
        &["advise", "--records", "0"],
        &["advise", "--apply"],
    ] {
        refused(args);
    }
}

#[test]
fn advice_on_a_database_uses_its_tree_and_the_cost_of_a_change() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let design = "tiering T=6; buffer=64KiB; table=64KiB; filter=10";
    let entries: String = (0..6000).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "put key{:05} {:0>100}", number * 389 % 6000, number);
        text
    });
    done(&["shell", &db, "--design", design], &entries);
    let reads = ["advise", &db, "--mix", "update=1,get=50,missing=49", "--rate", "50K"];
    let printed = last_json(&done(&[&reads[..], &["--json"]].concat(), ""));
    let records = printed["records"].as_f64().unwrap();
    assert!((5500.0..=6000.0).contains(&records), "{records}");
    assert_eq!(printed["change"]["is_done"], false);
    // Only lookups: a kind with fast lookups, with the prefix of the keys, which differ in eight
    // bytes.
    let kinds = printed["memtables"].as_array().unwrap();
    assert!(kinds.len() >= 8 && printed["memtable_now"]["memtable"] == "btree", "{printed}");
    let nanos: Vec<f64> = kinds.iter().map(|kind| kind["nanos"].as_f64().unwrap()).collect();
    assert!(nanos.is_sorted() && nanos[0] <= printed["memtable_now"]["nanos"].as_f64().unwrap());
    let has =
        |text: &str| kinds.iter().any(|kind| kind["memtable"].as_str().unwrap().contains(text));
    assert!(has("hash-linkedlist(prefix=8") && has("hash-vector("), "{kinds:?}");
    let text = done(&reads, "");
    assert!(text.contains("memtables, in memory") && text.contains("ns/op  btree"), "{text}");
    assert!(text.contains("terrane design set") && text.contains("--dry-run"), "{text}");
    // The gain does not pay for the change within a nanosecond.
    let at_once = [&reads[..], &["--apply", "--within", "1ns", "--gain", "99", "--json"]].concat();
    assert_eq!(last_json(&done(&at_once, ""))["change"]["is_done"], false);
    let change =
        last_json(&done(&[&reads[..], &["--apply", "--gain", "1", "--json"]].concat(), ""));
    assert_eq!(change["change"]["is_done"], true, "{change}");
    let words = |json: Value| json["words"].clone();
    let before = words(last_json(&done(&["design", "show", design, "--json"], "")));
    let now = done(&["design", "show", "--db", &db, "--json"], "");
    assert_ne!(words(last_json(&now)), before, "{now}");
    assert!(done(&["shell", &db, "-c", "count"], "").contains("6000"));
    done(&["verify", &db], "");
}

#[test]
fn advice_uses_the_operations_that_the_database_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let design = "leveling T=4; buffer=64KiB; table=64KiB; filter=10";
    done(&["shell", &db, "--design", design], "put a 1\nget a\nflush\n");
    let error = refused(&["advise", &db]);
    assert!(error.contains("recorded only 2 operations") && error.contains("--mix"), "{error}");
    let script: String = (0..3000).fold(String::new(), |mut text, number| {
        let _ =
            writeln!(text, "put k{:04} {number:0>90}\nget k{number:04}\nget none", number % 900);
        if number % 10 == 0 {
            let _ = writeln!(text, "scan k{:04}.. limit 8", number % 900);
        }
        text
    });
    done(&["shell", &db], &script);
    let printed = last_json(&done(&["advise", &db, "--effort", "5", "--json"], ""));
    // The history decays with a half-life of a day, so it is nearly complete.
    let remembered = printed["operations_remembered"].as_u64().unwrap();
    assert!((9290..=9302).contains(&remembered), "{printed}");
    let share = |what: &str| printed["operations"][what].as_f64().unwrap();
    assert!((share("writes") - 3001.0 / 9302.0).abs() < 0.001, "{printed}");
    assert!((share("scans") - 300.0 / 9302.0).abs() < 0.001, "{printed}");
    assert!(share("missing") >= 3000.0 / 9302.0 - 0.001, "{printed}");
    assert!((6.0..=9.0).contains(&share("scan_entries")), "{printed}");
    let text = done(&["advise", &db, "--effort", "5"], "");
    assert!(text.contains("from the last 9,") && text.contains("recorded"), "{text}");
    // A given mix replaces the history.
    let given = ["advise", &db, "--effort", "5", "--mix", "get=100", "--json"];
    assert_eq!(last_json(&done(&given, ""))["operations"]["found"], 1.0);
}

#[test]
fn a_shell_adapts_to_a_workload_that_shifts_and_answers_stay_right() {
    const KEYS: usize = 12_000;
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let mut script = String::new();
    let put = |script: &mut String, round: usize| {
        for number in 0..KEYS {
            let key = number * 7919 % KEYS;
            let _ = writeln!(script, "put k{key:05} {round:0>80}");
        }
    };
    put(&mut script, 1);
    put(&mut script, 2);
    // Only writes so far.
    script.push_str("advise apply gain 5\n");
    put(&mut script, 3);
    for number in 0..3 * KEYS {
        let _ = writeln!(script, "get k{:05}", number * 31 % KEYS);
    }
    // The writes of the third round came after the last advice, and are a quarter of the
    // operations.
    script.push_str("flush\nadvise\n");
    for number in 0..3 * KEYS {
        let _ = writeln!(script, "get k{:05}", number * 37 % KEYS);
    }
    script.push_str("advise apply gain 5\n");
    let design = "leveling T=8; buffer=64KiB; table=64KiB; filter=10";
    let printed = done(&["shell", &db, "--json", "--design", design], &script);
    let mut advice: Vec<Value> = Vec::new();
    let mut gets = 0;
    for line in printed.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        if line.get("change").is_some() {
            advice.push(line);
        } else if let Some(value) = line.get("value") {
            assert_eq!(value.as_str().unwrap().trim_start_matches('0'), "3");
            gets += 1;
        }
    }
    assert_eq!(gets, 6 * KEYS);
    assert_eq!(advice.len(), 3, "{advice:?}");
    let (writes, reads) = (&advice[0], &advice[2]);
    assert_eq!(writes["operations"]["writes"], 1.0);
    assert_eq!(reads["operations"]["found"], 1.0);
    assert_eq!(advice[1]["change"]["is_done"], false);
    for (one, what) in [(writes, "writes"), (reads, "reads")] {
        assert_eq!(one["change"]["is_done"], true, "{what}: {one}");
    }
    let runs = |one: &Value| one["best"][0]["runs"].as_f64().unwrap();
    assert!(runs(writes) > runs(reads), "{writes}\n{reads}");
    let too_little = run(&["shell", &db, "-c", "advise"], "");
    assert!(String::from_utf8_lossy(&too_little.stderr).contains("advise needs 1,000 operations"));
    let entries = done(&["shell", &db, "-c", "scan"], "");
    assert_eq!(entries.lines().count(), KEYS);
    assert!(entries.lines().all(|line| line.ends_with('3')));
}

const PLAN: &str = "\
num = \"3K\"
workload = \"fillrandom,overwrite,readrandom\"
buffer = \"64KiB\"
table = \"64KiB\"
[[experiments]]
design = [\"leveling\", \"tiering\"]
T = [3, 6]
[[experiments]]
design = \"balanced\"
base = \"256KiB\"
";

fn results(out: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(Path::new(out).join("results.jsonl")).unwrap_or_default();
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_killed_sweep_resumes_and_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let (plan, out) = (path(dir.path(), "plan.toml"), path(dir.path(), "out"));
    // The killed sweep has one more experiment at the end, which takes minutes.
    let endless = "[[experiments]]\ndesign = \"balanced\"\nnum = \"100M\"\n";
    std::fs::write(&plan, PLAN).unwrap();
    let args = ["sweep", &plan, "--out", &out, "--rounds", "2"];
    let listed = done(&[&args[..], &["--dry-run"]].concat(), "");
    assert!(listed.contains("10 experiments to run, about ") && listed.contains("; 0 done"));
    assert!(!Path::new(&out).exists());

    // A killed sweep cannot remove its databases, so it keeps them in the results directory only.
    let elsewhere = path(dir.path(), "not there");
    std::fs::write(&plan, PLAN.to_owned() + endless).unwrap();
    let mut child = command(&args).env("TMPDIR", elsewhere).spawn().unwrap();
    wait_until(|| results(&out).len() == 5, || format!("{} results", results(&out).len()));
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::write(&plan, PLAN).unwrap();
    let in_progress = Path::new(&out).join("terrane-sweep-in-progress");
    assert!(in_progress.exists());
    let before = results(&out);
    assert_eq!(before.len(), 5, "{before:?}");
    // The kill may also leave a torn line.
    let file = Path::new(&out).join("results.jsonl");
    let mut text = std::fs::read_to_string(&file).unwrap();
    text.truncate(text.rfind('\n').unwrap() + 1);
    std::fs::write(&file, text + "{\"schema\":1,\"key\":\"12").unwrap();

    done(&args, "");
    let after = results(&out);
    assert_eq!((after.len(), &after[..before.len()]), (10, &before[..]));
    assert!(!in_progress.exists());
    let keys: BTreeSet<&str> = after.iter().map(|line| line["key"].as_str().unwrap()).collect();
    assert_eq!(keys.len(), 10);
    let listed = done(&[&args[..], &["--dry-run"]].concat(), "");
    assert!(listed.contains("0 experiments to run") && listed.contains("10 done"), "{listed}");
    done(&args, "");
    assert_eq!(results(&out).len(), 10);

    let svg = path(dir.path(), "t.svg");
    let show = ["sweep", "show", &out, "--x", "T", "--y", "write_amplification", "--by", "design"];
    let csv = done(&[&show[..], &["--csv", "--svg", &svg]].concat(), "");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "design,3,6");
    // At T=3, the two designs merge so few entries about equally often.
    let amplification = |line: &str| line.split(',').nth(2).unwrap().parse::<f64>().unwrap();
    assert!(lines[1].starts_with("leveling,") && lines[2].starts_with("tiering,"), "{csv}");
    assert!(amplification(lines[1]) > amplification(lines[2]), "{csv}");
    assert!(std::fs::read_to_string(svg).unwrap().starts_with("<svg"));
    assert!(done(&show, "").contains("leveling"));
    let figure = "write_amplification";
    for (args, part) in [
        (&["--x", "T", "--y", "write_amplificatio"][..], "did you mean 'write_amplification'"),
        (&["--x", "T", "--y", "latency_micros"], "latency_micros.p99"),
        (&["--x", "t", "--y", figure], "did you mean 'T'"),
        (&["--x", "T", "--y", figure, "--by", "buckets"], "no result in"),
        (&["--x", "T", "--y", figure, "--only", "T=77"], "'T' is "),
        (&["--x", "T", "--y", figure, "--only", "T"], "NAME=VALUE"),
    ] {
        let error = refused(&[&["sweep", "show", &out][..], args].concat());
        assert!(error.contains(part), "{args:?}: {error}");
    }
    let none = path(dir.path(), "none");
    let output = run(&["sweep", "show", &none, "--x", "T", "--y", figure], "");
    assert!(String::from_utf8_lossy(&output.stderr).contains("holds no results"));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_simulator_runs_the_same_experiments_at_any_size() {
    let dir = tempfile::tempdir().unwrap();
    let out = path(dir.path(), "out");
    let set = ["--set", "design=leveling|tiering", "--set", "T=4|8", "--set", "num=10M"];
    done(&[&["sweep", "--simulate", "--jobs", "2", "--out", &out][..], &set].concat(), "");
    let show = ["sweep", "show", &out, "--x", "T", "--y", "write_amplification", "--by", "design"];
    let csv = done(&[&show[..], &["--csv"]].concat(), "");
    let cell = |line: usize, column: usize| -> f64 {
        csv.lines().nth(line).unwrap().split(',').nth(column).unwrap().parse().unwrap()
    };
    assert!(cell(1, 1) > cell(2, 1) && cell(1, 2) > cell(2, 2), "{csv}");
    // Results of the engine do not count as results of the simulator.
    let small = [&["sweep", "--out", &out, "--dry-run"][..], &set].concat();
    assert!(done(&small, "").contains("4 experiments to run"));
    let slip = refused(&["sweep", "--set", "nmu=1K", "--out", &out]);
    assert!(
        slip.contains("unknown parameter 'nmu'") && slip.contains("did you mean 'num'"),
        "{slip}"
    );
    for args in [
        &["sweep", "--out", &out][..],
        &["sweep", "--set", "speed=1", "--out", &out],
        &["sweep", "--set", "design", "--out", &out],
        &["sweep", "--set", "num=1K"],
        &["sweep", "--simulate", "--set", "workload=fillseq", "--out", &out],
    ] {
        refused(args);
    }
}

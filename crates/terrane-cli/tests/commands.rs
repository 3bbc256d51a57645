//! Every subcommand, run as a user runs it.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use terrane_testkit::wait_until;

fn terrane(args: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_terrane"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that reads nothing may have exited already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Standard output of a command that must succeed.
fn done(args: &[&str], input: &str) -> String {
    let output = terrane(args, input);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Exit code and standard error of a command that must fail.
fn fails(args: &[&str], input: &str) -> (i32, String) {
    let output = terrane(args, input);
    assert!(!output.status.success(), "{args:?}: {}", text(&output.stdout));
    (output.status.code().unwrap(), text(&output.stderr))
}

fn path(dir: &Path, name: &str) -> String {
    dir.join(name).to_str().unwrap().to_owned()
}

#[test]
fn a_script_of_the_shell_is_answered_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let script = "put a 1\nput b 2\nput 'c d' 0xff00\nget a\nget none\ncount\nscan\ndel a\ncount\n";
    assert_eq!(
        done(&["shell", &db], script),
        "ok\nok\nok\n1\n(nil)\n3\na\t1\nb\t2\n'c d'\t0xff00\nok\n2\n"
    );
    let output = terrane(&["shell", &db], "get b\nbogus\nget b\n");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), "2\n2\n".into()));
    assert!(text(&output.stderr).contains("line 2"), "{}", text(&output.stderr));
}

#[test]
fn a_shell_shows_past_events_and_a_benchmark_current_ones() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let script = "put a 1\nflush\nput b 2\nflush\ncompact\nevents\n";
    let printed = done(&["shell", &db], script);
    let events: Vec<&str> = printed.lines().filter(|line| *line != "ok").collect();
    assert!(events.len() >= 6, "{printed}");
    assert!(events[0].contains("default: flushing 1 entry"), "{printed}");
    assert!(events[5].contains("compacted L0") && events[5].contains("manual"), "{printed}");
    let script = "put a 1\nflush\nevents 1\n";
    let printed = done(&["shell", &db, "--json"], script);
    let last: serde_json::Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
    assert_eq!((&last["event"], &last["number"]), (&"flush-ended".into(), &2.into()), "{printed}");
    let output = terrane(&["bench", "--events", "--num", "1K", "--workload", "fillseq"], "");
    assert!(text(&output.stderr).contains("default: flushed into 1 table"));
}

#[test]
fn a_design_change_reports_its_cost_and_time_and_can_be_undone() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let line = |key: u32| format!("{key:05}\tvalue {key} of some length\n");
    let scattered: String = (0..3000).map(|number| line(number * 389 % 3000)).collect();
    done(&["shell", &db, "--design", "tiering T=8; buffer=16KiB; table=16KiB", "-c", "flush"], "");
    done(&["load", &db, "-"], &scattered);
    let leveling = "leveling T=4; buffer=16KiB; table=16KiB";
    let printed = done(&["design", "set", &db, leveling, "--dry-run", "--budget", "1KiB"], "");
    assert!(printed.contains("1.00 KiB/s, the budget") && printed.contains(" s at "), "{printed}");
    assert_eq!(fails(&["design", "set", &db, "--undo"], "").0, 1);
    let printed = done(&["design", "set", &db, leveling, "--converge", "--json"], "");
    let printed: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&printed["is_done"], &printed["is_cancelled"]), (&true.into(), &false.into()));
    let again = done(&["design", "set", &db, leveling, "--dry-run"], "");
    assert!(again.contains("nothing to rewrite"), "{again}");
    let back = done(&["design", "set", &db, "--undo", "--dry-run"], "");
    assert!(back.contains("back to tiering T=8"), "{back}");
    done(&["design", "set", &db, "--undo"], "");
    assert!(done(&["design", "show", "--db", &db], "").contains("tiering T=8"));
    assert_eq!(fails(&["design", "set", &db, "tiering", "--undo"], "").0, 2);
    assert_eq!(fails(&["design", "set", &db, "tiering", "--budget", "0"], "").0, 2);
    assert_eq!(done(&["dump", &db], ""), (0..3000).map(line).collect::<String>());
}

#[test]
fn the_cs265_language_answers_like_its_specification() {
    let script = "p 10 7\np -63 222\np 76 -4\ng 10\ng 11\nr -100 76\nd 10\ng 10\nr -100 100\n";
    assert_eq!(done(&["cs265"], script), "7\n\n-63:222 10:7\n\n-63:222 76:-4\n");
    let output = terrane(&["cs265"], "p 1 2\nx\ng 1\n");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), "2\n".into()));
    assert!(text(&output.stderr).contains("line 2"), "{}", text(&output.stderr));
}

#[test]
fn a_dump_can_be_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (path(dir.path(), "first"), path(dir.path(), "second"));
    done(&["shell", &first], "put a 1\nput \"tab\\there\" \"line\\nhere\"\nput 0xff00 ''\n");
    for name in ["all.tsv", "all.jsonl"] {
        let file = path(dir.path(), name);
        done(&["dump", &first, &file], "");
        done(&["load", &second, &file], "");
        assert_eq!(done(&["shell", &second], "scan\n"), done(&["shell", &first], "scan\n"));
        std::fs::remove_dir_all(&second).unwrap();
    }
    let (code, error) = fails(&["load", &second, &path(dir.path(), "none.tsv")], "");
    assert!(code == 1 && error.contains("none.tsv"), "{code} {error}");
}

#[test]
fn a_sorted_load_is_whole_or_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    done(&["shell", &db], "put 00002 before\nput x 1\n");
    let line = |key: u32| format!("{key:05}\tvalue {key}\n");
    let sorted: String = (0..2000).map(line).collect();
    let printed = done(&["load", &db, "-", "--sorted", "--json"], &sorted);
    let printed: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&printed["entries"], &printed["durability"]), (&2000.into(), &"sync".into()));
    assert_eq!(done(&["dump", &db], ""), format!("{sorted}x\t1\n"));
    assert!(done(&["verify", &db], "").starts_with("ok: "));
    for text in ["a\t1\nc\t2\nb\t3\n", "a\t1\na\t2\n", "a\t1\nbad line\n"] {
        let (code, error) = fails(&["load", &db, "-", "--sorted"], text);
        assert!(code == 1 && error.contains("no entry was loaded"), "{code} {error}");
        assert!(error.contains("line "), "{error}");
    }
    assert_eq!(done(&["dump", &db], ""), format!("{sorted}x\t1\n"));
    let manifest = done(&["inspect", "manifest", &db], "");
    assert!(manifest.contains("the last ingest has sequence number"), "{manifest}");
}

#[test]
fn files_can_be_inspected_verified_and_repaired() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    done(&["shell", &db], "put a 1\nput b 2\ndel a\n");
    assert!(done(&["verify", &db], "").starts_with("ok: "));
    assert!(done(&["inspect", "log", &db], "").contains("put b = 1 B"));
    let deletes = done(&["inspect", "deletes", &db], "");
    assert!(deletes.contains("the log: 3 writes with 1 delete in 1 file"), "{deletes}");
    done(&["compact", &db], "");
    assert!(done(&["inspect", "tree", &db], "").contains("1 table"));
    assert!(done(&["inspect", "manifest", &db], "").contains("keyspace 0"));
    let tables = std::fs::read_dir(&db).unwrap().map(|entry| entry.unwrap().path());
    let table = tables.filter(|path| path.extension().is_some_and(|end| end == "sst")).last();
    let table = table.unwrap();
    let name = table.to_str().unwrap();
    let printed = done(&["inspect", "table", name, "--entries", "--json"], "");
    assert!(printed.contains(r#"{"key":"b","sequence_number":2,"value":"2"}"#), "{printed}");

    let copy = path(dir.path(), "copy");
    done(&["checkpoint", &db, &copy], "");
    assert_eq!(done(&["shell", &copy], "scan\n"), "b\t2\n");

    // Replaces the file instead of writing to it, because the checkpoint links to it.
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[20] ^= 1;
    std::fs::remove_file(&table).unwrap();
    std::fs::write(&table, bytes).unwrap();
    assert_eq!(terrane(&["verify", &db], "").status.code(), Some(4));
    assert_eq!(terrane(&["repair", &db], "").status.code(), Some(4));
    assert!(done(&["verify", &format!("{db}.repaired")], "").starts_with("ok: "));
    assert!(done(&["verify", &copy], "").starts_with("ok: "));
}

#[test]
fn designs_options_and_completions_are_listed() {
    assert!(done(&["design", "list"], "").contains("lazy-leveling"));
    assert!(done(&["design", "show", "dent"], "").contains("tiering"));
    assert_eq!(fails(&["design", "show", "nonsense"], "").0, 2);
    let costs = ["design", "show", "tiering T=4", "--records", "100M", "--record-size", "128"];
    let printed = done(&costs, "");
    assert!(printed.contains("100,000,000 records of 128 B"), "{printed}");
    assert!(printed.contains("bytes to tables") && printed.contains("blocks read"), "{printed}");
    let json = done(&[&costs[..], &["--json"]].concat(), "");
    assert!(json.contains("\"write_amplification\":"), "{json}");
    assert!(!done(&["design", "show", "tiering"], "").contains("blocks read"));
    assert_eq!(fails(&["design", "show", "tiering", "--record-size", "8"], "").0, 2);
    let none = ["design", "show", "tiering", "--records", "5", "--record-size", "0"];
    assert_eq!(fails(&none, "").0, 2);
    assert!(done(&["options"], "").contains("--memory-budget"));
    assert!(done(&["completions", "bash"], "").contains("checkpoint"));
    assert!(done(&["man", "inspect", "table"], "").contains("entries"));
}

#[test]
fn a_short_benchmark_prints_its_results_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "bench");
    let workloads = "fillrandom,readrandom,readseq,ycsb-f";
    let args = ["bench", "--num", "2000", "--workload", workloads, "--db", &db, "--json"];
    let printed = done(&args, "");
    for workload in workloads.split(',') {
        assert!(printed.contains(&format!(r#""workload":"{workload}""#)), "{printed}");
    }
    assert!(printed.lines().all(|line| line.starts_with(r#"{"schema":1,"#)), "{printed}");
    assert!(!Path::new(&db).exists());
}

#[test]
fn a_mix_is_run_on_several_designs_and_they_are_compared() {
    let mix = "insert=30,update=10@zipf,delete=10,get=30@normal,missing=10,scan:8=6,scan:1%=4";
    let mut args = vec!["bench", "--num", "2000", "--mix", mix, "--repeat", "2", "--threads", "2"];
    args.extend(["--design", "leveling; buffer=16KiB; table=16KiB; base=64KiB"]);
    args.extend(["--design", "tiering; buffer=16KiB; table=16KiB"]);
    let shown = done(&args, "");
    for part in ["mix side by side, medians of 2", "rewrite amp", "scan:1%", "Kinds of operation"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // Every line has a best design.
    assert!(shown.contains(&"█".repeat(12)), "{shown}");
    args.push("--json");
    let printed = done(&args, "");
    assert_eq!(printed.matches(r#""workload":"mix""#).count(), 4, "{printed}");
    assert_eq!(printed.matches(r#""comparison":"mix""#).count(), 1, "{printed}");
    for part in [r#""kind":"scan:8""#, r#""repetition":2"#, r#""of_best":1.0"#, r#""levels_read""#]
    {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert!(printed.lines().all(|line| line.starts_with(r#"{"schema":1,"#)), "{printed}");
}

#[test]
fn keys_can_be_crowded_and_kinds_serial() {
    for mix in ["insert=1@normal:0.1,get=1,missing=1", "insert=1@zipf,scan=1,delete=1"] {
        let args = ["bench", "--num", "1000", "--serial", "--key-size", "8", "--mix", mix];
        assert!(done(&args, "").contains("Kinds of operation"), "{mix}");
    }
    let (code, error) = fails(&["bench", "--mix", "put=1"], "");
    assert!(code == 2 && error.contains("one of insert, update"), "{error}");
    assert_eq!(fails(&["bench", "--serial"], "").0, 2);
    assert_eq!(fails(&["bench", "--mix", "insert=1@normal", "--key-size", "2"], "").0, 2);
}

#[test]
fn bad_usage_and_locked_databases_have_distinct_exit_codes() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    assert_eq!(fails(&["nonsense"], "").0, 2);
    assert_eq!(fails(&["bench", "--num", "many"], "").0, 2);
    assert_eq!(fails(&["verify", &path(dir.path(), "none")], "").0, 1);
    let held = terrane_db(&db);
    let (code, error) = fails(&["shell", &db], "put a 1\n");
    assert_eq!(code, 5, "{error}");
    assert!(error.contains(&std::process::id().to_string()), "{error}");
    drop(held);
    // A process that another test is forking inherits the lock and keeps it until it calls exec.
    let puts = || terrane(&["shell", &db], "put a 1\n").stdout == b"ok\n";
    wait_until(puts, || "the lock is never free".into());
}

fn terrane_db(dir: &str) -> terrane::Db {
    terrane::Db::open(dir).unwrap()
}

#[test]
fn memtables_are_shown_with_their_uses() {
    let design = "leveling; memtable=hash-skiplist(prefix=6,buckets=100000)";
    let shown = done(&["design", "show", design], "");
    assert!(shown.contains("  memtable=hash-skiplist(prefix=6,buckets=100000)\n"), "{shown}");
    assert!(shown.contains("lookups and ranges within a prefix search one bucket"), "{shown}");
    // The table of buckets, and the overhead of an entry.
    assert!(shown.contains("before the first entry and"), "{shown}");
    assert!(shown.contains("measured just now"), "{shown}");
    let memory = |memtable: &str| {
        let design = format!("leveling; buffer=4MiB; memtable={memtable}");
        let shown = done(&["design", "show", &design, "--json"], "");
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        ["fixed_bytes", "entry_bytes", "entries"]
            .map(|name| shown["memtable"][name].as_f64().unwrap())
    };
    let (few, many) = (memory("hash-vector(buckets=1)"), memory("hash-vector(buckets=100000)"));
    assert!((many[0] - few[0] - 99_999.0 * 8.0).abs() < 100.0, "{few:?} {many:?}");
    assert!(many[2] < few[2] && memory("vector")[2] > few[2]);
    assert!((20.0..60.0).contains(&memory("btree")[1]), "{:?}", memory("btree"));
    // A buffer of this size is too large to try.
    assert!(!done(&["design", "show", "leveling; buffer=1TiB"], "").contains("measured just now"));
    let (code, error) = fails(&["design", "show", "leveling; memtable=vector(query=never)"], "");
    assert!(code == 2 && error.contains("resort, copy or scan"), "{error}");
}

#[test]
fn memtables_alone_are_measured() {
    let dir = tempfile::tempdir().unwrap();
    let series = path(dir.path(), "series.tsv");
    // A kind chosen at a rotation cannot be measured alone.
    let examples = terrane_policy::MemtableKind::EXAMPLES.iter();
    let kinds: Vec<&str> = examples.copied().filter(|kind| *kind != "auto").collect();
    let mut args = vec!["bench", "--num", "2000", "--series", &series, "--json"];
    args.extend(["--ranges", "20", "--selectivity", "0.05"]);
    args.extend(kinds.iter().flat_map(|kind| ["--memtable", *kind]));
    let rows = done(&args, "");
    assert_eq!(rows.lines().count(), kinds.len());
    for (row, kind) in rows.lines().zip(&kinds) {
        assert!(row.contains(&format!("\"memtable\":\"{kind}\"")), "{row}");
        let row: serde_json::Value = serde_json::from_str(row).unwrap();
        assert_eq!(row["entries"], 2000);
        for operation in ["inserts", "lookups", "ranges"] {
            let of = |name: &str| row[operation][name].as_f64().unwrap();
            // The greatest latency comes from one round, the others from the fastest of all rounds.
            assert!(of("max") >= of("p99_9") && of("p99_9") >= of("p50"), "{row}");
        }
    }
    // A header, and a line for each insert, each sampled lookup and each range of each kind.
    let lines = std::fs::read_to_string(&series).unwrap().lines().count();
    assert_eq!(lines, 1 + kinds.len() * (2000 + 200 + 20));
    args.retain(|arg| *arg != "--json");
    let shown = done(&args, "");
    assert!(shown.contains("bytes/entry") && shown.contains("range ns"), "{shown}");
    assert_eq!(fails(&["bench", "--ranges", "20"], "").0, 2);
    assert_eq!(fails(&["bench", "--memtable", "btree", "--design", "leveling"], "").0, 2);
    assert_eq!(fails(&["bench", "--memtable", "trie"], "").0, 2);
}

#[test]
fn designs_are_simulated_at_any_size() {
    let design = "tiering T=4; granularity=level";
    let large = ["simulate", "--design", design, "--records", "1e10", "--budget", "100MB/s"];
    let printed = done(&[&large[..], &["--hours", "0.2"]].concat(), "");
    for line in ["10,000,000,000 records", "throughput", "amplification", "runs", "latency", "tree"]
    {
        assert!(printed.contains(line), "{line}: {printed}");
    }
    let both =
        ["simulate", "--two-phase", "--records", "1M", "--hours", "0.1", "--budget", "20MB/s"];
    assert!(done(&both, "").contains("sustainable"));
    let json = done(&[&both[..], &["--json"]].concat(), "");
    for field in ["\"is_sustainable\":", "\"phase\":\"running\"", "\"p99.99\"", "\"windows\":[{"] {
        assert!(json.contains(field), "{field}: {json}");
    }
    assert_eq!(json, done(&[&both[..], &["--json"]].concat(), ""), "the same is the same again");
    let burst = ["--arrival", "burst(100,5s,90000,5s)", "--records", "1M", "--hours", "0.01"];
    assert!(done(&[&["simulate"][..], &burst].concat(), "").contains("processing"));
    // 0.1 / 4.4 and 4.3 / 4.4 add up to more than 1.
    let rounded = ["--mix", "insert=0.1,delete=4.3", "--records", "100K", "--hours", "0.01"];
    done(&[&["simulate"][..], &rounded].concat(), "");
    for bad in [
        ["--records", "none"],
        ["--budget", "0"],
        ["--design", "no-such-design"],
        ["--arrival", "burst(1)"],
        ["--keys", "zipf(-1)"],
        ["--hours", "-1"],
        ["--start", "half"],
    ] {
        assert_eq!(fails(&[&["simulate"][..], &bad].concat(), "").0, 2, "{bad:?}");
    }
    let missing = ["simulate", "--constants", "/no/such/file"];
    assert_eq!(fails(&missing, "").0, 1);
}

#[test]
fn several_trees_are_simulated_together() {
    let trees = ["--tree", "orders: leveling T=4 @ 80%", "--tree", "log: tiering T=3 @ 20%"];
    let size = ["simulate", "--records", "100k", "--hours", "0.02", "--budget", "20MB/s"];
    let printed = done(&[&size[..], &trees].concat(), "");
    for line in [
        "orders, 80 % of the writes: ",
        "log, 20 % of the writes: ",
        "each 100,000 records",
        "stopped writers for",
    ] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
    let json = done(&[&size[..], &trees, &["--json"]].concat(), "");
    assert!(json.contains("\"trees\":[{\"name\":\"orders\",\"design\""), "{json}");
    for bad in ["tiering", "log: tiering", "log: nosuch @ 1", "log: tiering @ 0"] {
        assert_eq!(fails(&["simulate", "--tree", bad], "").0, 2, "{bad}");
    }
    assert_eq!(fails(&["simulate", "--two-phase", trees[0], trees[1]], "").0, 2);
}

#[test]
fn cost_constants_are_measured_and_used() {
    let dir = tempfile::tempdir().unwrap();
    let constants = path(dir.path(), "here.toml");
    let calibrate = ["simulate", "calibrate", "--megabytes", "2", "--record-size", "200"];
    done(&[&calibrate[..], &["--output", &constants]].concat(), "");
    let use_it = ["simulate", "--constants", &constants, "--records", "1M", "--hours", "0.01"];
    assert!(done(&use_it, "").contains("throughput"));
    std::fs::write(&constants, "write_micros = -1").unwrap();
    assert_eq!(fails(&use_it, "").0, 2);
}

#[test]
fn generated_workloads_replay_and_leave_their_keys() {
    let dir = tempfile::tempdir().unwrap();
    let (spec, trace) = (path(dir.path(), "workload.toml"), path(dir.path(), "trace.txt"));
    let text = "keys = 200\noperations = 400\nvalue-size = \"10..20\"\n[[phase]]\ninsert = 1\n\
                [[phase]]\nupdate = \"2@zipf:0.99\"\nget = 2\nmissing = 1\ndelete = 1\n\
                \"scan:5\" = 1\n\"delete-range:3\" = 1\n";
    std::fs::write(&spec, text).unwrap();
    assert!(done(&["workload", "show", &spec], "").contains("insert"));
    done(&["workload", "generate", &spec, "--out", &trace], "");
    // A trace recorded during execution has the same operations.
    let (recorded, db) = (path(dir.path(), "recorded.txt"), path(dir.path(), "recorded"));
    done(&["workload", "record", &spec, "--db", &db, "--out", &recorded], "");
    let sorted = |file: &str| {
        let text = std::fs::read_to_string(file).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&trace), sorted(&recorded));
    let replayed = path(dir.path(), "replayed");
    let printed = done(&["replay", &trace, "--db", &replayed, "--json"], "");
    let printed: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["operations"], 600);
    assert_eq!(done(&["dump", &replayed], ""), done(&["dump", &db], ""));
}

#[test]
fn a_file_of_operations_is_replayed_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let (db, file) = (path(dir.path(), "db"), path(dir.path(), "workload.txt"));
    // In KVBench's form, with a blank after the key of a delete.
    let operations = "I a 1\nI b 2\nI c 3\nI d 4\nU a x\nQ a\nQ z\nD b \nS a c\nR c d\n";
    std::fs::write(&file, operations).unwrap();
    let printed = done(&["replay", &file, "--db", &db, "--json"], "");
    let printed: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["operations"], 10);
    let kinds = printed["kinds"].as_array().unwrap().iter();
    let kinds: Vec<(&str, u64, u64)> = kinds
        .map(|kind| {
            let number = |name| kind[name].as_u64().unwrap();
            (kind["operation"].as_str().unwrap(), number("count"), number("found"))
        })
        .collect();
    let expected = [("insert", 4, 0), ("update", 1, 0), ("delete", 1, 0), ("delete range", 1, 0)];
    assert_eq!(kinds[..4], expected);
    assert_eq!(kinds[4..], [("lookup", 2, 1), ("scan", 1, 1)]);
    assert_eq!(done(&["dump", &db], ""), "a\tx\nd\t4\n");
    // Operations that write nothing have no write amplification.
    let reads = ["replay", "-", "--db", &db];
    assert!(done(&reads, "Q a\n").ends_with("write amplification -\n"));
    let printed = done(&[&reads[..], &["--json"]].concat(), "Q a\n");
    assert!(printed.contains("\"write_amplification\":null"), "{printed}");
    // With `--inclusive` a range contains its last key. Lines before a bad one take effect.
    let (code, error) = fails(&["replay", "-", "--db", &db, "--inclusive"], "R a a\nS a d\nI q\n");
    assert_eq!(code, 1);
    assert!(error.contains("line 3: expected a key and a value"), "{error}");
    assert_eq!(done(&["dump", &db], ""), "d\t4\n");
    let printed = done(&["replay", &file], "");
    assert!(
        printed.contains("10 operations in") && printed.contains("write amplification"),
        "{printed}"
    );
}

#[test]
fn experiment_says_where_the_experiments_are() {
    for args in [&["experiment"][..], &["experiment", "run", "compaction", "--figure", "4e"]] {
        let (code, error) = fails(args, "");
        assert_eq!(code, 2);
        assert!(error.contains("cargo run --release -p terrane-papers"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    // The line can be pasted into a shell.
    let (_, error) = fails(&["experiment", "papers", "--output", "two words"], "");
    assert!(error.contains("-p terrane-papers -- items --output 'two words'"), "{error}");
}

/// Starts `terrane explore`, and returns it with the address that it prints.
fn explorer(args: &[&str]) -> (Child, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_terrane"));
    command.args(["explore", "--no-browser"]).args(args).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
    (child, address.trim_end().to_owned())
}

#[test]
fn the_explorer_is_served_to_this_machine_alone() {
    let (mut child, address) = explorer(&["leveling", "tiering T=4; L0=2"]);
    let rest = address.strip_prefix("http://127.0.0.1:").unwrap();
    let (port, fragment) = rest.split_once('/').unwrap();
    assert_eq!(fragment, "#design=leveling&design=tiering%20T%3D4%3B%20L0%3D2");
    // A client that says nothing keeps nobody waiting.
    let silent = TcpStream::connect(("127.0.0.1", port.parse().unwrap())).unwrap();
    let ask = |host: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port.parse().unwrap())).unwrap();
        write!(stream, "GET / HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let page = ask("localhost");
    assert!(
        page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("</html>\n"),
        "{:.300}",
        page
    );
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
    assert!(ask("attacker.example").starts_with("HTTP/1.1 403 "), "DNS rebinding");
    let (code, error) = fails(&["explore", "--no-browser", "--port", port], "");
    assert_eq!(code, 1);
    assert!(error.contains(&format!("cannot listen on port {port}")), "{error}");
    drop(silent);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_explorer_is_written_to_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let site = path(dir.path(), "a/site");
    let printed = done(&["explore", "--out", &site, "lethe"], "");
    assert_eq!(printed, format!("{}#design=lethe\n", path(Path::new(&site), "index.html")));
    let page = std::fs::read_to_string(Path::new(&site).join("index.html")).unwrap();
    assert!(page.contains("default-src 'none'") && !page.contains("HASHES"));
    let (code, error) = fails(&["explore", "--out", &site, "levling"], "");
    assert!(code == 2 && error.contains("did you mean 'leveling'"), "{code} {error}");
    let file = path(dir.path(), "mine.toml");
    std::fs::write(&file, done(&["design", "show", "tiering T=4", "--toml"], "")).unwrap();
    let printed = done(&["explore", "--out", &site, &format!("@{file}")], "");
    assert!(printed.contains("#design=tiering%20T%3D4%20"), "{printed}");
    let five = ["explore", "a", "b", "c", "d", "e"];
    assert_eq!(fails(&five, "").0, 2);
    std::fs::write(dir.path().join("file"), "").unwrap();
    let file = path(dir.path(), "file");
    let (code, error) = fails(&["explore", "--out", &file], "");
    assert!(code == 1 && error.contains("cannot write to"), "{code} {error}");
}

//! How the command behaves towards pipes, other processes, bad input and signals.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_terrane"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(args: &[&str], input: &[u8]) -> Output {
    let mut child = command(args).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // A command that reads nothing may be gone already.
            let _ = stdin.write_all(input);
        });
        child.wait_with_output().unwrap()
    })
}

/// Exit code, standard output and standard error.
fn told(args: &[&str], input: &str) -> (i32, String, String) {
    let output = run(args, input.as_bytes());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Standard output of a command that must end well.
fn done(args: &[&str], input: &str) -> String {
    let (code, out, error) = told(args, input);
    assert_eq!(code, 0, "{args:?}: {error}");
    out
}

fn path(dir: &Path, name: &str) -> String {
    dir.join(name).to_str().unwrap().to_owned()
}

/// How long an answer may take before it is taken for one that never comes.
const PATIENCE: Duration = Duration::from_secs(10);

/// A process that is talked to line by line.
struct Talk {
    child: Child,
    answers: mpsc::Receiver<String>,
}

impl Talk {
    /// One that makes what it makes in `temporary`: it is killed, and cannot remove it.
    fn with(args: &[&str], temporary: &Path) -> Self {
        let mut child = command(args).env("TMPDIR", temporary).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (tell, answers) = mpsc::channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, answers }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn answer(&mut self) -> String {
        self.answers.recv_timeout(PATIENCE).unwrap()
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A reader that waits for each answer would wait for ever if one was held back.
#[test]
fn answers_are_out_before_more_input_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let mut shell = Talk::with(&["shell", &db], dir.path());
    let mut cs265 = Talk::with(&["cs265"], dir.path());
    for number in 0..20 {
        shell.say(&format!("put k{number} v{number}"));
        assert_eq!(shell.answer(), "ok");
        shell.say("count");
        assert_eq!(shell.answer(), (number + 1).to_string());
        cs265.say(&format!("p {number} 7"));
        cs265.say(&format!("g {number}"));
        assert_eq!(cs265.answer(), "7");
    }
}

#[test]
fn what_was_answered_survives_being_killed() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let mut shell = Talk::with(&["shell", &db], dir.path());
    for number in 0..100 {
        shell.say(&format!("put k{number} {number}"));
        assert_eq!(shell.answer(), "ok");
    }
    // SIGKILL: nothing is flushed, nothing is closed.
    drop(shell);
    assert_eq!(done(&["shell", &db, "-c", "count", "-c", "get k99"], ""), "100\n99\n");
    assert!(done(&["verify", &db], "").starts_with("ok: "));
}

#[test]
fn a_database_in_use_can_be_read_but_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let mut shell = Talk::with(&["shell", &db], dir.path());
    shell.say("put a 1");
    assert_eq!(shell.answer(), "ok");
    for args in [
        &["shell", &db, "-c", "count"][..],
        &["compact", &db],
        &["checkpoint", &db, &path(dir.path(), "copy")],
        &["load", &db, "-"],
        &["cs265", "--db", &db],
        &["design", "set", &db, "tiering"],
    ] {
        let (code, _, error) = told(args, "");
        assert_eq!(code, 5, "{args:?}: {error}");
        assert!(error.contains(&format!("process {}", shell.child.id())), "{error}");
    }
    assert_eq!(done(&["dump", &db], ""), "a\t1\n");
    assert_eq!(done(&["shell", &db, "--read-only", "-c", "get a"], ""), "1\n");
    let (code, _, error) = told(&["shell", &db, "--read-only", "-c", "put a 2"], "");
    assert!(code == 1 && error.contains("read-only"), "{code} {error}");
    assert!(done(&["inspect", "tree", &db], "").contains("1 entry"));
}

/// As `| head` does: the reader goes away when it has seen enough.
#[test]
fn a_reader_that_goes_away_ends_a_command_quietly() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let mut entries = String::new();
    for number in 0..30_000 {
        writeln!(entries, "key{number}\tvalue{number}").unwrap();
    }
    done(&["load", &db, "-"], &entries);
    for args in [
        &["dump", &db][..],
        &["shell", &db, "--read-only", "-c", "scan"],
        &["shell", &db, "--read-only", "-c", "scan", "--json"],
    ] {
        let mut child = command(args).spawn().unwrap();
        drop(child.stdin.take());
        let mut some = [0; 100];
        child.stdout.as_mut().unwrap().read_exact(&mut some).unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), &error[..]), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        return;
    }
    for args in [&["options"][..], &["design", "list"], &["completions", "zsh"], &["man"]] {
        let out = std::fs::OpenOptions::new().write(true).open(full).unwrap();
        let mut child = command(args).stdout(out).spawn().unwrap();
        drop(child.stdin.take());
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {error}");
        assert!(error.contains("No space left"), "{args:?}: {error}");
    }
}

#[test]
fn a_batch_happens_as_a_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let good = "put gone 1\nbatch\nput a 1\nput b 2\ndel gone\nend\nscan\n";
    assert_eq!(done(&["shell", &db], good), "ok\nok\na\t1\nb\t2\n");
    let (code, out, error) = told(&["shell", &db], "batch\nput c 3\nput d\nend\ncount\n");
    assert_eq!((code, &out[..]), (1, "2\n"));
    assert!(error.contains("line 3: the form is 'put KEY VALUE'"), "{error}");
    assert!(error.contains("line 4: nothing of the batch was written"), "{error}");
    let (code, out, error) = told(&["shell", &db], "batch\nput e 5\n");
    assert_eq!((code, &out[..]), (1, ""));
    assert!(error.contains("was not written"), "{error}");
    assert_eq!(done(&["shell", &db], "batch\nput f 1\nabort\ncount\n"), "ok\n2\n");
}

#[test]
fn every_command_of_a_script_answers_in_json() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let script =
        "put a 1\nget a\nget b\nput 0xff \"x\\ty\"\nscan\ncount a..b\nnonsense\ndel ..\ncount\n";
    let (code, out, _) = told(&["shell", &db, "--json"], script);
    assert_eq!(code, 1);
    assert_eq!(
        out,
        r#"{"schema":1,"ok":true}
{"schema":1,"value":"1"}
{"schema":1,"value":null}
{"schema":1,"ok":true}
{"key":"a","value":"1"}
{"key":{"hex":"ff"},"value":"x\ty"}
{"schema":1,"entries":2}
{"schema":1,"count":1}
{"schema":1,"error":"'nonsense' is no command; 'help' lists them","line":7}
{"schema":1,"ok":true}
{"schema":1,"count":0}
"#
    );
    for what in ["stats", "tree", "keyspaces"] {
        let answer = done(&["shell", &db, "--json", "-c", what], "");
        let object: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(object["schema"], 1, "{what}");
    }
}

#[test]
fn keyspaces_are_apart() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let script = "put a 1\nuse logs\nput l 1\nput m 2\ncount\nkeyspaces\n";
    assert_eq!(done(&["shell", &db], script), "ok\nok\nok\nok\n2\ndefault\nlogs\n");
    assert_eq!(done(&["dump", &db, "--keyspace", "logs"], ""), "l\t1\nm\t2\n");
    let (_, out, note) = told(&["dump", &db], "");
    assert!(out == "a\t1\n" && note.contains("logs"), "{out} {note}");
    let (code, _, error) = told(&["dump", &db, "--keyspace", "none"], "");
    assert!(code == 1 && error.contains("default, logs"), "{code} {error}");
}

#[test]
fn scans_have_ranges_limits_and_both_directions() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let script = "put a 1\nput b 2\nput c 3\nput u:1 x\nput u:2 y\nput v z\n";
    done(&["shell", &db], script);
    for (line, answer) in [
        ("scan a..c", "a\t1\nb\t2\n"),
        ("scan b..=c", "b\t2\nc\t3\n"),
        ("scan ..b", "a\t1\n"),
        ("scan limit 2 reverse", "v\tz\nu:2\ty\n"),
        ("prefix u:", "u:1\tx\nu:2\ty\n"),
        ("prefix u: reverse limit 1", "u:2\ty\n"),
        ("count prefix u:", "2\n"),
        ("count x..", "0\n"),
        ("scan c..a", ""),
    ] {
        assert_eq!(done(&["shell", &db, "-c", line], ""), answer, "{line}");
    }
}

#[test]
fn the_cs265_examples_of_the_course_are_answered_as_it_says() {
    for (script, answers) in [
        ("p 10 7\np 63 222\ng 10\ng 15\np 15 5\ng 15\n", "7\n\n5\n"),
        (
            "p 10 7\np 13 2\np 17 99\np 12 22\nr 10 12\nr 10 15\nr 14 17\nr 0 100\n",
            "10:7\n10:7 12:22 13:2\n\n10:7 12:22 13:2 17:99\n",
        ),
        ("p 10 7\np 12 5\ng 10\nd 10\ng 10\ng 12\n", "7\n\n5\n"),
        ("d 99\np 1 1\nr 5 5\nr 9 1\nd 1\nr 0 5\n", "\n\n\n"),
        ("p -2147483648 2147483647\np 5 5\nr -2147483648 0", "-2147483648:2147483647\n"),
        ("p 1 2\np 3 4\ns\n", "Logical Pairs: 2\nLVL1: 2\n1:2:L1 3:4:L1\n"),
        ("", ""),
    ] {
        assert_eq!(done(&["cs265"], script), answers, "{script}");
    }
}

#[test]
fn cs265_agrees_with_a_map_on_a_tree_of_many_levels() {
    let mut rng = terrane_testkit::Rng::new(terrane_testkit::seed_from_env(3));
    let mut map = std::collections::BTreeMap::new();
    let (mut script, mut answers) = (String::new(), String::new());
    for _ in 0..6000 {
        let key = rng.below(400) as i32 - 200;
        match rng.below(10) {
            0..6 => {
                let value = rng.bits() as i32;
                if value != i32::MIN {
                    map.insert(key, value);
                    writeln!(script, "p {key} {value}").unwrap();
                }
            }
            6 => {
                map.remove(&key);
                writeln!(script, "d {key}").unwrap();
            }
            7..9 => {
                writeln!(script, "g {key}").unwrap();
                let value = map.get(&key).map(ToString::to_string).unwrap_or_default();
                writeln!(answers, "{value}").unwrap();
            }
            _ => {
                let end = key + rng.below(60) as i32;
                writeln!(script, "r {key} {end}").unwrap();
                let pairs: Vec<String> =
                    map.range(key..end).map(|(key, value)| format!("{key}:{value}")).collect();
                writeln!(answers, "{}", pairs.join(" ")).unwrap();
            }
        }
    }
    let out = done(&["cs265", "-b", "1", "-f", "2", "-r", "8", "-t", "2"], &script);
    assert!(out == answers, "see TERRANE_SEED");
}

#[test]
fn bad_lines_of_cs265_cost_nothing_but_the_exit_status() {
    let script = "p 1 2\nx\np 2\np 3 -2147483648\nl \"no such file\"\np 9 99999999999\ng 1\ng 3\n";
    let (code, out, error) = told(&["cs265"], script);
    assert_eq!((code, &out[..]), (1, "2\n\n"));
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 5, "{error}");
    for (line, number) in lines.iter().zip(2..) {
        assert!(line.contains(&format!("line {number}: ")), "{error}");
    }
    assert!(lines[3].contains("no such file"), "{error}");
}

#[test]
fn cs265_loads_binary_pairs_and_keeps_them_in_a_database() {
    let dir = tempfile::tempdir().unwrap();
    let (db, file) = (path(dir.path(), "db"), path(dir.path(), "some pairs.dat"));
    let mut bytes = Vec::new();
    for number in [1_i32, 4, -2, 5, 3, 6] {
        bytes.extend(number.to_le_bytes());
    }
    // What is no whole pair is passed over, as Dent's program does.
    bytes.extend(b"rest");
    std::fs::write(&file, &bytes).unwrap();
    let script = format!("l \"{file}\"\nr -10 10\n");
    assert_eq!(done(&["cs265", "--db", &db], &script), "-2:5 1:4 3:6\n");
    assert_eq!(done(&["cs265", "--db", &db], "g 3\n"), "6\n");
    assert_eq!(done(&["shell", &db, "-c", "get i32:-2"], ""), "i32:5\n");
    let out = path(dir.path(), "out.dat");
    done(&["dump", &db, &out], "");
    let mut sorted = Vec::new();
    for number in [-2_i32, 5, 1, 4, 3, 6] {
        sorted.extend(number.to_le_bytes());
    }
    assert_eq!(std::fs::read(&out).unwrap(), sorted);
    let again = path(dir.path(), "again");
    done(&["load", &again, &out], "");
    assert_eq!(done(&["cs265", "--db", &again], "r -10 10\n"), "-2:5 1:4 3:6\n");
    let (code, _, error) = told(&["load", &again, &file], "");
    assert!(code == 1 && error.contains("4 bytes are no whole pair"), "{code} {error}");
}

#[test]
fn a_fixed_depth_ends_where_the_paper_says_and_a_free_one_does_not() {
    // 512 entries a page, 2 runs a level, 1 level: two runs and a buffer.
    let room = 512 * 3;
    let script: String = (0..=room).map(|key| format!("p {key} {key}\ng {key}\n")).collect();
    let small = ["cs265", "-b", "1", "-f", "2", "-d", "1", "--fixed-depth"];
    let (code, out, error) = told(&small, &script);
    assert_eq!((code, out.lines().count()), (1, room));
    assert!(error.contains("No more space in tree"), "{error}");
    assert!(error.contains(&format!("line {}: ", 2 * room + 1)), "{error}");
    assert_eq!(done(&small[..7], &script).lines().count(), room + 1);
    assert_eq!(told(&["cs265", "--fixed-depth", "--db", "x"], "").0, 2);
}

#[test]
fn all_bytes_survive_being_dumped_and_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let first = path(dir.path(), "first");
    let mut rng = terrane_testkit::Rng::new(5);
    let mut script = String::from("put '' ''\n");
    for byte in 0..=255_u8 {
        writeln!(script, "put 0x{byte:02x} 0x{:016x}", rng.bits()).unwrap();
        writeln!(script, "put 0x78{byte:02x}5c 0x{byte:02x}").unwrap();
    }
    done(&["shell", &first], &script);
    let whole = done(&["shell", &first, "-c", "scan"], "");
    assert_eq!(whole.lines().count(), 513);
    for format in ["tsv", "jsonl"] {
        let second = path(dir.path(), format);
        let dumped = done(&["dump", &first, "--format", format], "");
        assert_eq!(dumped.lines().count(), 513, "{format}");
        done(&["load", &second, "-", "--format", format], &dumped);
        assert!(done(&["shell", &second, "-c", "scan"], "") == whole, "{format}");
    }
}

#[test]
fn what_cannot_be_loaded_is_named_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    for (format, input, what) in [
        ("tsv", "a\t1\n\nno tab\nb\t2\n", "line 3: there is no tab"),
        ("tsv", "a\t1\nb\tC:\\dir\n", "line 2: '\\d' is no escape"),
        ("jsonl", "{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"b\"}\n", "line 2: missing field"),
        ("jsonl", "{\"key\":\"a\",\"value\":\"1\"}\n[\n", "line 2: "),
    ] {
        let (code, _, error) = told(&["load", &db, "-", "--format", format], input);
        assert!(code == 1 && error.contains(what), "{code} {error}");
        // What is before it stays, what is after it is not read.
        assert_eq!(done(&["dump", &db], ""), "a\t1\n");
    }
    let long = format!("{}\tv\n", "k".repeat(70_000));
    let (code, _, error) = told(&["load", &db, "-"], &long);
    assert!(code == 1 && error.contains("line 1: the key has 68.4 KiB"), "{code} {error}");
    assert_eq!(told(&["load", &db, "file.gz"], "").0, 2);
    assert_eq!(told(&["load", &db, &path(dir.path(), "none.tsv")], "").0, 1);
    assert_eq!(told(&["load", &db, dir.path().to_str().unwrap(), "--format", "tsv"], "").0, 1);
}

#[test]
fn a_dump_does_not_write_over_a_file_unless_it_is_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let (db, file) = (path(dir.path(), "db"), path(dir.path(), "all.tsv"));
    done(&["shell", &db], "put a 1\nput b 2\nput c 3\n");
    std::fs::write(&file, "precious").unwrap();
    let (code, _, error) = told(&["dump", &db, &file], "");
    assert!(code == 1 && error.contains("--force"), "{code} {error}");
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
    done(&["dump", &db, &file, "--force", "--range", "b.."], "");
    assert_eq!(std::fs::read(&file).unwrap(), b"b\t2\nc\t3\n");
    assert_eq!(done(&["dump", &db, "--prefix", "a"], ""), "a\t1\n");
    assert_eq!(told(&["dump", &db, "--format", "pairs"], "").0, 1);
    assert_eq!(told(&["dump", &db, "--range", "b"], "").0, 2);
    assert_eq!(told(&["dump", &path(dir.path(), "none")], "").0, 1);
}

#[test]
fn compacting_a_range_leaves_no_old_version_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    done(&["shell", &db], "put a 1\nput b 1\nflush\nput a 2\ndel b\nput c 3\nflush\n");
    let tree = |db: &str| -> serde_json::Value {
        serde_json::from_str(&done(&["inspect", "tree", db, "--json"], "")).unwrap()
    };
    assert_eq!(tree(&db)["tables"], 2);
    let told_json = done(&["compact", &db, "--json"], "");
    let compacted: serde_json::Value = serde_json::from_str(&told_json).unwrap();
    assert_eq!((&compacted["schema"], &compacted["tables"]), (&1.into(), &1.into()));
    assert_eq!(tree(&db)["tables"], 1);
    assert_eq!(done(&["dump", &db], ""), "a\t2\nc\t3\n");
    done(&["compact", &db, "a", "c"], "");
    for bad in [&["compact", &db, "a"][..], &["compact", &db, "'a", "c"], &["compact"]] {
        assert_eq!(told(bad, "").0, 2, "{bad:?}");
    }
    assert_eq!(told(&["compact", &path(dir.path(), "none")], "").0, 1);
}

#[test]
fn a_design_can_be_shown_and_set() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    done(&["shell", &db, "--design", "tiering T=4", "-c", "put a 1"], "");
    assert!(done(&["design", "show", "--db", &db], "").contains("tiering T=4"));
    let (code, _, error) = told(&["shell", &db, "--design", "leveling", "-c", "count"], "");
    assert!(code != 0 && error.contains("design"), "{code} {error}");
    done(&["design", "set", &db, "lazy-leveling"], "");
    let shown = done(&["design", "show", "--db", &db, "--json"], "");
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&shown["name"], &shown["keyspace"]), (&"lazy-leveling".into(), &"default".into()));
    assert_eq!(done(&["shell", &db, "-c", "get a"], ""), "1\n");
    for line in done(&["design", "list", "--json"], "").lines() {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(entry["schema"], 1);
        let text = entry["design"].as_str().unwrap();
        assert!(done(&["design", "show", text, "--json"], "").contains(text), "{text}");
    }
    assert_eq!(told(&["design", "show"], "").0, 2);
    assert_eq!(told(&["design", "show", "tiering T=0"], "").0, 2);
}

#[test]
fn the_design_space_is_listed_counted_and_changed_with_notice() {
    let list = done(&["design", "list"], "");
    let line = list.lines().find(|line| line.starts_with("lethe ")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let expected = ["tombstone-ttl+level-saturation", "file", "expired-ttl+least-overlap"];
    assert_eq!(words[1..], [&["leveling"][..], &expected].concat());
    assert!(done(&["design", "show", "lethe"], "").contains("not modelled, or elsewhere:"));
    let counted = done(&["design", "enumerate"], "");
    let total: String = counted.chars().take_while(|c| !c.is_whitespace()).collect();
    assert!(total.replace(',', "").parse::<u64>().unwrap() > 10_000, "{counted}");
    let some = done(&["design", "enumerate", "random", "--list", "--limit", "3"], "");
    assert_eq!(some.lines().filter(|line| line.contains("random")).count(), 3);
    let dir = tempfile::tempdir().unwrap();
    let (db, file) = (path(dir.path(), "db"), path(dir.path(), "mine.toml"));
    done(&["shell", &db, "--design", "tiering T=4", "-c", "put a 1"], "");
    std::fs::write(&file, done(&["design", "show", "tsa", "--toml"], "")).unwrap();
    let told_before = done(&["design", "set", &db, &format!("@{file}"), "--dry-run"], "");
    assert!(told_before.contains("sorted runs: 1 before"), "{told_before}");
    assert!(done(&["design", "show", "--db", &db], "").contains("tiering T=4"));
    done(&["design", "set", &db, &format!("@{file}"), "--converge"], "");
    assert!(done(&["design", "show", "--db", &db], "").contains("tsa:"));
    assert!(done(&["inspect", "jobs", &db], "").contains("because of"));
    assert!(done(&["inspect", "deletes", &db], "").contains("violations: none"));
    assert!(done(&["inspect", "key", &db, "a"], "").contains("put of 1 B in L1"));
    assert!(done(&["inspect", "key", &db, "b"], "").contains("no version"));
    std::fs::write(&file, "T = 4").unwrap();
    assert_eq!(told(&["design", "show", &format!("@{file}")], "").0, 2);
}

#[test]
fn options_are_told_with_their_flags_and_a_bad_value_is_a_usage_error() {
    for line in done(&["options", "list", "--json"], "").lines() {
        let option: serde_json::Value = serde_json::from_str(line).unwrap();
        let flag = option["flag"].as_str().unwrap();
        assert!(done(&["shell", "--help"], "").contains(flag), "{flag}");
    }
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    assert_eq!(told(&["shell", &db, "--read-mode", "psychic"], "").0, 2);
    assert_eq!(told(&["shell", &db, "--memory-budget", "7"], "").0, 2);
    assert!(!Path::new(&db).exists());
    let stats = done(&["shell", &db, "--durability", "sync", "-c", "stats"], "");
    assert!(stats.contains("durability          sync"), "{stats}");
}

#[test]
fn what_is_no_database_is_said_to_be_none() {
    let dir = tempfile::tempdir().unwrap();
    let (none, file) = (path(dir.path(), "none"), path(dir.path(), "file"));
    std::fs::write(&file, "text").unwrap();
    for place in [&none, &file] {
        for args in [
            &["verify", place][..],
            &["dump", place],
            &["compact", place],
            &["repair", place],
            &["checkpoint", place, &path(dir.path(), "copy")],
            &["inspect", "tree", place],
            &["inspect", "manifest", place],
            &["inspect", "log", place],
            &["shell", place, "--read-only", "-c", "count"],
        ] {
            let (code, out, error) = told(args, "");
            assert!(code == 1 && out.is_empty(), "{args:?}: {code} {out} {error}");
            assert!(error.starts_with("error: ") && error.contains(place), "{args:?}: {error}");
        }
    }
    assert_eq!(told(&["inspect", "table", &file], "").0, 4);
    assert!(!Path::new(&none).exists());
    assert!(!Path::new(&path(dir.path(), "copy")).exists());
}

/// Asks a process to end as Ctrl-C does.
fn interrupt(child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
}

#[test]
fn an_interrupted_load_leaves_a_whole_database() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let mut child = command(&["load", &db, "-"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines: String = (0..5000).map(|number| format!("key{number}\tvalue\n")).collect();
    stdin.write_all(lines.as_bytes()).unwrap();
    stdin.flush().unwrap();
    // Until what it was given is in, which another process may read meanwhile.
    let begun = Instant::now();
    loop {
        let output = run(&["shell", &db, "--read-only", "-c", "count"], b"");
        if output.stdout == b"5000\n" {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "it never loads what it was given");
        std::thread::sleep(Duration::from_millis(20));
    }
    interrupt(&child);
    assert!(!child.wait().unwrap().success());
    drop(stdin);
    assert!(done(&["verify", &db], "").starts_with("ok: "));
    assert_eq!(done(&["shell", &db, "-c", "count"], ""), "5000\n");
}

#[test]
fn an_interrupted_cs265_removes_what_it_made() {
    let dir = tempfile::tempdir().unwrap();
    let mut started = command(&["cs265"]);
    let mut child = started.env("TMPDIR", dir.path()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "p 1 2\ng 1").unwrap();
    let mut answer = [0; 2];
    child.stdout.as_mut().unwrap().read_exact(&mut answer).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

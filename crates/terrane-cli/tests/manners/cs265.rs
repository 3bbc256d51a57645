//! The CS 265 command language.

use std::fmt::Write as _;

use crate::support::{done, path, run_to_end};

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
    // The buffers that the report discusses (§2.1, §4.1): a search tree, an array that is sorted for
    // queries, a log, a skip-list.
    for buffer in ["btree", "vector", "vector(query=scan)", "skiplist"] {
        let buffer = ["--memtable", buffer];
        let out = done(
            &[&["cs265", "-b", "1", "-f", "2", "-r", "8", "-t", "2"][..], &buffer].concat(),
            &script,
        );
        assert!(out == answers, "see TERRANE_SEED; {buffer:?}");
    }
}

#[test]
fn bad_lines_of_cs265_only_change_the_exit_status() {
    let script = "p 1 2\nx\np 2\np 3 -2147483648\nl \"no such file\"\np 9 99999999999\ng 1\ng 3\n";
    let (code, out, error) = run_to_end(&["cs265"], script);
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
    // An incomplete pair at the end is skipped, as in Dent's program.
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
    let (code, _, error) = run_to_end(&["load", &again, &file], "");
    assert!(code == 1 && error.contains("4 bytes are not a whole pair"), "{code} {error}");
}

#[test]
fn a_fixed_depth_limits_the_tree_and_a_free_one_does_not() {
    // 512 entries a page, 2 runs a level, 1 level: two runs and a buffer.
    let room = 512 * 3;
    let script: String = (0..=room).map(|key| format!("p {key} {key}\ng {key}\n")).collect();
    let small = ["cs265", "-b", "1", "-f", "2", "-d", "1", "--fixed-depth"];
    let (code, out, error) = run_to_end(&small, &script);
    assert_eq!((code, out.lines().count()), (1, room));
    assert!(error.contains("No more space in tree"), "{error}");
    assert!(error.contains(&format!("line {}: ", 2 * room + 1)), "{error}");
    assert_eq!(done(&small[..7], &script).lines().count(), room + 1);
    assert_eq!(run_to_end(&["cs265", "--fixed-depth", "--db", "x"], "").0, 2);
}

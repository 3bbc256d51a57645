//! Numbers mean the same in every command, and bad ones get the same error.

use crate::support::{done, run_to_end};

#[test]
fn counts_and_sizes_are_understood_in_every_spelling() {
    for (count, size) in
        [("1000000", "1024"), ("1e6", "1KiB"), ("1_000_000", "1k"), ("1M", "1.0KiB")]
    {
        let shown =
            done(&["design", "show", "leveling", "--records", count, "--record-size", size], "");
        assert!(shown.contains("1,000,000 records of 1.00 KiB"), "{count} {size}: {shown}");
        let args =
            ["simulate", "--records", count, "--record-size", size, "--hours", "0.01", "--json"];
        let first = done(&args, "");
        let same =
            ["simulate", "--records", "1M", "--record-size", "1KiB", "--hours", "0.01", "--json"];
        assert_eq!(first, done(&same, ""), "{count} {size}");
    }
}

#[test]
fn bad_numbers_are_refused_with_the_accepted_values() {
    const COUNT: &str = "expected a whole number such as 20000, 500K, 1.5M or 1e9";
    const SIZE: &str = "expected a number of bytes such as 4096, 64MiB or 1.5GB";
    const SOME: &str = "expected a whole number of at least 1";
    for (args, expected) in [
        (&["bench", "--num", "many"][..], COUNT),
        (&["bench", "--num", "0"], SOME),
        (&["bench", "--threads", "0"], "expected a whole number from 1 to 1024"),
        (&["bench", "--key-size", "long"], SIZE),
        (&["bench", "--value-size", "9..3"], "a range such as 100..400"),
        (&["bench", "--compressibility", "2"], "expected a number from 0 to 1"),
        (&["stability", "--records", "0"], SOME),
        (&["stability", "--records", "-3"], "COUNT"),
        (&["stability", "--testing", "soon"], "a time such as 500ms"),
        (&["simulate", "--records", "lots"], COUNT),
        (&["simulate", "--records", "0"], "a whole number from 1 to"),
        (&["simulate", "--budget", "0"], "bytes per second"),
        (&["advise", "--records", "1e99"], COUNT),
        (&["advise", "--records", "1e18"], "a whole number from 1 to"),
        (&["advise", "--record-size", "0"], "a number of bytes from 1 to"),
        (&["advise", "--record-size", "1TiB"], "a number of bytes from 1 to"),
        (
            &["advise", "--records", "1e15", "--record-size", "1GiB"],
            "exceed the maximum of 1.00 PiB in all",
        ),
        (
            &["simulate", "--records", "1e15", "--record-size", "1KiB"],
            "exceed the maximum of 1.00 PiB in all",
        ),
        (
            &["design", "show", "leveling", "--records", "1e15"],
            "exceed the maximum of 1.00 PiB in all",
        ),
        (&["design", "show", "leveling", "--records", "1.5"], COUNT),
        (&["inspect", "jobs", "db", "--last", "x"], COUNT),
        (&["sweep", "--set", "num=0", "--out", "none"], "expected a whole number from 1 to 1000T"),
        (&["sweep", "--jobs", "0", "--out", "none"], "expected a whole number from 1 to 256"),
        (&["cs265", "-b", "none"], COUNT),
    ] {
        let (code, out, error) = run_to_end(args, "");
        assert_eq!((code, &out[..]), (2, ""), "{args:?}: {error}");
        assert!(expected == "COUNT" || error.contains(expected), "{args:?}: {error}");
    }
}

#[test]
fn a_negative_number_is_a_bad_value_and_not_an_unknown_flag() {
    let (code, _, error) = run_to_end(&["bench", "--num", "-5"], "");
    assert!(code == 2 && error.contains("--num") && error.contains("whole number"), "{error}");
    let (code, _, error) = run_to_end(&["stability", "--testing", "0"], "");
    assert!(code == 2 && error.contains("longer than 0 s and at most 24 h"), "{error}");
    let (code, _, error) = run_to_end(&["bench", "--value-size", "2GiB"], "");
    assert!(code == 2 && error.contains("at most 1GiB"), "{error}");
    let (code, _, error) = run_to_end(&["bench", "--workload", "fillrnd"], "");
    assert!(code == 2 && error.contains("did you mean 'fillrandom'?"), "{error}");
}

#[test]
fn one_option_can_be_looked_up_by_either_spelling() {
    for name in ["memory_budget", "memory-budget", "--memory-budget"] {
        let args = ["options", "list", "--", name];
        let text = done(&args, "");
        assert!(text.starts_with("--memory-budget") && text.lines().count() < 9, "{text}");
    }
    let (code, _, error) = run_to_end(&["options", "list", "memory_budgt"], "");
    assert!(code == 2 && error.contains("did you mean 'memory_budget'?"), "{error}");
}

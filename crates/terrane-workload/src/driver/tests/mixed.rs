//! Mixes: the proportions are exact, and every answer is checked.

use super::*;
use crate::operation_mix::{MixOrder, OperationMix};

fn mix(text: &str) -> OperationMix {
    text.parse().unwrap()
}

fn mixed(text: &str, threads: u32) -> RunOptions {
    RunOptions { mix: mix(text), threads, reads: Some(3_000), ..options() }
}

const ALL: &str =
    "insert=20,update=10@zipf,delete=20,get=25@normal:0.2,missing=15,scan:5=6,scan:1%=4";

#[test]
fn every_kind_has_its_share_and_every_answer_is_right() {
    for threads in [1, 3] {
        for order in [MixOrder::Interleaved, MixOrder::Serial] {
            let mut options = mixed(ALL, threads);
            options.mix.order = order;
            let store = Spy::over(loaded(Workload::Mix, &options), Fault::None);
            let report = run(&store, Workload::Mix, &options, &Silent).unwrap();
            assert_eq!(report.failures(), 0, "{report}");
            let counts: Vec<u64> = report.kinds.iter().map(|kind| kind.operations).collect();
            assert_eq!(counts.iter().sum::<u64>(), 3_000);
            let expected = [600, 300, 600, 750, 450, 180, 120];
            for (count, expected) in counts.iter().zip(expected) {
                assert!(count.abs_diff(expected) <= u64::from(threads), "{counts:?}");
            }
            let calls = store.calls();
            assert_eq!(calls.puts, counts[0] + counts[1]);
            assert_eq!((calls.deletes, calls.gets), (counts[2], counts[3] + counts[4]));
            assert_eq!(calls.scans, counts[5] + counts[6]);
            // Some of the missing keys were deleted.
            assert_eq!(report.missing, counts[4]);
        }
    }
}

#[test]
fn every_answer_is_right_after_deletes_of_ranges_and_of_missing_keys() {
    let text = "insert=3,delete-missing=1 x2; \
                get=4,missing=3,delete-range:7=1,delete=1,insert=2@sequential; get=1,scan:5=1";
    for text in [text.replace("@sequential", ""), text.to_owned()] {
        let mut options = mixed(&text, 1);
        options.key_order = options.mix.placement();
        let store = loaded(Workload::Mix, &options);
        let report = run(&store, Workload::Mix, &options, &Silent).unwrap();
        assert_eq!(report.failures(), 0, "{report}");
        let counts: Vec<u64> = report.kinds.iter().map(|kind| kind.operations).collect();
        assert_eq!(counts, options.mix.counts(3_000));
        let found: u64 = counts[2] + counts[7];
        // Scans at the end of the keys read fewer than five entries.
        let scanned = report.found - found;
        assert!(report.found >= found && scanned > 4 * counts[8], "{report}");
    }
    let refused = Workload::Mix.check(&mixed("delete-range:5=1,get=1", 2)).unwrap_err();
    assert_eq!(refused.option, "threads");
}

#[test]
fn serial_mixes_do_one_kind_after_the_other() {
    for (order, has_read) in [(MixOrder::Serial, false), (MixOrder::Interleaved, true)] {
        let mut options = mixed("insert=1,get=1", 1);
        options.mix.order = order;
        // Each method fails at its hundredth call; serial reads come after all inserts.
        let store = Spy::over(loaded(Workload::Mix, &options), Fault::FailsAfter(100));
        assert!(run(&store, Workload::Mix, &options, &Silent).is_err());
        assert_eq!(store.calls().gets > 0, has_read, "{order:?}");
    }
}

#[test]
fn engines_that_are_wrong_are_found_out() {
    for (text, fault) in [
        ("delete=50,missing=50", Fault::ForgetsDeletes),
        ("missing=1", Fault::FindsEverything),
        ("insert=1,get=1", Fault::LosesEveryTenth),
        ("update=1,get=1", Fault::AnswersWithTheKey),
        ("insert=1,scan:20=1", Fault::RepeatsEntries),
    ] {
        let options = mixed(text, 2);
        let store = Spy::over(loaded(Workload::Mix, &options), fault);
        let report = run(&store, Workload::Mix, &options, &Silent).unwrap();
        assert!(report.failures() > 0, "{text}: {fault:?}");
    }
}

#[test]
fn deleting_everything_goes_on_with_new_keys() {
    let options = RunOptions { reads: Some(10_000), ..mixed("delete=9,get=1", 2) };
    let store = loaded(Workload::Mix, &options);
    let report = run(&store, Workload::Mix, &options, &Silent).unwrap();
    assert_eq!((report.failures(), report.operations), (0, 10_000));
    assert!((store.len() as u64) < NUM);
}

#[test]
fn crowded_keys_are_loaded_found_and_added_to() {
    for text in ["insert=1@normal:0.1,get=1", "insert=1@zipf,get=1,missing=1,delete=1"] {
        for key_size_bytes in [4, 16] {
            let mut options = RunOptions { key_size_bytes, ..mixed(text, 2) };
            options.key_order = options.mix.placement();
            let store = loaded(Workload::Mix, &options);
            let report = run(&store, Workload::Mix, &options, &Silent).unwrap();
            assert_eq!(report.failures(), 0, "{report}");
        }
    }
    // The driver refuses loaded data in another place, because it would not find it.
    let crowded = mixed("insert=1@zipf,get=1", 1);
    assert!(run(&MemStore::new(), Workload::Mix, &crowded, &Silent).is_err());
}

#[test]
fn the_same_seed_gives_the_same_mix() {
    let run_with = |seed| {
        let options = RunOptions { seed, ..mixed(ALL, 2) };
        let store = loaded(Workload::Mix, &options);
        run(&store, Workload::Mix, &options, &Silent).unwrap();
        content(&store)
    };
    assert_eq!(run_with(1), run_with(1));
    assert_ne!(run_with(1), run_with(2));
}

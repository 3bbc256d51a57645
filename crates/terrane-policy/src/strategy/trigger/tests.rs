use super::*;
use crate::strategy::SizedRun;
use crate::strategy::size_tiered::bytes_of;

#[test]
fn triggers_print_as_they_parse() {
    for text in [
        "level-saturation",
        "file-count",
        "file-count(4,40)",
        "run-count",
        "file-staleness(1h,2d)",
        "space-amplification(200)",
        "read-amplification(12)",
        "tombstone-ttl(90s)",
        "tombstone-density(50)",
        "read-triggered(16KiB)",
        "prefix(1GiB,5,1.2)",
        "concurrent(3,10,1.2)",
        "concurrent(3,10,1.2,1TiB)",
        "buckets(style=cassandra,min=4,max=32,low=0.5,high=1.5,small=50MiB)",
        "buckets(style=scylladb,min=2,max=2,low=0.25,high=3,small=0)",
        "exploring(min=3,max=10,ratio=1.2,small=128MiB,stuck=16)",
        "exploring(min=2,max=5,ratio=5,small=1KiB,large=2GiB,stuck=7)",
        "small-set(ratio=3,max=10)",
        "small-set(ratio=1.5,max=4,total=1GiB)",
        "generations(chunk=10MiB,min=7,max=15,large=5GiB)",
        "universal(runs=4,space=200,ratio=1,min=2)",
        "universal(runs=9,space=25,ratio=0,min=3,max=8)",
        "manual",
    ] {
        assert_eq!(text.parse::<Trigger>().unwrap().to_string(), text);
    }
    assert_eq!("tombstone-density(5 %)".parse(), Ok(Trigger::from(TombstoneDensity(5))));
    let defaults: Trigger = "universal".parse().unwrap();
    assert_eq!(defaults.to_string(), "universal(runs=4,space=200,ratio=1,min=2)");
    assert_eq!("universal( space=200%, ratio=1 % )".parse(), Ok(defaults.clone()));
    assert_eq!("universal()".parse(), Ok(defaults));
    // The maximum number of runs follows the minimum.
    for (text, printed) in [
        ("concurrent(2)", "concurrent(2,10,1.2)"),
        ("concurrent(12)", "concurrent(12,12,1.2)"),
        ("small-set(ratio=1)", "small-set(ratio=1,max=10)"),
        ("prefix(1)", "prefix(1,5,1.2)"),
        ("generations(chunk=1,large=2)", "generations(chunk=1,min=7,max=15,large=2)"),
    ] {
        assert_eq!(text.parse::<Trigger>().unwrap().to_string(), printed);
    }
}

/// Runs that a policy no longer merges neither count as pressure on writers nor take part in
/// relief.
#[test]
fn runs_beyond_the_largest_merge_are_left_alone() {
    for (text, largest) in [
        ("prefix(100)", 100),
        ("concurrent(3,10,1.2,100)", 99),
        ("exploring(large=100)", 100),
        ("small-set(total=100)", 100),
        ("generations(chunk=1,large=100)", 100),
        ("exploring", u64::MAX),
        ("universal", u64::MAX),
        ("buckets", u64::MAX),
    ] {
        let trigger: Trigger = text.parse().unwrap();
        let policy = trigger.rule().size_tiered().unwrap();
        assert!(policy.merges_again(largest), "{text}");
        assert_eq!(policy.merges_again(largest.saturating_add(1)), largest == u64::MAX, "{text}");
    }
}

#[test]
fn registered_examples_parse_to_their_kind_and_round_trip() {
    for kind in TriggerKind::ALL {
        let info = kind.info();
        for text in info.small.iter().chain([&info.usual]) {
            let trigger: Trigger = text.parse().unwrap();
            assert_eq!(trigger.kind(), *kind, "{text}");
            assert_eq!(trigger.to_string().parse(), Ok(trigger), "{text}");
        }
    }
}

#[test]
fn triggers_without_sense_are_refused() {
    for text in [
        "",
        "often",
        "run-count(3)",
        "file-count(0)",
        "tombstone-ttl",
        "tombstone-ttl(0s)",
        "file-staleness(2d,1d)",
        "tombstone-density(101)",
        "space-amplification(0)",
        "read-amplification(1)",
        "read-amplification(1001)",
        "read-triggered(0)",
        "level-saturation(",
        "prefix(0)",
        "prefix(1GiB,1)",
        "prefix(1GiB,5,0)",
        "prefix(1GiB,5,1.2,7)",
        "concurrent(1)",
        "concurrent(4,3)",
        "concurrent(3,10,nan)",
        "concurrent(3,10,1.2,0)",
        "concurrent(3,10,1.2,big)",
        "concurrent(3,10,1.2,1MiB,7)",
        "buckets(4)",
        "buckets(min=1)",
        "buckets(min=4,max=3)",
        "buckets(low=1)",
        "buckets(high=1)",
        "buckets(style=leveldb)",
        "exploring(min=1)",
        "exploring(min=3,max=2)",
        "exploring(stuck=2)",
        "exploring(large=0)",
        "small-set(ratio=0.9)",
        "small-set(max=1)",
        "small-set(total=0)",
        "generations(min=1)",
        "generations(min=3,max=2)",
        "generations(chunk=0)",
        "generations(chunk=1GiB,large=1GiB)",
        "universal(4)",
        "universal(runs=1)",
        "universal(runs=4,space=0)",
        "universal(runs=4,min=1)",
        "universal(runs=4,min=3,max=2)",
        "universal(runs=4,width=2)",
    ] {
        assert!(text.parse::<Trigger>().is_err(), "{text}");
    }
}

/// If flush sizes alternate, no run is adjacent to one of its own size.
#[test]
fn alternating_sizes_are_merged() {
    for policy in [
        "buckets(min=4,small=0)",
        "buckets(style=scylladb,min=4,small=0)",
        "generations(chunk=10B,min=4,max=15)",
    ] {
        for cycle in [&[10, 30][..], &[10, 100], &[10, 100, 1000], &[300, 10, 10]] {
            let trigger: Trigger = policy.parse().unwrap();
            let policy = trigger.rule().size_tiered().unwrap();
            let mut newest_first: Vec<SizedRun> = Vec::new();
            let (mut flushed, mut merged, mut most) = (0, 0, 0);
            for &bytes in cycle.iter().cycle().take(600) {
                newest_first.insert(0, SizedRun::free(bytes));
                flushed += bytes;
                while let Some(merge) = policy.choose(&newest_first) {
                    assert!(merge.runs.len() > 1);
                    let bytes = bytes_of(&newest_first[merge.runs.clone()]);
                    merged += bytes;
                    newest_first.splice(merge.runs, [SizedRun::free(bytes)]);
                }
                most = most.max(newest_first.len());
            }
            let told = format!("{trigger}, {cycle:?}: {most} runs, {merged} of {flushed} bytes");
            assert!(most <= 24 && merged <= 8 * flushed, "{told}");
        }
    }
}

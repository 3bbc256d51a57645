use super::*;
use crate::design::Constraint;

fn design() -> Design {
    "tiering L0=2 T=2; delay=3; stop=5; violation=slow-down; buffers=2".parse().unwrap()
}

fn with_runs(runs: u64) -> TreeShape {
    (1..=runs).map(|run| format!("L0 r{run}: {run}=a..=z:1\n")).collect::<String>().parse().unwrap()
}

#[test]
fn writers_slow_down_before_they_stop() {
    assert_eq!(admit(&with_runs(2), 1, &design()), Admission::Proceed);
    let strength = |runs| match admit(&with_runs(runs), 0, &design()) {
        Admission::Delay(pressure) => pressure.strength(),
        other => panic!("{other:?}"),
    };
    assert!(0.0 < strength(3) && strength(3) < strength(4) && strength(4) < 1.0);
    assert!(matches!(admit(&with_runs(5), 0, &design()), Admission::Stop(_)));
}

#[test]
fn writers_stop_for_every_due_compaction_with_stall_full() {
    let mut design: Design = "tiering T=3; stall=full".parse().unwrap();
    assert_eq!(admit(&with_runs(2), 0, &design), Admission::Proceed);
    let Admission::Stop(pressure) = admit(&with_runs(3), 0, &design) else { panic!() };
    assert_eq!(pressure.to_string(), "compactions-due: level 0 needs a compaction");
    design.constraint.stall = Stall::Runs;
    assert_eq!(admit(&with_runs(3), 0, &design), Admission::Proceed);
}

fn verdict(runs: u64, settings: &str) -> &'static str {
    let design = format!("tiering L0=3 T=3; {settings}").parse().unwrap();
    match admit(&with_runs(runs), 0, &design) {
        Admission::Proceed => "proceed",
        Admission::Delay(_) => "delay",
        Admission::Stop(_) => "stop",
    }
}

#[test]
fn the_violation_decides_what_happens_at_too_many_runs() {
    let at = |runs, violation| verdict(runs, &format!("delay=4; stop=6; violation={violation}"));
    assert_eq!([3, 5, 6].map(|runs| at(runs, "slow-down")), ["proceed", "delay", "stop"]);
    assert_eq!([3, 5, 6].map(|runs| at(runs, "stop")), ["proceed", "proceed", "stop"]);
    assert_eq!(at(600, "none"), "proceed");
}

#[test]
fn bounds_are_multiples_of_the_expected_runs_or_numbers() {
    // Level 0 gathers three runs; the bound is twice that.
    assert_eq!(
        [4, 5, 6].map(|runs| verdict(runs, "limit=local(2x); violation=slow-down")),
        ["proceed", "delay", "stop"]
    );
    assert_eq!(
        [8, 9].map(|runs| verdict(runs, "limit=global(9); violation=stop")),
        ["proceed", "stop"]
    );
    // At least two runs are expected, so four are too many.
    let design: Design = "leveling L0=1; limit=global; violation=stop".parse().unwrap();
    let tree = |level0: u64| {
        let runs: String =
            (0..level0).map(|at| format!("L0 r{}: {0}=a..=z:1\n", 90 - at)).collect();
        format!("{runs}L1 r2: 2=a..=z:1\nL1 r1: 1=a..=z:1\n").parse::<TreeShape>().unwrap()
    };
    assert_eq!(admit(&tree(1), 0, &design), Admission::Proceed);
    let Admission::Stop(pressure) = admit(&tree(2), 0, &design) else { panic!() };
    assert_eq!(pressure.to_string(), "total-runs: 4 (delay at 4, stop at 4)");
    // With three levels of one run each, 2L is six, and the flushed run counts.
    let deep = |level0: u64| {
        let runs: String =
            (0..level0).map(|at| format!("L0 r{}: {0}=a..=z:1\n", 90 - at)).collect();
        let levels = (1..=3).map(|level| format!("L{level} r{0}: {0}=a..=z:1\n", 10 - level));
        format!("{runs}{}", levels.collect::<String>()).parse::<TreeShape>().unwrap()
    };
    let verdicts = [2, 3].map(|level0| admit(&deep(level0), 0, &design));
    assert_eq!(verdicts[0], Admission::Proceed);
    assert!(matches!(verdicts[1], Admission::Stop(pressure) if pressure.stop_at == 6));
    // Tiering: 2TL, with level 0 as the first of L levels.
    let tiering: Design = "tiering T=3; limit=global; violation=stop".parse().unwrap();
    let Admission::Proceed = admit(&deep(2), 0, &tiering) else { panic!() };
    let Admission::Stop(pressure) = admit(&deep(21), 0, &tiering) else { panic!() };
    assert_eq!(pressure.stop_at, 24);
    let local: Design = "leveling L0=1; limit=local; violation=slow-down".parse().unwrap();
    // Two runs in level 1 reach its bound, and one run in level 0 is below its own.
    assert!(!matches!(admit(&tree(1), 0, &local), Admission::Stop(_)));
    let Admission::Stop(pressure) = admit(&tree(2), 0, &local) else { panic!() };
    assert_eq!((pressure.cause, pressure.level), (StallCause::LevelRuns, Some(0)));
}

#[test]
fn writers_slow_down_as_a_level_of_one_run_fills_again() {
    // Run 2 of level 1 is being merged into level 2 while run 3 fills up.
    let design: Design =
        "leveling L0=1 T=10; granularity=level; base=100B; limit=local(2x); violation=slow-down"
            .parse()
            .unwrap();
    let with = |newest: u64| {
        let tree = format!("L1 r3: 3=a..=z:{newest}B\nL1 r2: 2=a..=z:100B\n");
        admit(&tree.parse().unwrap(), 0, &design)
    };
    let strength = |newest| match with(newest) {
        Admission::Delay(pressure) => pressure.strength(),
        other => panic!("{other:?}"),
    };
    assert_eq!([10, 50, 100, 250].map(strength), [0.1, 0.5, 1.0, 1.0]);
    let Admission::Delay(pressure) = with(50) else { panic!() };
    assert_eq!(
        pressure.to_string(),
        "level-runs: 2 in level 1, the newest fills 50 % of it (delay at 2, stop at 3)"
    );
    let one: TreeShape = "L1 r2: 2=a..=z:100B".parse().unwrap();
    assert_eq!(admit(&one, 0, &design), Admission::Proceed);
}

#[test]
fn immutable_memtables_stop_writers_whatever_the_shape() {
    let answer = admit(&TreeShape::default(), 2, &design());
    let Admission::Stop(pressure) = answer else { panic!("{answer:?}") };
    assert_eq!(pressure.to_string(), "immutable-memtables: 2 (delay at 2, stop at 2)");
}

/// With a bound of 1.3, writers slow down from 1.3 to 1.45 times the live values. Garbage of four
/// files does not count.
#[test]
fn garbage_beyond_the_space_bound_slows_writers_down_and_stops_them() {
    let answer = |mib: u64, settings: &str| {
        let design: Design = format!(
            "tiering T=3; values=separate(1KiB,file=1MiB); violation=slow-down; {settings}"
        )
        .parse()
        .unwrap();
        let shape = format!("L1 r1: 1=a..=z:1KiB,values=3:100MiB/100\nV 3: {mib}MiB");
        admit(&shape.parse().unwrap(), 0, &design)
    };
    assert_eq!(answer(133, ""), Admission::Proceed);
    let strength = |mib| match answer(mib, "") {
        Admission::Delay(pressure) => pressure.strength(),
        other => panic!("{other:?}"),
    };
    assert!(0.0 < strength(134) && strength(134) < strength(148) && strength(148) < 1.0);
    let Admission::Stop(pressure) = answer(149, "") else { panic!() };
    assert_eq!(
        pressure.to_string(),
        "value-space: 145 % of the live values (delay at 130 %, stop at 145 %)"
    );
    assert_eq!(pressure.until(), "value files take less than 130 % of the bytes of live values");
    assert_eq!(answer(148, "violation=stop"), Admission::Proceed);
    assert_eq!(answer(900, "violation=none"), Admission::Proceed);
    assert_eq!(answer(900, "values=inline"), Admission::Proceed);
}

#[test]
fn the_stricter_of_two_limits_holds() {
    let design: Design =
        "tiering L0=2 T=2; delay=3; stop=5; violation=slow-down; values=separate(1KiB,file=1MiB)"
            .parse()
            .unwrap();
    let verdict = |runs: u64, mib: u64| {
        let runs = (1..=runs).map(|run| format!("L0 r{run}: {run}=a..=z:1,values=900:10MiB/1\n"));
        let shape = format!("{}V 900: {mib}MiB", runs.collect::<String>());
        match admit(&shape.parse().unwrap(), 0, &design) {
            Admission::Proceed => "proceed".to_owned(),
            Admission::Delay(pressure) => format!("delay by {}", pressure.cause),
            Admission::Stop(pressure) => format!("stop by {}", pressure.cause),
        }
    };
    assert_eq!(verdict(2, 20), "proceed");
    assert_eq!(verdict(3, 30), "delay by level-0-runs");
    assert_eq!(verdict(2, 32), "delay by value-space");
    assert_eq!(verdict(5, 50), "stop by level-0-runs");
    assert_eq!(verdict(3, 90), "stop by value-space");
    assert_eq!(verdict(5, 90), "stop by level-0-runs");
}

#[test]
fn the_default_stops_writers_and_never_delays_them() {
    let design: Design = crate::catalogue::DEFAULT.parse().unwrap();
    let Constraint { delay_runs, stop_runs, .. } = design.constraint;
    assert_eq!(admit(&with_runs(delay_runs.into()), 0, &design), Admission::Proceed);
    assert_eq!(admit(&with_runs(u64::from(stop_runs) - 1), 0, &design), Admission::Proceed);
    assert!(matches!(admit(&with_runs(stop_runs.into()), 0, &design), Admission::Stop(_)));
}

fn pressure(cause: StallCause, measured: u32) -> Pressure {
    Pressure::new(cause, Some(2), measured, 4, 8)
}

/// Flushes that were requested when the limit was reached may add three runs.
#[test]
fn stops_take_effect_at_once_only_if_pending_flushes_did_not_cause_them() {
    let at_once = |cause| [8, 11, 12].map(|measured| pressure(cause, measured).stops_at_once());
    for cause in StallCause::ALL {
        let expected = match cause {
            StallCause::CompactionsDue | StallCause::MemoryBudget => [true; 3],
            StallCause::ImmutableMemtables | StallCause::ValueSpace => [false; 3],
            _ => [false, false, true],
        };
        assert_eq!(at_once(cause), expected, "{cause}");
    }
}

#[test]
fn delays_grow_with_the_square_of_the_way_to_the_stop() {
    let delay = |measured, newest_percent| {
        let pressure = pressure(StallCause::LevelRuns, measured);
        Pressure { newest_percent, ..pressure }.delay_nanos_per_byte()
    };
    let near = |delay: f64, expected: f64| assert!((delay - expected).abs() < 1e-9, "{delay}");
    // One step of five, three steps, and all five.
    near(delay(4, None), 9.6);
    near(delay(6, None), 86.4);
    near(delay(8, None), 240.0);
    near(delay(9, None), 240.0);
    // The fill of a level counts as part of a step.
    near(delay(4, Some(0)), 0.0);
    near(delay(5, Some(50)), 240.0 * 0.375 * 0.375);
}

#[test]
fn every_cause_has_a_name_and_says_what_ends_its_stall() {
    let texts = StallCause::ALL.map(|cause| {
        let pressure = pressure(cause, 8);
        (cause.to_string(), pressure.to_string(), pressure.until())
    });
    let text = |texts: [&str; 3]| texts.map(str::to_owned).into();
    let expected: [(String, String, String); 7] = [
        text([
            "level-0-runs",
            "level-0-runs: 8 (delay at 4, stop at 8)",
            "level 2 holds fewer than 4 runs",
        ]),
        text([
            "level-runs",
            "level-runs: 8 in level 2 (delay at 4, stop at 8)",
            "level 2 holds fewer than 4 runs",
        ]),
        text([
            "total-runs",
            "total-runs: 8 (delay at 4, stop at 8)",
            "all levels hold fewer than 4 runs",
        ]),
        text([
            "immutable-memtables",
            "immutable-memtables: 8 (delay at 4, stop at 8)",
            "fewer than 4 memtables wait to be flushed",
        ]),
        text([
            "compactions-due",
            "compactions-due: level 2 needs a compaction",
            "level 2 needs no compaction",
        ]),
        text([
            "value-space",
            "value-space: 8 % of the live values (delay at 4 %, stop at 8 %)",
            "value files take less than 4 % of the bytes of live values",
        ]),
        text([
            "memory-budget",
            "memory-budget: memtables take 8 % of their share",
            "memtables take less than their share of memory",
        ]),
    ];
    assert_eq!(texts, expected);
}

fn tree(runs: &[(usize, u64)]) -> TreeShape {
    let mut number = 100;
    let mut lines = String::new();
    for (level, bytes) in runs {
        number -= 1;
        lines += &format!("L{level} r{number}: {number}=a..=z:{bytes}B\n");
    }
    lines.parse().unwrap()
}

#[test]
fn a_local_limit_goes_by_the_level_that_is_closest_to_its_own() {
    let design: Design = "tiering T=3 L0=3; limit=local(2x); violation=slow-down".parse().unwrap();
    let worst = |runs: &[(usize, u64)]| match admit(&tree(runs), 0, &design) {
        Admission::Proceed => None,
        Admission::Delay(pressure) | Admission::Stop(pressure) => {
            // Only a level of one run considers the fill of its newest run.
            assert_eq!(pressure.newest_percent, None);
            Some((pressure.level.unwrap(), pressure.measured, pressure.stop_at))
        }
    };
    // Level 0 may hold five runs, and the others six.
    assert_eq!(worst(&[(0, 1); 4]), None);
    assert_eq!(worst(&[[(0, 1); 5], [(1, 9); 5]].concat()), Some((0, 5, 6)));
    assert_eq!(worst(&[vec![(0, 1); 5], vec![(1, 9); 6]].concat()), Some((1, 6, 7)));
    assert_eq!(worst(&[vec![(0, 1); 6], vec![(1, 9); 6]].concat()), Some((0, 6, 6)));
    assert_eq!(worst(&[vec![(1, 9); 6], vec![(2, 9); 6]].concat()), Some((1, 6, 7)));
    // Of two levels of one run each, the fuller one decides.
    let leveled: Design = "leveling T=10 L0=1; granularity=level; base=100B; limit=local(2x); \
                           violation=slow-down"
        .parse()
        .unwrap();
    let shape = tree(&[(1, 10), (1, 100), (2, 900), (2, 1000)]);
    let Admission::Delay(pressure) = admit(&shape, 0, &leveled) else { panic!() };
    assert_eq!((pressure.level, pressure.newest_percent), (Some(2), Some(90)));
    let flushed = tree(&[(0, 10), (0, 10), (1, 10)]);
    let Admission::Stop(pressure) = admit(&flushed, 0, &leveled) else { panic!() };
    assert_eq!((pressure.level, pressure.newest_percent), (Some(0), None));
    // Of two levels with different limits, the one closer to its limit decides: six of eleven runs
    // in level 1, or two of three in level 2.
    let lazy: Design =
        "lazy-leveling T=5 L0=5; limit=local(2x); violation=slow-down".parse().unwrap();
    let shape = tree(&[vec![(1, 9); 6], vec![(2, 9); 2]].concat());
    let pressure = limited_runs(&shape, &lazy);
    assert_eq!((pressure.level, pressure.measured, pressure.stop_at), (Some(2), 2, 3));
}

#[test]
fn runs_that_merge_no_more_do_not_count_and_merging_flushes_count_memtables() {
    let share = |design: &str, runs: &[(usize, u64)]| {
        share_of_limit(&tree(runs), &design.parse::<Design>().unwrap())
    };
    let near = |share: f64, expected: f64| assert!((share - expected).abs() < 1e-9, "{share}");
    near(share("balanced", &[(0, 1); 6]), 0.25);
    near(
        share("tiering T=3 L0=3; limit=global(2x)", &[vec![(0, 1); 3], vec![(1, 9); 6]].concat()),
        0.75,
    );
    // Level 0 passes its run on, and level 1 expects three runs; the bound is twice their total.
    near(share("tiering T=3 L0=1; limit=global(2x)", &[(1, 9); 3]), 0.5);
    let sized = "tiering; granularity=run; movement=none; trigger=prefix(1KiB,5,1.2); \
                 buffer=1KiB; delay=10; stop=20";
    near(share(sized, &[vec![(0, 5000); 7], vec![(0, 10); 5]].concat()), 0.25);
    // A run of three memtables counts as three.
    let merging = "1-leveling L0=4 base=1MiB; flush=merge; buffer=1KiB; table=1KiB";
    near(share(merging, &[(0, 3072)]), 3.0 / 24.0);
    near(share(merging, &[(0, 100), (0, 100)]), 2.0 / 24.0);
    let merging = format!("{merging}; limit=global(10)");
    near(share(&merging, &[(0, 3072), (1, 9), (2, 9)]), 0.5);
    let merging = merging.replace("global(10)", "local(8)");
    near(share(&merging, &[(0, 3072), (1, 9)]), 3.0 / 8.0);
    near(share(&merging, &[(1, 9), (1, 9)]), 2.0 / 9.0);
}

use super::*;
use crate::catalogue;

const COSTS: DesignCosts = DesignCosts {
    written: 10.0,
    merged: 9.0,
    found_blocks: 1.0,
    missing_blocks: 0.05,
    value_reads: 0.0,
    runs: 5.0,
    space: 1.1,
    stalled: None,
    p99_seconds: None,
};

const PRICES: Prices =
    Prices { write: 1e-6, merge_entry: 1e-6, byte: 4e-9, block: 1e-4, run: 1e-7, scan_entry: 1e-7 };

fn question(shares: [f64; 4]) -> AdviceQuestion {
    AdviceQuestion {
        shares: OperationShares::new(shares, 16.0).unwrap(),
        record_bytes: 100.0,
        prices: PRICES,
        objective: Objective::default(),
        limits: Limits::default(),
    }
}

fn candidate(name: &str, costs: DesignCosts) -> DesignCandidate {
    DesignCandidate { name: name.into(), design: "leveling".parse().unwrap(), costs }
}

#[test]
fn the_workload_decides_which_of_two_designs_is_the_better_one() {
    let reads = candidate("reads", DesignCosts { written: 20.0, merged: 20.0, ..COSTS });
    let lazy = DesignCosts { written: 3.0, merged: 2.0, found_blocks: 1.5, runs: 20.0, ..COSTS };
    let writes = candidate("writes", lazy);
    let first = |shares| {
        let ranked = rank(&question(shares), vec![reads.clone(), writes.clone()]);
        ranked[0].candidate.name.clone()
    };
    assert_eq!(first([1.0, 0.0, 0.0, 0.0]), "writes");
    assert_eq!(first([0.05, 0.95, 0.0, 0.0]), "reads");
    assert_eq!(first([0.05, 0.0, 0.0, 0.95]), "reads");
}

#[test]
fn candidates_over_a_limit_rank_behind_all_others() {
    let mut question = question([1.0, 0.0, 0.0, 0.0]);
    question.limits.space = Some(1.3);
    let wide = candidate("wide", DesignCosts { written: 2.0, space: 1.9, ..COSTS });
    let ranked = rank(&question, vec![wide, candidate("slow", COSTS)]);
    assert_eq!(ranked[0].candidate.name, "slow");
    assert_eq!(ranked[1].exceeds, ["space 1.900 over 1.3"]);
    assert!(ranked[1].score < ranked[0].score);
}

#[test]
fn the_order_of_candidates_makes_no_difference() {
    let all: Vec<DesignCandidate> = ["c", "a", "b"].map(|name| candidate(name, COSTS)).to_vec();
    let mut turned = all.clone();
    turned.reverse();
    let question = question([1.0, 1.0, 1.0, 1.0]);
    assert_eq!(rank(&question, all), rank(&question, turned));
}

#[test]
fn differences_name_gains_and_losses() {
    let shares = question([0.5, 0.5, 0.0, 0.0]).shares;
    let other = DesignCosts { written: 14.0, found_blocks: 0.69, runs: 9.0, ..COSTS };
    assert_eq!(
        difference(&other, &COSTS, &shares),
        "31 % fewer blocks per lookup, for 1.4× the bytes written"
    );
    assert_eq!(difference(&COSTS, &COSTS, &shares), "costs the same, within 5 %");
    let separated = DesignCosts { written: 5.0, value_reads: 1.0, ..COSTS };
    assert_eq!(
        difference(&separated, &COSTS, &shares),
        "50 % fewer bytes written, for a separate read of each value found"
    );
    let stalled = |part| DesignCosts { stalled: Some(part), ..COSTS };
    assert_eq!(
        difference(&stalled(0.4), &stalled(0.0), &shares),
        "many times the time stalled, with no gain"
    );
}

#[test]
fn briefs_parse_to_the_designs_they_stand_for() {
    for entry in catalogue::ALL {
        let design = (entry.design)();
        let text = summary(&design);
        assert_eq!(text.parse::<Design>().as_ref(), Ok(&design), "{}: {text}", entry.name);
        assert!(text.len() <= design.to_string().len(), "{text}");
    }
    assert_eq!(summary(&"tiering T=4".parse().unwrap()), "tiering T=4");
}

#[test]
fn candidates_are_valid_and_keep_the_given_sizes_and_filter_memory() {
    let base: Design = "balanced; buffer=1MiB; table=512KiB; block=8KiB".parse().unwrap();
    let all = catalogue_on(&base, 7.0, 100);
    assert!(all.len() > 30, "{}", all.len());
    for (name, design) in &all {
        assert_eq!(design.validate(), Ok(()), "{name}");
        let sizes = (design.buffer_bytes, design.table_bytes, design.block_bytes);
        assert_eq!(
            (sizes, design.filter_bits.get(3)),
            ((1 << 20, 512 << 10, 8 << 10), 7.0),
            "{name}"
        );
        for (text, near) in neighbours(design, 4096) {
            assert_eq!(text.parse::<Design>(), Ok(near.clone()), "{name}: {text}");
            assert_ne!(near, *design);
        }
    }
    let balanced = &all.iter().find(|(name, _)| name == "balanced").unwrap().1;
    assert_eq!(balanced.strategy.base_bytes, Some(4 << 20));
    assert!(neighbours(balanced, 100).len() > 10);
}

#[test]
fn objectives_parse_and_print_back() {
    for text in
        ["write=1,lookup=1,range=1,space=0.1,stall=2", "write=0,lookup=3,range=1,space=0,stall=0"]
    {
        assert_eq!(text.parse::<Objective>().unwrap().to_string(), text);
    }
    for text in ["speed=1", "write", "write=-1", "write=NaN"] {
        assert!(text.parse::<Objective>().is_err(), "{text}");
    }
    assert_eq!(payback_operations(10.0, 0.001), Some(10_000.0));
    assert_eq!(payback_operations(10.0, 0.0), None);
}

#[test]
fn blocks_per_lookup_follow_from_filters_and_runs() {
    let design: Design = "leveling T=10; filter=10".parse().unwrap();
    let (found, missing, runs) =
        DesignCosts::of_levels(&design, &[(0.0, 0.0), (1.0, 10.0), (1.0, 100.0)]);
    let rate = crate::allocation::false_positive_rate(10.0);
    assert!((missing - 2.0 * rate).abs() < 1e-12 && runs == 2.0);
    assert!((found - (1.0 + rate * 100.0 / 110.0)).abs() < 1e-12);
    let bare: Design = "tiering T=4; filter=0".parse().unwrap();
    assert_eq!(DesignCosts::of_levels(&bare, &[(3.0, 30.0)]).1, 3.0);
}

#[test]
fn separated_values_are_candidates_for_records_of_which_some_value_is_large() {
    let base: Design = "balanced".parse().unwrap();
    let separated = |value_bytes: u64| {
        let near = neighbours(&base, value_bytes).into_iter();
        let known = catalogue_on(&base, 10.0, value_bytes).into_iter();
        near.chain(known).filter(|(_, design)| design.values.separation().is_some()).count()
    };
    assert_eq!(separated(100), 0);
    assert!(separated(4096) > 1, "{}", separated(4096));
    let back: Design = "balanced; values=separate(1KiB)".parse().unwrap();
    assert!(neighbours(&back, 4096).iter().any(|(_, design)| *design == base));
}

#[test]
fn reads_of_value_files_make_lookups_and_scans_slower() {
    let shares = question([0.5, 0.25, 0.25, 0.0]).shares;
    let times = |value_reads| {
        let costs = DesignCosts { value_reads, ..COSTS };
        OperationTimes::of(&costs, &shares, 4096.0, &PRICES)
    };
    let (inline, separated) = (times(0.0), times(1.0));
    assert_eq!(inline.write, separated.write);
    // Half of the lookups find their key.
    assert!((separated.lookup - inline.lookup - PRICES.block / 2.0).abs() < 1e-12);
    assert!((separated.scan - inline.scan - 16.0 * PRICES.block).abs() < 1e-12);
}

use super::*;

mod phases;

const BUFFER: u64 = 64 << 20;

/// Random writes of 100 bytes, lookups of which half find their key, and scans of ten entries.
fn mix(writes: u64, lookups: u64, scans: u64) -> MemtableOperations {
    let mut mix = MemtableOperations { writes, lookups, scans, ..MemtableOperations::default() };
    mix.ascending = writes / 2;
    mix.written_bytes = writes * 100;
    mix.distinct = writes;
    mix.found = lookups / 2;
    mix.scanned = scans * 10;
    mix
}

fn name(kind: MemtableKind) -> String {
    let text = kind.to_string();
    text.split_once("(buckets").map_or(text.clone(), |(name, _)| name.to_owned())
}

fn chosen(mix: &MemtableOperations) -> String {
    name(choose(mix, None, BUFFER).kind)
}

#[test]
fn each_kind_is_chosen_for_its_best_mix() {
    assert_eq!(chosen(&mix(1_000_000, 0, 0)), "vector");
    assert_eq!(chosen(&mix(1_000_000, 100, 0)), "vector(query=scan)");
    assert_eq!(chosen(&mix(1_000_000, 10_000, 0)), "vector");
    assert_eq!(chosen(&mix(500_000, 500_000, 0)), "hash-vector");
    assert_eq!(chosen(&mix(300_000, 700_000, 0)), "hash-vector");
    assert_eq!(chosen(&mix(500_000, 0, 500_000)), "btree");
    assert_eq!(chosen(&mix(500_000, 100_000, 500_000)), "btree");
}

#[test]
fn few_operations_and_small_gains_change_nothing() {
    let vector = Some(MemtableKind::VECTOR);
    let few = choose(&mix(10, 9, 9), vector, BUFFER);
    assert_eq!(few.kind, MemtableKind::VECTOR);
    assert!(few.reason.contains("28 operations"), "{}", few.reason);
    // A second choice for the same mix confirms the first.
    for lookups in 0..100 {
        let mix = mix(100_000, lookups * 2000, lookups % 7 * 100);
        let first = choose(&mix, None, BUFFER).kind;
        assert_eq!(choose(&mix, Some(first), BUFFER).kind, first);
    }
}

/// Hysteresis: for mixes where two kinds cost nearly the same, whichever kind is current stays.
#[test]
fn the_current_kind_stays_if_another_is_only_slightly_better() {
    let with_lookups = |lookups| mix(1_000_000, lookups, 0);
    let keeps = |kind: MemtableKind, lookups| {
        are_alike(choose(&with_lookups(lookups), Some(kind), BUFFER).kind, kind)
    };
    let sorted = choose(&with_lookups(10_000), None, BUFFER).kind;
    let hashed = choose(&with_lookups(500_000), None, BUFFER).kind;
    let both = (100..500_000)
        .step_by(500)
        .filter(|&lookups| keeps(sorted, lookups) && keeps(hashed, lookups));
    assert!(both.count() > 0);
}

#[test]
fn a_choice_is_valid_and_has_a_reason() {
    for buffer_bytes in [1 << 10, 64 << 10, 64 << 20, 1 << 40] {
        for (writes, lookups, scans) in
            [(10_000, 0, 0), (0, 10_000, 0), (10_000, 10_000, 0), (9000, 100, 9000)]
        {
            let choice = choose(&mix(writes, lookups, scans), None, buffer_bytes);
            let text = format!("leveling; buffer={buffer_bytes}; memtable={}", choice.kind);
            assert!(text.parse::<crate::Design>().is_ok(), "{text}");
            assert!(choice.reason.contains("% writes") && choice.reason.contains("btree"));
        }
    }
}

#[test]
fn interpolated_costs_lie_between_measured_ones() {
    for costs in [MEASURED.btree, MEASURED.vector, MEASURED.vector_scanned, MEASURED.hash_vector] {
        let sizes = costs::SIZES;
        for pair in sizes.windows(2).zip(costs.lookup.windows(2)) {
            let (size, cost) = pair;
            let between = costs::at(&costs.lookup, (size[0] * size[1]).sqrt());
            assert!(between >= cost[0].min(cost[1]) && between <= cost[0].max(cost[1]));
        }
        assert!((costs::at(&costs.lookup, 1.0) - costs.lookup[0]).abs() < f64::EPSILON);
        assert!(costs::at(&costs.lookup, 1e12).is_finite());
    }
}

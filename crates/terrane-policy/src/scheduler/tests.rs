use super::*;

/// `id:tree:remaining`, with `*` behind those that run.
fn merges(scheduler: &str, text: &str) -> Vec<ScheduledMerge> {
    let scheduler: Scheduler = scheduler.parse().unwrap();
    let parsed = text.split_whitespace().map(|word| {
        let is_running = word.ends_with('*');
        let numbers: Vec<u64> =
            word.trim_end_matches('*').split(':').map(|part| part.parse().unwrap()).collect();
        ScheduledMerge {
            id: numbers[0],
            tree: u32::try_from(numbers[1]).unwrap(),
            scheduler,
            remaining_bytes: numbers[2],
            refilled: 0.0,
            is_running,
        }
    });
    parsed.collect()
}

fn running(scheduler: &str, text: &str, places: usize) -> Vec<u64> {
    let merges = merges(scheduler, text);
    let shares = allocate(&merges, places);
    let total: f64 = shares.iter().sum();
    assert!((total - 1.0).abs() < 1e-9, "{shares:?}");
    merges.iter().zip(shares).filter(|(_, share)| *share > 0.0).map(|(merge, _)| merge.id).collect()
}

#[test]
fn nothing_is_shared_among_no_merges() {
    assert!(allocate(&[], 4).is_empty());
}

#[test]
fn one_at_a_time_goes_by_age_whatever_is_left() {
    assert_eq!(running("single", "3:1:10 1:1:500 2:1:1", 4), [1]);
}

#[test]
fn fair_is_the_same_to_each() {
    assert_eq!(allocate(&merges("fair", "1:1:10 2:1:500 3:1:1 4:1:8"), 1), [0.25; 4]);
}

#[test]
fn greedy_runs_those_with_the_least_left() {
    assert_eq!(running("greedy", "1:1:100* 2:1:40 3:1:60", 1), [2]);
    assert_eq!(running("greedy(2)", "1:1:100* 2:1:40 3:1:60", 1), [2, 3]);
    // Of two equal ones the one that runs goes on.
    assert_eq!(running("greedy", "1:1:40 2:1:40*", 1), [2]);
}

#[test]
fn greedy_over_several_trees_keeps_places_until_a_merge_ends() {
    // One place: the tree that has it keeps it, also if another one has more and smaller merges.
    assert_eq!(running("greedy", "1:1:100* 2:2:10 3:2:20", 1), [1]);
    // A smaller merge of the same tree takes its place at once.
    assert_eq!(running("greedy", "1:1:100* 2:2:10 3:2:20 4:1:50", 1), [4]);
    // A place that comes free goes to the tree with the most merges, and there to the smallest.
    assert_eq!(running("greedy", "1:1:5 2:2:30 3:2:20", 1), [3]);
    // With two places both run.
    assert_eq!(running("greedy", "1:1:5 2:2:30 3:2:20", 2), [1, 3]);
}

#[test]
fn gear_gives_more_to_what_is_needed_sooner() {
    let mut two = merges("gear", "1:1:100 2:1:100");
    assert_eq!(allocate(&two, 1), [0.5, 0.5]);
    two[0].refilled = 0.75;
    let shares = allocate(&two, 1);
    assert!((shares[0] - 0.8).abs() < 1e-9, "{shares:?}");
    // Both reach their end when their levels are full again: input left over room left is as large.
    two[0].refilled = 5.0;
    assert!(allocate(&two, 1)[0] > 0.98);
}

#[test]
fn trees_with_other_rules_have_a_part_by_their_number() {
    let mut all = merges("greedy", "1:1:10 2:1:20 3:2:30");
    all.extend(merges("single", "4:3:10"));
    let shares = allocate(&all, 2);
    assert_eq!(shares[1], 0.0);
    assert!((shares[0] - 1.0 / 3.0).abs() < 1e-9 && (shares[3] - 1.0 / 3.0).abs() < 1e-9);
}

#[test]
fn schedulers_print_as_they_parse() {
    for text in ["single", "fair", "greedy", "greedy(3)", "gear"] {
        assert_eq!(text.parse::<Scheduler>().unwrap().to_string(), text);
    }
    for text in ["", "greedy(0)", "greedy(x)", "greedy(65)", "fair(2)", "greedy("] {
        assert!(text.parse::<Scheduler>().is_err(), "{text}");
    }
}

/// When the `i`-th of some merges ends, if whoever has a share works through its input.
fn ends(scheduler: &dyn Fn(&[ScheduledMerge]) -> Vec<f64>, merges: &[ScheduledMerge]) -> Vec<f64> {
    let mut left: Vec<(ScheduledMerge, f64)> =
        merges.iter().map(|merge| (*merge, merge.remaining_bytes as f64)).collect();
    let (mut now, mut ends) = (0.0, Vec::new());
    while !left.is_empty() {
        let current: Vec<ScheduledMerge> = left
            .iter()
            .map(|(merge, bytes)| ScheduledMerge { remaining_bytes: bytes.ceil() as u64, ..*merge })
            .collect();
        let shares = scheduler(&current);
        let next = left.iter().zip(&shares).filter(|(_, share)| **share > 0.0);
        let step = next.map(|((_, bytes), share)| bytes / share).fold(f64::INFINITY, f64::min);
        now += step;
        for ((merge, bytes), share) in left.iter_mut().zip(&shares) {
            *bytes -= share * step;
            merge.is_running = *share > 0.0;
        }
        let before = left.len();
        left.retain(|(_, bytes)| *bytes > 1e-6);
        ends.extend(std::iter::repeat_n(now, before - left.len()));
    }
    ends
}

/// Theorem 2: of a set of merges of as many runs each, greedy has ended the `i`-th no later than
/// any other scheduler, for every `i`; so there are no more runs at any time.
#[test]
fn greedy_has_the_fewest_runs_at_every_time_for_a_given_set_of_merges() {
    let mut rng = terrane_testkit::Rng::new(terrane_testkit::seed_from_env(11));
    for _ in 0..300 {
        let count = rng.between(1, 9);
        let text: String =
            (0..count).map(|id| format!("{id}:1:{} ", 1 + rng.below(1000))).collect();
        let greedy = ends(&|merges| allocate(merges, 1), &merges("greedy", &text));
        for other in ["single", "fair", "greedy(2)", "gear", "random"] {
            let seed = rng.below(1 << 40);
            let by_chance = |merges: &[ScheduledMerge]| {
                let weight = |merge: &ScheduledMerge| {
                    ((merge.id + 1) * (seed + merge.remaining_bytes) % 97 + 1) as f64
                };
                let total: f64 = merges.iter().map(weight).sum();
                merges.iter().map(|merge| weight(merge) / total).collect::<Vec<f64>>()
            };
            let all = merges(if other == "random" { "fair" } else { other }, &text);
            let theirs = match other {
                "random" => ends(&by_chance, &all),
                _ => ends(&|merges| allocate(merges, 1), &all),
            };
            for (at, (ours, theirs)) in greedy.iter().zip(&theirs).enumerate() {
                assert!(
                    *ours <= theirs + 1e-6,
                    "merge {at} of {text} under {other}: {ours} {theirs}"
                );
            }
        }
    }
}

/// Theorem 3: where the end of a large merge lets a small one begin, no scheduler has the fewest
/// runs at all times. One that does the small merge first ends its first merge sooner, one that
/// does the large merge first ends its second sooner.
#[test]
fn no_scheduler_is_best_at_all_times() {
    const SMALL: f64 = 10.0;
    const LARGE: f64 = 12.0;
    const NEXT: f64 = 1.0;
    let small_first = [SMALL, SMALL + LARGE];
    let large_first = [LARGE, LARGE + NEXT];
    assert!(small_first[0] < large_first[0] && large_first[1] < small_first[1]);
    // What a scheduler with the first end of the one and the second of the other would have to do
    // within the second end: more than there is time for.
    assert!(SMALL + LARGE + NEXT > large_first[1]);
}

#[test]
fn rates_that_full_merges_sustain_are_those_of_the_paper() {
    // §5.1.3: a ratio of 10 and a merge into level 5 of 5 need 4000 flushes to be tolerated.
    let rate = leveling_entries_per_second(1.0, 10, 5);
    assert!((tolerated_flushes(rate, 1.0, 10, 5) - 4000.0).abs() < 1e-9);
    let rate = tiering_entries_per_second(1.0, 3);
    assert!((tolerated_flushes(rate, 1.0, 4, 3) - 64.0 / 3.0).abs() < 1e-9);
}

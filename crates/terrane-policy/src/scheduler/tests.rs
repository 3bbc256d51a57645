use super::*;

/// Parses merges from `id:tree:remaining`, with `*` after those that run.
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

fn running(scheduler: &str, text: &str, slots: usize) -> Vec<u64> {
    let merges = merges(scheduler, text);
    let shares = allocate(&merges, slots);
    let total: f64 = shares.iter().sum();
    assert!((total - 1.0).abs() < 1e-9, "{shares:?}");
    merges.iter().zip(shares).filter(|(_, share)| *share > 0.0).map(|(merge, _)| merge.id).collect()
}

#[test]
fn no_merges_get_no_shares() {
    assert!(allocate(&[], 4).is_empty());
}

#[test]
fn single_runs_the_oldest_merge_whatever_its_remaining_input() {
    assert_eq!(running("single", "3:1:10 1:1:500 2:1:1", 4), [1]);
}

#[test]
fn fair_gives_each_merge_the_same_share() {
    assert_eq!(allocate(&merges("fair", "1:1:10 2:1:500 3:1:1 4:1:8"), 1), [0.25; 4]);
}

#[test]
fn greedy_runs_the_merges_with_the_least_input_left() {
    assert_eq!(running("greedy", "1:1:100* 2:1:40 3:1:60", 1), [2]);
    assert_eq!(running("greedy(2)", "1:1:100* 2:1:40 3:1:60", 1), [2, 3]);
    // Of two equal merges, the running one continues.
    assert_eq!(running("greedy", "1:1:40 2:1:40*", 1), [2]);
}

#[test]
fn greedy_over_several_trees_keeps_slots_until_a_merge_ends() {
    // The tree with the only slot keeps it even if another tree has more and smaller merges.
    assert_eq!(running("greedy", "1:1:100* 2:2:10 3:2:20", 1), [1]);
    // A smaller merge of the same tree displaces its running merge at once.
    assert_eq!(running("greedy", "1:1:100* 2:2:10 3:2:20 4:1:50", 1), [4]);
    // A free slot goes to the tree with the most merges, and there to the smallest merge.
    assert_eq!(running("greedy", "1:1:5 2:2:30 3:2:20", 1), [3]);
    // With two slots, both trees run a merge.
    assert_eq!(running("greedy", "1:1:5 2:2:30 3:2:20", 2), [1, 3]);
}

#[test]
fn gear_gives_a_larger_share_to_the_merge_that_is_needed_sooner() {
    let mut two = merges("gear", "1:1:100 2:1:100");
    assert_eq!(allocate(&two, 1), [0.5, 0.5]);
    two[0].refilled = 0.75;
    let shares = allocate(&two, 1);
    assert!((shares[0] - 0.8).abs() < 1e-9, "{shares:?}");
    // A merge out of a full level takes nearly all of the bandwidth.
    two[0].refilled = 5.0;
    assert!(allocate(&two, 1)[0] > 0.98);
}

#[test]
fn schedulers_share_the_bandwidth_in_proportion_to_their_trees() {
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

/// Returns the times at which merges end, in rising order.
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

/// Theorem 2: for a given set of merges that each take the same number of runs, greedy completes the
/// `i`-th merge no later than any other scheduler, for every `i`. So it has the fewest runs at any
/// time.
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
            let random_shares = |merges: &[ScheduledMerge]| {
                let weight = |merge: &ScheduledMerge| {
                    ((merge.id + 1) * (seed + merge.remaining_bytes) % 97 + 1) as f64
                };
                let total: f64 = merges.iter().map(weight).sum();
                merges.iter().map(|merge| weight(merge) / total).collect::<Vec<f64>>()
            };
            let all = merges(if other == "random" { "fair" } else { other }, &text);
            let theirs = match other {
                "random" => ends(&random_shares, &all),
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

/// Theorem 3: if the end of a large merge enables a small one, no scheduler has the fewest runs at
/// all times. Running the small merge first completes the first merge sooner; running the large
/// merge first completes the second one sooner.
#[test]
fn no_scheduler_is_best_at_all_times() {
    const SMALL: f64 = 10.0;
    const LARGE: f64 = 12.0;
    const NEXT: f64 = 1.0;
    let small_first = [SMALL, SMALL + LARGE];
    let large_first = [LARGE, LARGE + NEXT];
    assert!(small_first[0] < large_first[0] && large_first[1] < small_first[1]);
    // A scheduler as good as both would have to complete all three merges by the second end, which
    // takes longer.
    assert!(SMALL + LARGE + NEXT > large_first[1]);
}

#[test]
fn sustainable_rates_match_the_paper() {
    // §5.1.3: with ratio 10, a merge into level 5 of 5 requires that 4000 flushes are tolerated.
    let rate = leveling_entries_per_second(1.0, 10, 5);
    assert!((tolerated_flushes(rate, 1.0, 10, 5) - 4000.0).abs() < 1e-9);
    let rate = tiering_entries_per_second(1.0, 3);
    assert!((tolerated_flushes(rate, 1.0, 4, 3) - 64.0 / 3.0).abs() < 1e-9);
}

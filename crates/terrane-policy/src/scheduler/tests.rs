use super::*;

/// Parses merges from `id:tree:remaining`; `*` marks running merges.
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
    assert_eq!(running("greedy", "1:1:100 2:1:10* 3:2:5 4:2:5 5:2:5", 1), [2]);
    // A smaller merge of the same tree displaces its running merge at once.
    assert_eq!(running("greedy", "1:1:100* 2:2:10 3:2:20 4:1:50", 1), [4]);
    // A free slot goes to the tree with the most merges, and there to the smallest merge.
    assert_eq!(running("greedy", "1:1:5 2:2:30 3:2:20", 1), [3]);
    // Of trees with equally many merges, the one with the oldest merge gets it.
    assert_eq!(running("greedy", "1:1:5 2:2:5 3:2:5 4:1:5", 1), [1]);
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
    // Of two levels with the same room, the one with the larger merge needs more bandwidth.
    assert_eq!(allocate(&merges("gear", "1:1:100 2:1:300"), 1), [0.25, 0.75]);
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
    // The order in which merges are listed does not matter.
    all.swap(1, 2);
    let shares = allocate(&all, 2);
    assert!((shares[0] - 1.0 / 3.0).abs() < 1e-9, "{shares:?}");
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

/// Returns the times at which merges end, in ascending order. When a merge ends, `created` may add
/// another.
fn ends_of(
    scheduler: &dyn Fn(&[ScheduledMerge]) -> Vec<f64>,
    merges: &[ScheduledMerge],
    created: &dyn Fn(&ScheduledMerge) -> Option<ScheduledMerge>,
) -> Vec<f64> {
    let entry = |merge: &ScheduledMerge| (*merge, merge.remaining_bytes as f64);
    let mut left: Vec<(ScheduledMerge, f64)> = merges.iter().map(entry).collect();
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
        let (done, rest): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|(_, bytes)| *bytes <= 1e-6);
        ends.extend(std::iter::repeat_n(now, done.len()));
        left = rest;
        left.extend(done.iter().filter_map(|(merge, _)| created(merge)).map(|new| entry(&new)));
    }
    ends
}

/// Returns the times at which merges end, in ascending order.
fn ends(scheduler: &dyn Fn(&[ScheduledMerge]) -> Vec<f64>, merges: &[ScheduledMerge]) -> Vec<f64> {
    ends_of(scheduler, merges, &|_| None)
}

/// Theorem 2: for a given set of merges that each take the same number of runs, greedy completes
/// the `i`-th merge no later than any other scheduler, for every `i`. It therefore has the fewest
/// runs at any time.
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
    let created = |merge: &ScheduledMerge| {
        let next = ScheduledMerge { id: 9, remaining_bytes: 10, is_running: false, ..*merge };
        (merge.id == 7).then_some(next)
    };
    let play = |scheduler: &str, text: &str| {
        let all = merges(scheduler, text);
        ends_of(&|merges| allocate(merges, 1), &all, &created)
    };
    let mut played: Vec<(String, Vec<f64>)> = Vec::new();
    for scheduler in ["single", "fair", "greedy", "greedy(2)", "gear"] {
        // The order of creation matters only to `single`.
        for text in ["1:1:100 7:1:120", "7:1:120 8:1:100"] {
            played.push((format!("{scheduler}, {text}"), play(scheduler, text)));
        }
    }
    // All divisions of the bandwidth that stay constant while both merges run.
    for percent in 0..=100u32 {
        let part = f64::from(percent) / 100.0;
        let divided = |merges: &[ScheduledMerge]| match merges {
            [one, _] if one.id == 1 => vec![part, 1.0 - part],
            [_, next] if next.id == 9 => vec![0.0, 1.0],
            _ => allocate(merges, 1),
        };
        let all = merges("greedy", "1:1:100 7:1:120");
        played.push((format!("{percent} %"), ends_of(&divided, &all, &created)));
    }
    let best = |at: usize| played.iter().map(|(_, ends)| ends[at]).fold(f64::INFINITY, f64::min);
    let (first, second) = (best(0), best(1));
    let by = |name: &str| &played.iter().find(|(other, _)| other == name).unwrap().1[..2];
    assert_eq!(by("greedy, 1:1:100 7:1:120"), [first, 220.0]);
    assert_eq!(by("single, 7:1:120 8:1:100"), [120.0, 220.0]);
    assert_eq!(by("0 %"), [120.0, second]);
    for (name, ends) in &played {
        assert_eq!(ends.len(), 3, "{name}");
        assert!(ends[0] > first + 1e-6 || ends[1] > second + 1e-6, "{name} is best: {ends:?}");
    }
}

/// Simulated trees whose merges begin as threads and the scheduler allow, like the engine's gate.
struct Trees {
    scheduler: Scheduler,
    slots: usize,
    turns: Turns,
    begun: Vec<(ScheduledMerge, f64)>,
    next_id: u64,
    /// For each tree, the sizes of the merges that it needs, in reverse order.
    needed: Vec<Vec<u64>>,
    /// For each tree that needs a merge but has no share, the number of other trees' merges that
    /// have ended meanwhile.
    waited: Vec<u32>,
}

impl Trees {
    fn merges(&self) -> Vec<ScheduledMerge> {
        self.begun
            .iter()
            .map(|(merge, left)| ScheduledMerge { remaining_bytes: left.ceil() as u64, ..*merge })
            .collect()
    }

    fn decide(&mut self) -> Vec<f64> {
        let shares = self.turns.shares(&self.merges(), self.slots);
        for ((merge, _), share) in self.begun.iter_mut().zip(&shares) {
            merge.is_running = *share > 0.0;
            if *share > 0.0 {
                self.waited[merge.tree as usize] = 0;
            }
        }
        shares
    }

    /// Begins the merges that would get a share at once.
    fn begin(&mut self) {
        loop {
            let (id, scheduler) = (self.next_id, self.scheduler);
            let next = self.needed.iter().zip(0..).filter_map(|(sizes, tree)| {
                let remaining_bytes = *sizes.last()?;
                let (refilled, is_running) = (0.0, false);
                Some(ScheduledMerge { id, tree, scheduler, remaining_bytes, refilled, is_running })
            });
            let candidates: Vec<ScheduledMerge> = next.collect();
            let begun = self.merges();
            self.turns.note_waiting(candidates.iter().chain(&begun).map(|merge| merge.tree));
            let takes = |at: &usize| {
                let all = [&begun[..], &[candidates[*at]]].concat();
                self.turns.shares(&all, self.slots).last().is_some_and(|share| *share > 0.0)
            };
            let Some(at) = self.turns.order(&candidates, &begun).into_iter().find(takes) else {
                return;
            };
            let merge = candidates[at];
            self.needed[merge.tree as usize].pop();
            self.begun.push((merge, merge.remaining_bytes as f64));
            self.next_id += 1;
            self.decide();
        }
    }

    /// Runs until a merge ends. Returns false if no merge runs.
    fn run(&mut self) -> bool {
        let shares = self.decide();
        let sharing = self.begun.iter().zip(&shares).filter(|(_, share)| **share > 0.0);
        let times = sharing.map(|((_, left), share)| left / share);
        let step = times.fold(f64::INFINITY, f64::min);
        if !step.is_finite() {
            return false;
        }
        for ((_, left), share) in self.begun.iter_mut().zip(&shares) {
            *left -= share * step;
        }
        let at = self
            .begun
            .iter()
            .zip(&shares)
            .position(|((_, left), share)| *share > 0.0 && *left <= 1e-6);
        let at = at.unwrap();
        let tree = self.begun.remove(at).0.tree;
        self.turns.note_end(tree);
        for (merge, _) in self.begun.iter_mut().filter(|(merge, _)| merge.tree == tree) {
            merge.is_running = false;
        }
        for other in (0..self.waited.len()).filter(|other| *other != tree as usize) {
            let is_begun = self.begun.iter().any(|(merge, _)| merge.tree as usize == other);
            let runs = self
                .begun
                .iter()
                .any(|(merge, _)| merge.tree as usize == other && merge.is_running);
            if (is_begun || !self.needed[other].is_empty()) && !runs {
                self.waited[other] += 1;
            }
        }
        true
    }
}

/// Runs trees that are busy at random times. No tree waits for more merges of other trees than the
/// scheduler's bound, and some tree waits for exactly that many.
#[test]
fn no_tree_waits_for_more_merges_of_others_than_the_bound() {
    for scheduler in ["single", "fair", "greedy", "greedy(2)", "gear"] {
        let scheduler: Scheduler = scheduler.parse().unwrap();
        let mut rng = terrane_testkit::Rng::new(terrane_testkit::seed_from_env(17));
        let mut longest = 0;
        for _ in 0..20 {
            let count = rng.between(1, 6) as usize;
            let mut trees = Trees {
                scheduler,
                slots: rng.between(1, 3) as usize,
                turns: Turns::default(),
                begun: Vec::new(),
                next_id: 1,
                needed: vec![Vec::new(); count],
                waited: vec![0; count],
            };
            let busy: Vec<u64> = (0..count).map(|_| rng.between(5, 100)).collect();
            for _ in 0..150 {
                for (sizes, busy) in trees.needed.iter_mut().zip(&busy) {
                    while sizes.len() < 4 && rng.percent(*busy) {
                        let most = 1 << rng.between(1, 12);
                        sizes.push(1 + rng.below(most));
                    }
                }
                trees.begin();
                if !trees.run() {
                    continue;
                }
                let most = scheduler.merges_waited_max(count as u32);
                let waited = *trees.waited.iter().max().unwrap();
                assert!(waited <= most, "{scheduler}: {waited} merges, {count} trees");
                longest = longest.max(waited.saturating_sub(most.saturating_sub(1)));
            }
        }
        let shares_all = matches!(scheduler, Scheduler::Fair | Scheduler::Gear);
        assert_eq!(longest > 0, !shares_all, "{scheduler}: the bound is not tight");
    }
}

#[test]
fn the_order_of_trees_follows_their_turns() {
    let mut turns = Turns::default();
    let waiting = merges("greedy", "1:1:10 2:2:10 3:3:10");
    let begun = merges("greedy", "4:2:10");
    turns.note_waiting([1, 2, 3]);
    // The tree with the most merges goes first.
    assert_eq!(turns.order(&waiting, &begun), [1, 0, 2]);
    turns.note_end(2);
    assert_eq!([1, 2, 3].map(|tree| turns.passed(tree)), [1, 0, 1]);
    assert_eq!(turns.order(&waiting, &begun), [1, 0, 2]);
    // Tree 3 stops waiting, and waits again later.
    turns.note_waiting([1, 2]);
    turns.note_waiting([1, 2, 3]);
    turns.note_end(2);
    assert_eq!([1, 2, 3].map(|tree| turns.passed(tree)), [2, 0, 1]);
    assert_eq!(turns.order(&waiting, &begun), [0, 1, 2]);
    // Other schedulers serve trees in the order in which they began to wait.
    let waiting = merges("single", "1:1:10 2:2:10 3:3:10");
    assert_eq!(turns.order(&waiting, &begun), [0, 2, 1]);
}

#[test]
fn an_overdue_tree_takes_the_slot_of_a_running_one() {
    let all = merges("greedy", "1:1:100* 2:1:5 3:2:500");
    let mut turns = Turns::default();
    turns.note_waiting([1, 2]);
    turns.note_end(1);
    assert_eq!(turns.shares(&all, 1), [0.0, 1.0, 0.0]);
    turns.note_end(1);
    assert_eq!(turns.shares(&all, 1), [0.0, 0.0, 1.0]);
    assert_eq!(turns.shares(&all, 2), [0.0, 0.5, 0.5]);
    turns.note_end(2);
    assert_eq!(turns.shares(&all, 1), [0.0, 1.0, 0.0]);
    assert_eq!(
        ["greedy", "single"]
            .map(|name| { name.parse::<Scheduler>().unwrap().merges_waited_max(3) }),
        [3, 2]
    );
    assert_eq!(Scheduler::Fair.merges_waited_max(1), 0);
}

#[test]
fn shares_change_with_progress_if_a_scheduler_says_so() {
    let changes = |text: &str| text.parse::<Scheduler>().unwrap().changes_with_progress();
    // A tree's smallest merge stays its smallest.
    let all = ["single", "fair", "greedy", "greedy(2)", "gear"];
    assert_eq!(all.map(changes), [false, false, false, true, true]);
}

#[test]
fn sustainable_rates_match_the_paper() {
    // §5.1.3: with ratio 10, a merge into level 5 of 5 must tolerate 4000 flushes.
    let rate = leveling_entries_per_second(100.0, 10, 5);
    assert!((rate - 4.0).abs() < 1e-9);
    assert!((tolerated_flushes(rate, 100.0, 10, 5) - 4000.0).abs() < 1e-9);
    assert!((tiering_entries_per_second(100.0, 4) - 25.0).abs() < 1e-9);
    let rate = tiering_entries_per_second(1.0, 3);
    assert!((tolerated_flushes(rate, 1.0, 4, 3) - 64.0 / 3.0).abs() < 1e-9);
}

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use terrane_policy::Scheduler;

use super::*;
use crate::base::clock::SystemClock;

fn gate(slots: usize, budget: IoBudget) -> Gate {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    Gate::new(slots, budget, Arc::new(Counters::default()), &clock)
}

fn merge(scheduler: &str, tree: u32, remaining_bytes: u64) -> ScheduledMerge {
    let scheduler: Scheduler = scheduler.parse().unwrap();
    ScheduledMerge { id: 0, tree, scheduler, remaining_bytes, refilled: 0.0, is_running: false }
}

fn never() -> bool {
    false
}

fn enter(gate: &Gate, merge: ScheduledMerge, level: usize) -> Pass<'_> {
    gate.enter(gate.next_job(), merge, level)
}

/// Returns true if, in the gate's current state, a merge could continue at once.
fn can_go(gate: &Gate, pass: &Pass<'_>) -> bool {
    gate.lock().may_run(pass.id, gate.slots)
}

#[test]
fn a_smaller_merge_pauses_a_larger_one_until_it_ends() {
    let gate = gate(1, IoBudget::Unlimited);
    let large = enter(&gate, merge("greedy", 1, 1000), 2);
    assert!(can_go(&gate, &large));
    assert!(!gate.takes(&merge("greedy", 1, 2000), 1), "it would pause");
    assert!(gate.takes(&merge("greedy", 1, 500), 1));
    assert!(!gate.takes(&merge("greedy", 1, 500), 2), "its level has a merge, and no slot is free");
    let small = enter(&gate, merge("greedy", 1, 500), 1);
    assert!(can_go(&gate, &small) && !can_go(&gate, &large));
    drop(small);
    assert!(can_go(&gate, &large));
}

#[test]
fn a_paused_merge_continues_when_the_other_ends() {
    let gate = gate(1, IoBudget::Unlimited);
    let has_gone = AtomicBool::new(false);
    let small = enter(&gate, merge("greedy", 1, 10), 1);
    std::thread::scope(|scope| {
        let large = enter(&gate, merge("greedy", 1, 1000), 2);
        let (has_gone, gate) = (&has_gone, &gate);
        scope.spawn(move || {
            let left = Progress { remaining_bytes: 900, ..Progress::default() };
            large.proceed(left, &never).unwrap();
            has_gone.store(true, Ordering::SeqCst);
        });
        std::thread::sleep(Duration::from_millis(20));
        assert!(!has_gone.load(Ordering::SeqCst));
        assert!(can_go(gate, &small));
        drop(small);
    });
    assert!(has_gone.load(Ordering::SeqCst));
}

#[test]
fn closing_ends_a_pause() {
    let gate = gate(1, IoBudget::Unlimited);
    let small = enter(&gate, merge("single", 1, 10), 1);
    let other = enter(&gate, merge("single", 1, 10), 2);
    let is_closing = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waiting = scope
            .spawn(|| other.proceed(Progress::default(), &|| is_closing.load(Ordering::SeqCst)));
        is_closing.store(true, Ordering::SeqCst);
        gate.wake();
        assert_eq!(waiting.join().unwrap(), Err(Stopped));
    });
    drop(small);
}

/// Returns by how many chunks one of two merges was ahead of the other while they shared a slot.
fn ahead(budget: IoBudget, chunks: u64, chunk_bytes: u64) -> i64 {
    let gate = gate(1, budget);
    let order = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let passes: Vec<Pass<'_>> = (0..2)
            .map(|level| enter(&gate, merge("fair", 1, chunks * chunk_bytes), level))
            .collect();
        for (number, pass) in passes.into_iter().enumerate() {
            let order = &order;
            scope.spawn(move || {
                for chunk in 1..=chunks {
                    let remaining_bytes = (chunks - chunk) * chunk_bytes;
                    let written_bytes = chunk_bytes;
                    let progress =
                        Progress { remaining_bytes, written_bytes, ..Progress::default() };
                    pass.proceed(progress, &never).unwrap();
                    order.lock().unwrap().push(number);
                }
            });
        }
    });
    let order = order.into_inner().unwrap();
    let (mut counts, mut most) = ([0i64; 2], 0);
    for number in &order[..order.len() / 2] {
        counts[*number] += 1;
        most = most.max((counts[0] - counts[1]).abs());
    }
    most
}

/// Neither of two merges is ahead of the other by more than the limit plus one chunk.
#[test]
fn merges_that_share_a_slot_are_served_equally() {
    assert!(ahead(IoBudget::Unlimited, 100, 256 << 10) <= 10);
}

/// With this budget, the usual limit of one MiB would take a quarter of a second.
#[test]
fn merges_take_turns_more_often_under_a_small_budget() {
    let most = ahead(IoBudget::Total(4 << 20), 30, 64 << 10);
    assert!(most <= 5, "{most}");
}

#[test]
fn a_budget_limits_flushes_and_merges_together_and_can_be_lifted() {
    let gate = gate(2, IoBudget::Total(64 << 20));
    let start = Instant::now();
    gate.flush(4 << 20, &never).unwrap();
    let pass = enter(&gate, merge("fair", 1, 100), 1);
    let written = Progress { remaining_bytes: 50, written_bytes: 4 << 20, ..Progress::default() };
    pass.proceed(written, &never).unwrap();
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(115), "8 MiB at 64 MiB a second took {took:?}");
    gate.set_budget(IoBudget::Unlimited);
    assert_eq!(gate.budget(), IoBudget::Unlimited);
    // These bytes would take four hours with the previous budget: the test would hang if that
    // budget still applied.
    pass.proceed(Progress { written_bytes: 1 << 40, ..Progress::default() }, &never).unwrap();
}

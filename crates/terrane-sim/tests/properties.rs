//! Tests on random designs and workloads that a job runs during every stall, no merge starves, and no
//! compaction is unsound. Also tests the stability paper's theorem and formulas on whole simulations.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

use terrane_policy::scheduler::{
    leveling_entries_per_second, tiering_entries_per_second, tolerated_flushes,
};
use terrane_policy::{Design, PickContext, Violation, pick};
use terrane_sim::{
    Arrival, InitialTree, MachineModel, ReadLoad, Simulation, SimulationOutcome, SimulationSetup,
    Skew, WriteLoad, WriteMix, initial_tree, phases,
};
use terrane_testkit::{Rng, seed_from_env};

/// A machine whose only scarce resource is the budget.
fn machine(budget: f64) -> MachineModel {
    let mut machine = MachineModel { budget: Some(budget), slots: 2, ..MachineModel::default() };
    machine.device.bytes_per_second = 1e12;
    machine.device.request_seconds = 0.0;
    machine.costs.merge_seconds = 0.0;
    machine.costs.flush_seconds = 0.0;
    machine
}

fn random_design(rng: &mut Rng) -> String {
    let eagerness = *rng.pick(&[
        "leveling",
        "leveling; granularity=level",
        "1-leveling",
        "1-leveling; granularity=level; L0=4",
        "tiering",
        "lazy-leveling",
        "hybrid runs=3,2,last:1",
        "rocksdb-tiering",
        "pebblesdb",
        "lethe",
    ]);
    let ratio = rng.between(2, 8);
    let (name, rest) = eagerness.split_once(';').unwrap_or((eagerness, ""));
    let name = if name.contains(' ') || matches!(name, "rocksdb-tiering" | "pebblesdb" | "lethe") {
        name.to_owned()
    } else {
        format!("{name} T={ratio}")
    };
    let name = name.replace("hybrid runs", &format!("hybrid T={ratio}; runs"));
    let rest = if rest.is_empty() { String::new() } else { format!(";{rest}") };
    let scheduler = rng.pick(&["single", "fair", "greedy", "greedy(2)", "gear"]);
    let limit = rng.pick(&["level0", "local(2x)", "global(2x)", "global(12)", "global(3x)"]);
    let violation = rng.pick(&["slow-down", "stop", "spread"]);
    let intake = rng.pick(&["all", "exact"]);
    let movement = rng.pick(&["round-robin", "least-overlap", "oldest", "coldest-update"]);
    let flush = rng.pick(&["new", "new", "merge"]);
    let values = rng.pick(&[
        "inline",
        "inline",
        "separate(64,file=256KiB)",
        "separate(512,garbage=20%,space=1.1,file=1MiB)",
        "separate(512,garbage=100%,space=2,file=256KiB)",
    ]);
    format!(
        "{name}{rest}; buffer=1MiB; table=512KiB; scheduler={scheduler}; limit={limit}; \
         violation={violation}; intake={intake}; movement={movement}; flush={flush}; values={values}; delay=8; stop=14; buffers=2"
    )
}

fn random_mix(rng: &mut Rng) -> WriteMix {
    let share = |rng: &mut Rng| f64::from(*rng.pick(&[0u32, 0, 0, 20])) / 100.0;
    WriteMix {
        inserts: share(rng),
        deletes: share(rng),
        range_deletes: if rng.percent(20) { 0.001 } else { 0.0 },
        range_width: 0.01,
        deleted_return: rng.percent(50),
        expiring: *rng.pick(&[0.0, 0.0, 0.5, 1.0]),
        ttl_seconds: rng.between(1, 60) as f64,
    }
}

fn random_setup(rng: &mut Rng) -> SimulationSetup {
    // Random settings may contradict each other, so draw until they do not.
    let design: Design = loop {
        if let Ok(design) = random_design(rng).parse() {
            break design;
        }
    };
    let arrival = match rng.below(3) {
        0 => Arrival::Closed,
        1 => Arrival::Constant(rng.between(100, 20_000) as f64),
        _ => Arrival::Burst { low: 500.0, low_seconds: 5.0, high: 30_000.0, high_seconds: 2.0 },
    };
    let skew = *rng.pick(&[Skew::Uniform, Skew::Zipf(0.99), Skew::Zipf(1.2)]);
    let workload = WriteLoad {
        records: rng.between(2_000, 60_000) as f64,
        key_bytes: 16.0,
        record_bytes: rng.between(50, 2000) as f64,
        skew,
        arrival,
        writers: rng.between(1, 8) as u32,
        mix: random_mix(rng),
        reads: ReadLoad {
            gets: rng.below(3) as f64,
            scans: 0.1,
            scan_entries: 10.0,
            cold: rng.below(2) as f64,
            ..ReadLoad::default()
        },
    };
    let mut setup =
        SimulationSetup::new(design, workload, machine(rng.between(1, 40) as f64 * 1e6));
    setup.window_seconds = 1.0;
    setup.check = true;
    setup
}

fn describe(setup: &SimulationSetup, outcome: &SimulationOutcome) -> String {
    format!("{} on {:?}: {:?}", setup.design, setup.workload, outcome.stuck)
}

/// For every design: writers stall only while a job runs, every compaction is sound, and without
/// writes the tree settles, because every merge ends.
#[test]
fn random_designs_never_stall_idle_starve_a_merge_or_invert_recency() {
    let mut rng = Rng::new(seed_from_env(5));
    for _ in 0..40 {
        let setup = random_setup(&mut rng);
        let start = *rng.pick(&[InitialTree::Empty, InitialTree::Loaded, InitialTree::Settled]);
        let tree = initial_tree(&setup, start, rng.bits());
        let (outcome, tree) = Simulation::new(&setup, tree).run(30.0);
        assert!(outcome.stuck.is_none(), "{}", describe(&setup, &outcome));
        let made = outcome.totals.writes;
        assert!((outcome.latencies.count() - made).abs() <= 1e-6 * made + 1.0);
        // Every stalled write completes: no stall lasts forever.
        assert!(outcome.longest_stall() < 30.0, "{}", describe(&setup, &outcome));
        let mut quiet = setup.clone();
        quiet.workload.arrival = Arrival::Constant(1e-6);
        quiet.window_seconds = 1e4;
        let (outcome, tree) = Simulation::new(&quiet, tree).run(3e5);
        assert!(outcome.stuck.is_none(), "{}", describe(&quiet, &outcome));
        let left = pick(&PickContext::new(tree.shape(), &quiet.design));
        assert!(left.is_none(), "{}: {}", quiet.design, left.unwrap());
    }
}

/// The same seed yields the same results.
#[test]
fn simulations_repeat() {
    let run = || {
        let setup = random_setup(&mut Rng::new(77));
        let tree = initial_tree(&setup, InitialTree::Auto, 1);
        let outcome = Simulation::new(&setup, tree).run(60.0).0;
        (outcome.totals, outcome.windows, outcome.latencies.quantile(0.999))
    };
    assert_eq!(run(), run());
}

/// Compares the latencies after a stall of known length with computed ones.
#[test]
fn a_known_stall_gives_the_latency_that_arithmetic_gives() {
    // 1,024 writes arrive per second, and a stall lasts one second: the first stalled write waits for
    // a second, and the last one not at all (§3.2: 0.5 s on average).
    let design = "leveling; granularity=level; buffer=1MiB; buffers=2; violation=none";
    let mut setup = SimulationSetup::new(
        design.parse().unwrap(),
        WriteLoad {
            records: 1e5,
            key_bytes: 16.0,
            record_bytes: 1024.0 - 40.0,
            skew: Skew::Uniform,
            arrival: Arrival::Constant(1024.0),
            writers: 1,
            mix: WriteMix::default(),
            reads: ReadLoad::default(),
        },
        machine(1e12),
    );
    // A memtable holds the writes of one second; its flush takes two seconds of processor time.
    setup.machine.costs.flush_seconds = 2.0 / 1024.0;
    setup.machine.costs.memtable_entry_bytes = 40.0;
    setup.machine.costs.write_seconds = 1e-6;
    let tree = initial_tree(&setup, InitialTree::Empty, 1);
    let outcome = Simulation::new(&setup, tree).run(5.9).0;
    // A memtable fills in one second, and its flush takes two: the first flush ends at 3, the
    // second at 5. At 4 there are two immutable memtables, and the active one is full.
    let first = outcome.stalls.first().unwrap();
    assert!((first.from - 4.0).abs() < 1e-3 && (first.until - 5.0).abs() < 1e-3, "{first:?}");
    let longest = outcome.latencies.quantile(1.0).unwrap();
    assert!((longest - 1.0).abs() < 1e-3, "{longest}");
    // A fifth of the writes (one second of five) arrives during the stall, and half of these wait
    // longer than half a second. They fill the next memtable at once, and writers stall again.
    let half = outcome.latencies.quantile(1.0 - 0.5 / 5.0).unwrap();
    assert!((half - 0.5).abs() < 0.01, "{half}");
    // One write was in progress during the whole stall.
    assert!((outcome.processing.quantile(1.0).unwrap() - 1.0).abs() < 1e-3);
}

/// Returns the completion time of the `number`-th write.
fn made_at(departures: &[(f64, f64)], number: f64) -> f64 {
    let at = departures.partition_point(|(_, made)| *made < number);
    let Some(&(until, after)) = departures.get(at) else { return f64::INFINITY };
    let Some(&(from, before)) = at.checked_sub(1).and_then(|at| departures.get(at)) else {
        return until;
    };
    from + (until - from) * (number - before) / (after - before).max(1e-9)
}

/// The tolerance, in writes, for rounding the capacity of a memtable of four thousand writes.
const ROUNDING: f64 = 10.0;

/// Returns the maximum over all writes of the completion time in `one` minus that in `other`, in
/// seconds.
fn latest(one: &SimulationOutcome, other: &SimulationOutcome) -> f64 {
    let ends = [one, other].map(|outcome| outcome.departures.last().map_or(0.0, |last| last.1));
    let numbers = [one, other].into_iter().flat_map(|outcome| &outcome.departures);
    let numbers =
        numbers.map(|(_, number)| *number).filter(|number| *number < ends[0].min(ends[1]));
    let later =
        |number| made_at(&one.departures, number - ROUNDING) - made_at(&other.departures, number);
    // Also check just after each bend, because a stall ends when the next write completes.
    numbers.flat_map(|number| [later(number), later(number + 1e-3)]).fold(0.0, f64::max)
}

/// Returns a random schedule of rate limits: fast, slow, or zero.
fn random_brakes(rng: &mut Rng, rate: f64, seconds: f64) -> Vec<(f64, f64)> {
    let mut brakes = Vec::new();
    let mut from = 0.0;
    while from < seconds {
        let part = *rng.pick(&[0.0, 0.3, 0.7, 0.9, 1.0, 1.3, 3.0, 1e3]);
        brakes.push((from, part * rate));
        from += 0.5 + rng.below(200) as f64 / 10.0;
    }
    brakes
}

/// Theorem 1: no schedule of admissions completes any write earlier than the schedule that admits
/// writes as soon as the tree has space.
///
/// The theorem assumes the same merges in every schedule. The test therefore uses trees with the same
/// merges in the same order for any timing of writes, a machine on which flushes do not slow down
/// merges, and the paper's two memtables: with more, a burst may fill several before the first counts
/// as a run. Start times of merges and lengths of queues differ between schedules.
#[test]
fn no_schedule_of_writes_makes_any_of_them_earlier() {
    let mut rng = Rng::new(seed_from_env(6));
    let mut delayed = 0;
    for round in 0..25 {
        let design = format!(
            "hybrid T={ratio} L0={ratio}; runs=1000; buffer=4MiB; intake=exact; scheduler=single; \
             limit={limit}; buffers=1; violation=stop; delay={ratio}; stop={stop}",
            ratio = rng.between(2, 6),
            limit = rng.pick(&["level0", "local(2x)", "local(3x)"]),
            stop = rng.between(7, 14),
        );
        let workload = WriteLoad {
            records: 2e5,
            key_bytes: 16.0,
            record_bytes: 1000.0,
            skew: Skew::Uniform,
            arrival: Arrival::Closed,
            writers: 1,
            mix: WriteMix::default(),
            reads: ReadLoad::default(),
        };
        let mut setup = SimulationSetup::new(design.parse().unwrap(), workload, machine(1e12));
        setup.machine.costs.write_seconds = 20e-6;
        setup.machine.costs.merge_seconds = 40e-6;
        setup.machine.costs.flush_seconds = rng.between(1, 60) as f64 * 1e-6;
        setup.check = true;
        let seconds = 120.0;
        let tree = initial_tree(&setup, InitialTree::Empty, 1);
        let greatest = phases::greatest(&setup, &tree, seconds).rate_from(12.0);
        let rate = |rng: &mut Rng| greatest * (0.3 + rng.below(120) as f64 / 100.0);
        setup.workload.arrival = if rng.percent(50) {
            Arrival::Constant(rate(&mut rng))
        } else {
            let lengths = [1 + rng.below(40), 1 + rng.below(20)].map(|tenths| tenths as f64 / 2.0);
            let [low_seconds, high_seconds] = lengths;
            let (low, high) = (rate(&mut rng) / 2.0, rate(&mut rng) * 3.0);
            Arrival::Burst { low, low_seconds, high, high_seconds }
        };
        let fast = Simulation::new(&setup, tree.clone()).run(seconds).0;
        for _ in 0..3 {
            let mut slow = setup.clone();
            slow.rate_limits = random_brakes(&mut rng, greatest, seconds);
            let slow = Simulation::new(&slow, tree.clone()).run(seconds).0;
            let later = latest(&fast, &slow);
            assert!(later < 1e-3, "round {round}, {design}: a write is {later} s later");
            delayed += u32::from(latest(&slow, &fast) > 0.1);
        }
        let mut slow = setup.clone();
        slow.design.constraint.violation = Violation::SlowDown;
        let slow = Simulation::new(&slow, tree.clone()).run(seconds).0;
        let later = latest(&fast, &slow);
        assert!(later < 1e-3, "round {round}, {design}: slowed down, a write is {later} s earlier");
    }
    assert!(delayed > 40, "only {delayed} schedules delayed a write: the test proves nothing");
}

/// §5.1.3: compares the sustained rates of full merges with the formulas. These ignore flushes and
/// duplicate keys; the leveling formula assumes that every level is half full on average, but the last
/// one is nearly full.
#[test]
fn rates_are_near_the_formulas() {
    let rate = |text: &str, records: f64| {
        let design =
            format!("{text}; buffer=16MiB; intake=exact; limit=global(2x); violation=stop");
        let workload = WriteLoad {
            records,
            key_bytes: 16.0,
            record_bytes: 1000.0,
            skew: Skew::Uniform,
            arrival: Arrival::Closed,
            writers: 1,
            mix: WriteMix::default(),
            reads: ReadLoad::default(),
        };
        let mut setup = SimulationSetup::new(design.parse().unwrap(), workload, machine(1e8));
        setup.machine.costs.table_entry_bytes = 0.0;
        let tree = initial_tree(&setup, InitialTree::Loaded, 1);
        phases::greatest(&setup, &tree, 7200.0).rate_from(1200.0)
    };
    for (ratio, levels) in [(4u32, 4u32), (8, 3), (10, 3)] {
        let capacity = 16e6 * f64::from(ratio.pow(levels)) / 1000.0;
        let simulated = rate(&format!("leveling T={ratio}; granularity=level"), capacity * 0.9);
        let formula = leveling_entries_per_second(1e5, ratio, levels);
        let off = simulated / formula;
        assert!((0.65..1.3).contains(&off), "leveling T={ratio}: {simulated} {formula}");
    }
    for (ratio, levels) in [(3u32, 5u32), (4, 4), (8, 3)] {
        // Far more keys than writes, so that few keys occur twice.
        let design = format!("tiering T={ratio}");
        let simulated = rate(&design, 16e3 * f64::from(ratio.pow(levels)));
        // Each entry is flushed once, and merged once for each level below.
        let formula = tiering_entries_per_second(1e5, levels + 1);
        let off = simulated / formula;
        assert!((0.8..1.6).contains(&off), "tiering T={ratio}: {simulated} {formula}");
    }
}

/// §5.1.3: during the largest merge, the single scheduler lets flushed runs accumulate to the number
/// that the formula gives. The formula ignores the bandwidth of the concurrent flushes, and the few
/// runs that precede the merge.
#[test]
fn one_merge_at_a_time_accumulates_as_many_runs_as_the_formula_says() {
    for (ratio, level) in [(3u32, 4u32), (4, 3), (4, 4), (10, 2)] {
        let runs = f64::from(ratio.pow(level));
        let design = format!(
            "tiering T={ratio}; buffer=4MiB; intake=exact; scheduler=single; violation=none"
        );
        let (budget, entries) = (2e7, 2e4);
        let rate = 0.6 * tiering_entries_per_second(entries, level + 1);
        let workload = WriteLoad {
            // Far more keys than writes, so that few keys occur twice.
            records: 1e9,
            key_bytes: 16.0,
            record_bytes: 1000.0,
            skew: Skew::Uniform,
            arrival: Arrival::Constant(rate),
            writers: 1,
            mix: WriteMix::default(),
            reads: ReadLoad::default(),
        };
        let mut setup = SimulationSetup::new(design.parse().unwrap(), workload, machine(budget));
        setup.machine.costs.table_entry_bytes = 0.0;
        setup.machine.costs.memtable_entry_bytes = 0.0;
        setup.window_seconds = 0.2;
        // This time covers the largest merge, which starts after `runs` flushes, exactly once.
        let seconds = runs * 1.4 * (4 << 20) as f64 / 1000.0 / rate;
        let tree = initial_tree(&setup, InitialTree::Empty, 1);
        let outcome = Simulation::new(&setup, tree).run(seconds).0;
        let level0 = |window: &terrane_sim::SimulationWindow| window.level_runs.first().copied();
        let most = outcome.windows.iter().filter_map(level0).max().unwrap_or(0) as f64;
        let formula = tolerated_flushes(rate, entries, ratio, level);
        let with_flushes = formula / (1.0 - rate / entries);
        let few = f64::from(ratio) + 1.0;
        assert!(
            most + 1.0 >= with_flushes && most <= with_flushes * 1.1 + few,
            "T={ratio}, into level {level}: {most} runs, {formula} by the formula"
        );
    }
}

/// Writers that would stop for whole merges are delayed instead, and write as much. At rates that `stop` admits
/// without a stop, `spread` does not delay them.
#[test]
fn spreading_shortens_stops_and_does_not_delay_sustainable_rates() {
    let run = |violation: &str, arrival: Arrival| {
        let design =
            format!("1-leveling base=16MiB; buffer=4MiB; table=2MiB; violation={violation}");
        let workload = WriteLoad {
            records: 1e5,
            key_bytes: 16.0,
            record_bytes: 1016.0,
            skew: Skew::Uniform,
            arrival,
            writers: 1,
            mix: WriteMix::default(),
            reads: ReadLoad::default(),
        };
        let mut setup = SimulationSetup::new(design.parse().unwrap(), workload, machine(10e6));
        setup.machine.costs.write_seconds = 1e-6;
        let tree = initial_tree(&setup, InitialTree::Auto, 1);
        Simulation::new(&setup, tree).run(600.0).0
    };
    let longest = |outcome: &SimulationOutcome| {
        let stalls = outcome.stalls.iter().map(|stall| stall.until - stall.from);
        stalls.fold(0.0, f64::max)
    };
    let (stop, spread) = (run("stop", Arrival::Closed), run("spread", Arrival::Closed));
    assert!(longest(&stop) > 5.0, "{}", longest(&stop));
    assert!(longest(&spread) < longest(&stop) / 10.0, "{}", longest(&spread));
    let written = spread.totals.writes / stop.totals.writes;
    assert!((0.9..1.1).contains(&written), "{written}");
    let sustainable = run("spread", Arrival::Constant(stop.totals.writes / 600.0 / 2.0));
    assert!(sustainable.totals.delayed_seconds < 0.6, "{}", sustainable.totals.delayed_seconds);
    assert!(sustainable.stalls.is_empty());
}

//! Random designs and workloads: no stall without work, no starvation, nothing unsound; and the
//! paper's theorems and formulas on whole simulations.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

use terrane_policy::scheduler::{leveling_entries_per_second, tiering_entries_per_second};
use terrane_policy::{Design, PickInput, pick};
use terrane_sim::{
    Arrival, Latencies, Machine, Outcome, Setup, Simulation, Skew, Start, Tree, Workload, begin,
    phases,
};
use terrane_testkit::{Rng, seed_from_env};

/// A machine on which nothing but the budget is scarce.
fn machine(budget: f64) -> Machine {
    let mut machine = Machine { budget: Some(budget), places: 2, ..Machine::default() };
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
    let violation = rng.pick(&["slow-down", "stop"]);
    let intake = rng.pick(&["all", "exact"]);
    let movement = rng.pick(&["round-robin", "least-overlap", "oldest", "coldest-update"]);
    format!(
        "{name}{rest}; buffer=1MiB; table=512KiB; scheduler={scheduler}; limit={limit}; \
         violation={violation}; intake={intake}; movement={movement}; delay=8; stop=14; buffers=2"
    )
}

fn random_setup(rng: &mut Rng) -> Setup {
    // Settings may contradict each other; then it is another design.
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
    let workload = Workload {
        records: rng.between(2_000, 60_000) as f64,
        record_bytes: rng.between(50, 2000) as f64,
        skew,
        arrival,
        writers: rng.between(1, 8) as u32,
    };
    let mut setup = Setup::new(design, workload, machine(rng.between(1, 40) as f64 * 1e6));
    setup.window_seconds = 1.0;
    setup.check = true;
    setup
}

fn told(setup: &Setup, outcome: &Outcome) -> String {
    format!("{} on {:?}: {:?}", setup.design, setup.workload, outcome.stuck)
}

/// Whatever the design, writers never wait for nothing, every compaction is sound, and a tree that
/// no one writes to any more comes to rest: every merge ends.
#[test]
fn random_designs_never_stall_for_nothing_starve_a_merge_or_turn_recency_round() {
    let mut rng = Rng::new(seed_from_env(5));
    for _ in 0..40 {
        let setup = random_setup(&mut rng);
        let start = *rng.pick(&[Start::Empty, Start::Loaded, Start::Settled]);
        let tree = begin(&setup, start, rng.bits());
        let (outcome, tree) = Simulation::new(&setup, tree).run(30.0);
        assert!(outcome.stuck.is_none(), "{}", told(&setup, &outcome));
        let made = outcome.totals.writes;
        assert!((outcome.latencies.count() - made).abs() <= 1e-6 * made + 1.0);
        // Every write that is waited for was made at some time: no stall is for ever.
        assert!(outcome.longest_stall() < 30.0, "{}", told(&setup, &outcome));
        let mut quiet = setup.clone();
        quiet.workload.arrival = Arrival::Constant(1e-6);
        quiet.window_seconds = 1e4;
        let (outcome, tree) = Simulation::new(&quiet, tree).run(3e5);
        assert!(outcome.stuck.is_none(), "{}", told(&quiet, &outcome));
        let left = pick(&PickInput::new(tree.shape(), &quiet.design));
        assert!(left.is_none(), "{}: {}", quiet.design, left.unwrap());
    }
}

/// The same seed gives the same numbers.
#[test]
fn simulations_repeat() {
    let run = || {
        let setup = random_setup(&mut Rng::new(77));
        let tree = begin(&setup, Start::Auto, 1);
        let outcome = Simulation::new(&setup, tree).run(60.0).0;
        (outcome.totals, outcome.windows, outcome.latencies.quantile(0.999))
    };
    assert_eq!(run(), run());
}

/// All writes as one list of latencies would have it: the queue behind a stall of known length.
#[test]
fn a_known_stall_gives_the_latency_that_arithmetic_gives() {
    // A thousand writes come in a second; none are made for one second: the first of them waits a
    // second, and the last that comes meanwhile not at all (§3.2: 0.5 s on average).
    let design = "leveling; granularity=level; buffer=1MiB; buffers=2; violation=none";
    let mut setup = Setup::new(
        design.parse().unwrap(),
        Workload {
            records: 1e5,
            record_bytes: 1024.0 - 40.0,
            skew: Skew::Uniform,
            arrival: Arrival::Constant(1024.0),
            writers: 1,
        },
        machine(1e12),
    );
    // A memtable holds a second's writes; its flush takes two of the processor.
    setup.machine.costs.flush_seconds = 2.0 / 1024.0;
    setup.machine.costs.memtable_entry_bytes = 40.0;
    setup.machine.costs.write_seconds = 1e-6;
    let tree = begin(&setup, Start::Empty, 1);
    let outcome = Simulation::new(&setup, tree).run(5.9).0;
    // Full each second, and flushed in two: the first flush ends at 3, the second at 5. At 4 two
    // memtables are full and so is the active one.
    let first = outcome.stalls.first().unwrap();
    assert!((first.from - 4.0).abs() < 1e-3 && (first.until - 5.0).abs() < 1e-3, "{first:?}");
    let longest = outcome.latencies.quantile(1.0);
    assert!((longest - 1.0).abs() < 1e-3, "{longest}");
    // Of the writes of five seconds those of one came while none were made: half of them waited
    // longer than half a second. They fill the next memtable at once, and writers wait again.
    let half = outcome.latencies.quantile(1.0 - 0.5 / 5.0);
    assert!((half - 0.5).abs() < 0.01, "{half}");
    // One write was under way all the time.
    assert!((outcome.processing.quantile(1.0) - 1.0).abs() < 1e-3);
}

fn running(text: &str, tree: &Tree, base: &Setup, rate: f64) -> Latencies {
    let mut setup = base.clone();
    setup.design = text.parse().unwrap();
    setup.workload.arrival = Arrival::Constant(rate);
    Simulation::new(&setup, tree.clone()).run(2000.0).0.latencies
}

/// Theorem 1: writers that go on as fast as they can are never later than writers that are slowed
/// down on the way.
///
/// The theorem has the same processing rate in both. Here merges are chosen by what the tree looks
/// like when they begin, so that a delay may lead to another merge; it is looked at in designs where
/// it does not, as each merge takes exactly what makes a level act.
#[test]
fn stopping_is_never_slower_than_slowing_down() {
    let mut rng = Rng::new(seed_from_env(6));
    for _ in 0..20 {
        let design = format!(
            "tiering T={}; buffer=4MiB; intake=exact; scheduler=single; limit=global(2x); buffers=2",
            rng.between(2, 5)
        );
        let workload = Workload {
            records: 2e5,
            record_bytes: 1000.0,
            skew: Skew::Uniform,
            arrival: Arrival::Closed,
            writers: 1,
        };
        let setup = Setup::new(design.parse().unwrap(), workload, machine(2e7));
        let tree = begin(&setup, Start::Loaded, 1);
        let greatest = phases::greatest(&setup, &tree, 2000.0).rate_from(200.0);
        let rate = greatest * (0.8 + rng.below(30) as f64 / 100.0);
        let stop = running(&format!("{design}; violation=stop"), &tree, &setup, rate);
        let slow = running(&format!("{design}; violation=slow-down"), &tree, &setup, rate);
        for part in [0.1, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let (stop, slow) = (stop.quantile(part), slow.quantile(part));
            assert!(stop <= slow * 1.01 + 1e-3, "{design} at {rate}, {part}: {stop} {slow}");
        }
    }
}

/// §5.1.3: what full merges sustain, against the formulas. Those leave flushes out, and have no key
/// twice; leveling has every level half full on average, but the last one is nearly full.
#[test]
fn rates_are_near_the_formulas() {
    let rate = |text: &str, records: f64| {
        let design =
            format!("{text}; buffer=16MiB; intake=exact; limit=global(2x); violation=stop");
        let workload = Workload {
            records,
            record_bytes: 1000.0,
            skew: Skew::Uniform,
            arrival: Arrival::Closed,
            writers: 1,
        };
        let mut setup = Setup::new(design.parse().unwrap(), workload, machine(1e8));
        setup.machine.costs.table_entry_bytes = 0.0;
        let tree = begin(&setup, Start::Loaded, 1);
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
        // No key twice: far more of them than are written.
        let design = format!("tiering T={ratio}");
        let simulated = rate(&design, 16e3 * f64::from(ratio.pow(levels)));
        // Each entry is flushed once, and merged once for each level below.
        let formula = tiering_entries_per_second(1e5, levels + 1);
        let off = simulated / formula;
        assert!((0.8..1.6).contains(&off), "tiering T={ratio}: {simulated} {formula}");
    }
}

//! The phases of the paper's figures, and their tables, at any scale.

use anyhow::Result;
use terrane_lab::output::human;

use super::plan::{PhasePlan, PlanPart, PlannedArrival, PlayedPhases, UTILIZATION};
use super::scale::StabilityScale;
use super::size_tiered;
use crate::results::{Metric, Results};

/// The length of the paper's phases.
const PAPER_SECONDS: f64 = 7200.0;
/// The part of Fig. 1 before the rate collapses.
const EARLY_SECONDS: f64 = 300.0;

pub(super) const POLICIES: [&str; 2] = ["tiering", "leveling"];
pub(super) const SCHEDULERS: [&str; 3] = ["single", "fair", "greedy"];
/// Schedulers that run several merges concurrently.
pub(super) const CONCURRENT: [&str; 2] = ["fair", "greedy"];
const KEYS: [&str; 2] = ["uniform", "zipf"];

/// The size ratios, and for each ratio the authors' arrival rates in running phases (95 % of the
/// maximum) for tiering and leveling, in writes per second (Fig. 10a).
const RATIOS: [u32; 5] = [2, 4, 6, 8, 10];
const AUTHORS_RATIOS: [[f64; 5]; 2] =
    [[8250.0, 13764.0, 17604.0, 18815.0, 20112.0], [8233.0, 6364.0, 5135.0, 4739.0, 3600.0]];

/// The authors' maximum rate for leveling with a ratio of 10.
const AUTHORS_LEVELING_RATE: f64 = 3600.0 / UTILIZATION;

/// Movements: the paper's name of each, then ours.
const MOVEMENTS: [(&str, &str); 2] =
    [("round-robin", "round-robin"), ("choose-best", "least-overlap")];

/// The size of tables in the figures that do not vary it.
const TABLE_MEBIBYTES: u32 = 64;

/// The metrics of the figures, in addition to those of every phase.
pub(super) const METRICS: [Metric; 6] = [
    Metric { name: "authors_rate", about: "writes a second of the authors, scaled, by subject" },
    Metric {
        name: "authors_p99",
        about: "p99 latencies of the authors, scaled, seconds, by subject",
    },
    Metric {
        name: "simulated_rate",
        about: "greatest rate in the simulator at the same sizes, by subject",
    },
    Metric { name: "early_rate", about: "Fig. 1: writes a second before the rate collapses" },
    Metric {
        name: "slow_share",
        about: "Fig. 1: share of the time afterwards below half of that rate",
    },
    Metric { name: "collapses", about: "Fig. 1: how often the rate fell below half of it" },
];

pub(super) fn with(design: &str, scheduler: &str) -> String {
    format!("{design}; scheduler={scheduler}")
}

/// Returns the designs of [`POLICIES`]: tiering with a ratio of 3, leveling with a ratio of 10
/// (§5.2.1).
pub(super) fn full_merges(scale: &dyn StabilityScale) -> [String; 2] {
    [scale.tiering(3), scale.leveling(10)]
}

fn ratio_designs(scale: &dyn StabilityScale, ratio: u32) -> [String; 2] {
    [scale.tiering(ratio), scale.filled_leveling(ratio)]
}

/// Returns the parts of all figures.
pub(super) fn parts(scale: &dyn StabilityScale) -> Vec<PlanPart<'_>> {
    vec![
        PlanPart::new("Fig. 6", blsm(scale), blsm_table),
        PlanPart::new("Fig. 7 to 9, 11, 12", full(scale), move |played, results| {
            full_tables(played, results)?;
            limits_table(scale, played, results)?;
            burst_table(played, results)
        }),
        PlanPart::new("Fig. 10", ratios(scale), move |played, results| {
            ratio_table(scale, played, results)
        }),
        PlanPart::new("Fig. 1, 15 to 18", partitioned(scale), move |played, results| {
            production_table(scale, played, results)?;
            partitioned_table(scale, played, results)?;
            shape_table(played, results)?;
            table_sizes(scale, played, results)
        }),
        PlanPart::new("", size_tiered::plan(scale), size_tiered::table),
    ]
}

/// Returns the phases of Fig. 6, with eight writers (§4.2).
fn blsm(scale: &dyn StabilityScale) -> Vec<PhasePlan> {
    let phases = KEYS.iter().flat_map(|keys| {
        let subject = format!("blsm {keys}");
        [
            PhasePlan::testing(&subject, scale.blsm()),
            PhasePlan::running(&subject, scale.blsm(), &subject),
        ]
        .map(|phase| PhasePlan { writers: 8, is_skewed: *keys == "zipf", ..phase })
    });
    phases.collect()
}

/// Returns the phases of Fig. 7 to 9, 11 and 12. All schedulers run at the rate of the fair
/// scheduler (§5.2.2).
fn full(scale: &dyn StabilityScale) -> Vec<PhasePlan> {
    let mut plan = Vec::new();
    let designs = full_merges(scale);
    for (policy, design) in POLICIES.iter().zip(&designs) {
        let fair = format!("{policy} fair");
        for scheduler in SCHEDULERS {
            let (subject, design) = (format!("{policy} {scheduler}"), with(design, scheduler));
            plan.push(PhasePlan::testing(&subject, &design));
            plan.push(PhasePlan::running(&subject, &design, &fair));
            if CONCURRENT.contains(&scheduler) {
                let local = format!("{design}; limit=local(2x)");
                let running = PhasePlan::running(&subject, local, &fair);
                plan.push(PhasePlan { phase: "local".to_owned(), ..running });
            }
        }
    }
    // The bursts are the same share of our maximum rate as the paper's bursts are of the authors'
    // maximum rate.
    let share = |paper: f64| paper / AUTHORS_LEVELING_RATE;
    let of = "leveling fair".to_owned();
    let arrival = PlannedArrival::Burst {
        of: of.clone(),
        low: share(2000.0),
        low_length: 1500.0 / PAPER_SECONDS,
        high: share(8000.0),
        high_length: 300.0 / PAPER_SECONDS,
    };
    let greedy = with(&designs[1], "greedy");
    for (subject, max_rate) in
        [("bursts no limit", None), ("bursts limit", Some((of.clone(), share(4000.0))))]
    {
        let running = PhasePlan::running(subject, &greedy, &of);
        plan.push(PhasePlan { arrival: arrival.clone(), max_rate, ..running });
    }
    plan
}

/// Returns the phases of Fig. 10.
fn ratios(scale: &dyn StabilityScale) -> Vec<PhasePlan> {
    let mut plan = Vec::new();
    for ratio in RATIOS {
        for (policy, design) in POLICIES.iter().zip(ratio_designs(scale, ratio)) {
            let subject = format!("{policy} T={ratio}");
            plan.push(PhasePlan::testing(&subject, with(&design, "fair")));
            for scheduler in CONCURRENT {
                let name = format!("{subject} {scheduler}");
                plan.push(PhasePlan::running(name, with(&design, scheduler), &subject));
            }
        }
    }
    plan
}

/// Returns the phases of Fig. 1 and 15 to 18. Merges of running phases are elastic; `exact` names
/// the testing phase that sets the rate of a running phase.
fn partitioned(scale: &dyn StabilityScale) -> Vec<PhasePlan> {
    let mut plan = vec![scale.production("rocksdb")];
    for (name, movement) in MOVEMENTS {
        let elastic = scale.partitioned(f64::from(TABLE_MEBIBYTES), movement);
        let subject = format!("{name} elastic");
        plan.push(PhasePlan::testing(&subject, &elastic));
        plan.push(PhasePlan::running(&subject, &elastic, &subject));
        for size in scale.table_sizes() {
            let elastic = scale.partitioned(f64::from(size.mebibytes), movement);
            let subject = format!("{name} {}", size.mebibytes);
            plan.push(PhasePlan::testing(&subject, format!("{elastic}; intake=exact")));
            plan.push(PhasePlan::running(&subject, &elastic, &subject));
        }
    }
    plan
}

fn blsm_table(played: &PlayedPhases, results: &mut Results) -> Result<()> {
    let rows: Vec<_> = KEYS
        .iter()
        .flat_map(|keys| {
            ["testing", "running"]
                .map(|phase| (format!("{keys}, {phase}"), format!("blsm {keys}"), phase))
        })
        .collect();
    played.table("Fig. 6: bLSM, two levels on disk, eight writers", "", &rows, results)
}

fn full_tables(played: &PlayedPhases, results: &mut Results) -> Result<()> {
    for (figure, policy) in [8, 9].into_iter().zip(POLICIES) {
        let rows = |phase| {
            SCHEDULERS.map(|name| (name.to_owned(), format!("{policy} {name}"), phase)).to_vec()
        };
        let title = format!("Fig. 7: testing phase, {policy}");
        played.table(title, "", &rows("testing"), results)?;
        let title = format!("Fig. {figure}: running phase at 95 %, {policy}");
        played.table(title, "", &rows("running"), results)?;
    }
    Ok(())
}

fn ratio_table(
    scale: &dyn StabilityScale,
    played: &PlayedPhases,
    results: &mut Results,
) -> Result<()> {
    let mut rows = Vec::new();
    let mut is_simulated = false;
    for (at, ratio) in RATIOS.into_iter().enumerate() {
        for (policy, design) in ratio_designs(scale, ratio).into_iter().enumerate().rev() {
            let name = POLICIES[policy];
            let subject = format!("{name} T={ratio}");
            let rate = UTILIZATION * played.greatest_rate(&subject)?;
            let authors = scale.rate(AUTHORS_RATIOS[policy][at]);
            results.record("authors_rate", &[&subject], authors);
            let mut row = vec![
                format!("{name}, {ratio}"),
                human::number(rate),
                human::number(authors),
                format!("{:.2}×", rate / authors),
            ];
            if let Some(greatest) = scale.simulated_rate(&with(&design, "fair"))? {
                is_simulated = true;
                results.record("simulated_rate", &[&subject], greatest);
                let simulated = UTILIZATION * greatest;
                row.extend([human::number(simulated), format!("{:.2}×", rate / simulated)]);
            }
            for scheduler in CONCURRENT {
                let running = played.get(&format!("{subject} {scheduler}"), "running")?;
                row.push(human::seconds(running.p99));
            }
            rows.push(row);
        }
    }
    let simulated = ["simulated", "over"].into_iter().filter(|_| is_simulated);
    let headers: Vec<&str> = ["policy, ratio", "writes/s", "authors", "over"]
        .into_iter()
        .chain(simulated)
        .chain(["p99 fair", "p99 greedy"])
        .collect();
    results.table("Fig. 10: size ratios, at 95 % of the greatest rate", &headers, rows);
    Ok(())
}

fn limits_table(
    scale: &dyn StabilityScale,
    played: &PlayedPhases,
    results: &mut Results,
) -> Result<()> {
    let (percentile, tail) = scale.tail();
    let mut rows = Vec::new();
    for policy in POLICIES {
        for scheduler in CONCURRENT {
            let subject = format!("{policy} {scheduler}");
            let (global, local) =
                (played.get(&subject, "running")?, played.get(&subject, "local")?);
            let times = [tail(global), tail(local), global.stopped, local.stopped];
            let cells = times.map(human::seconds);
            rows.push(std::iter::once(format!("{policy}, {scheduler}")).chain(cells).collect());
        }
    }
    let tails = ["global", "local"].map(|limit| format!("{percentile} {limit}"));
    let headers = ["", &tails[0], &tails[1], "stopped global", "stopped local"];
    results.table("Fig. 11: limits of all runs and of each level's", &headers, rows);
    Ok(())
}

fn burst_table(played: &PlayedPhases, results: &mut Results) -> Result<()> {
    let rows = [("no limit", "bursts no limit"), ("limit", "bursts limit")];
    let rows = rows.map(|(name, subject)| (name.to_owned(), subject.to_owned(), "running"));
    played.table("Fig. 12: bursts under leveling and greedy", "", &rows, results)
}

fn production_table(
    scale: &dyn StabilityScale,
    played: &PlayedPhases,
    results: &mut Results,
) -> Result<()> {
    let until = EARLY_SECONDS / PAPER_SECONDS * scale.seconds();
    let (early, slow, collapses) = played.get("rocksdb", "testing")?.collapse(until);
    results.record("early_rate", &[], early);
    results.record("collapses", &[], collapses as f64);
    results.record("slow_share", &[], slow);
    let rows = [("RocksDB".to_owned(), "rocksdb".to_owned(), "testing")];
    played.table("Fig. 1: RocksDB's tree, as fast as it takes writes", "", &rows, results)
}

fn partitioned_table(
    scale: &dyn StabilityScale,
    played: &PlayedPhases,
    results: &mut Results,
) -> Result<()> {
    let mut rows = Vec::new();
    for (name, _) in MOVEMENTS {
        let (elastic, exact) = (format!("{name} elastic"), format!("{name} {TABLE_MEBIBYTES}"));
        rows.push((format!("{name}, elastic, testing"), elastic.clone(), "testing"));
        rows.push((format!("{name}, elastic, running"), elastic, "running"));
        rows.push((format!("{name}, exact, testing"), exact.clone(), "testing"));
        rows.push((format!("{name}, running at 95 % of it"), exact, "running"));
    }
    let table = human::bytes(scale.mebibytes(f64::from(TABLE_MEBIBYTES)));
    let title = format!("Fig. 15, 17: partitioned leveling, tables of {table}");
    played.table(title, "", &rows, results)
}

fn shape_table(played: &PlayedPhases, results: &mut Results) -> Result<()> {
    let exact = format!("round-robin {TABLE_MEBIBYTES}");
    let mut rows = Vec::new();
    for (name, subject) in [("elastic", "round-robin elastic"), ("exact", &exact)] {
        let levels = &played.get(subject, "testing")?.level_bytes;
        let bytes = |bytes: &f64| human::bytes(*bytes as u64);
        let cells = (0..5).map(|level| levels.get(level).map_or(String::new(), bytes));
        rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
    }
    let headers = ["", "level 0", "level 1", "level 2", "level 3", "level 4"];
    let title = "Fig. 16: sizes of levels in the second half of the testing phase, round-robin";
    results.table(title, &headers, rows);
    Ok(())
}

/// Fig. 18.
fn table_sizes(
    scale: &dyn StabilityScale,
    played: &PlayedPhases,
    results: &mut Results,
) -> Result<()> {
    let mut rows = Vec::new();
    let mut is_simulated = false;
    for (at, (name, movement)) in MOVEMENTS.into_iter().enumerate() {
        for size in scale.table_sizes() {
            let paper = f64::from(size.mebibytes);
            let subject = format!("{name} {}", size.mebibytes);
            let (rate, latency) =
                (scale.rate(size.rates[at]), scale.latency(size.p99_micros[at] / 1e6));
            results.record("authors_rate", &[&subject], rate);
            results.record("authors_p99", &[&subject], latency);
            let mut row = vec![
                format!("{name}, {}", human::bytes(u64::from(size.mebibytes) << 20)),
                human::bytes(scale.mebibytes(paper)),
                human::number(played.greatest_rate(&subject)?),
                human::number(rate),
            ];
            let exact = format!("{}; intake=exact", scale.partitioned(paper, movement));
            if let Some(simulated) = scale.simulated_rate(&exact)? {
                is_simulated = true;
                results.record("simulated_rate", &[&subject], simulated);
                row.push(human::number(simulated));
            }
            row.push(human::seconds(played.get(&subject, "running")?.p99));
            row.push(human::seconds(latency));
            rows.push(row);
        }
    }
    let simulated = ["simulated"].into_iter().filter(|_| is_simulated);
    let headers: Vec<&str> = ["tables", "here", "writes/s", "authors"]
        .into_iter()
        .chain(simulated)
        .chain(["p99", "authors"])
        .collect();
    let title = "Fig. 18: sizes of tables, and the authors' numbers, scaled as rates and times are";
    results.table(title, &headers, rows);
    Ok(())
}

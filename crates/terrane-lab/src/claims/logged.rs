//! Whether the log changes what is said of memtables (§3.1: "enabling the WAL would not change the
//! trends"): a tree with each kind, with and without the log.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use terrane::{Design, Durability, Options};
use terrane_policy::MemtableKind;

use super::report::{Claim, Report, nanos};
use super::setting::{ENTRY_BYTES, Kind, Mode, Setting};
use crate::memtable::Load;

/// So many rounds tell how far one of them is from another, at least.
const ROUNDS_MIN: usize = 3;

/// Runs of one kind, without the log or with it.
#[derive(Clone, Default)]
struct Runs {
    /// Nanoseconds of an insert in each round.
    each: Vec<f64>,
    /// The share of the time that writers waited for flushes and compactions, in each round.
    waited: Vec<f64>,
    /// Of the last round: flushes, and bytes that they and compactions wrote for each of the user.
    flushes: u64,
    written: f64,
}

impl Runs {
    fn least(&self) -> f64 {
        self.each.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn most(&self) -> f64 {
        self.each.iter().copied().fold(0.0, f64::max)
    }

    fn waited(&self) -> f64 {
        self.waited.iter().sum::<f64>() / self.waited.len().max(1) as f64
    }

    /// Whether every round of this took less than every round of the other.
    fn is_faster(&self, other: &Self) -> bool {
        self.most() < other.least()
    }
}

/// What is done without the log, and with it.
type Both = [Runs; 2];

pub(super) fn measure(setting: &Setting, dir: &Path, report: &mut Report) -> Result<()> {
    let load = Load::new(setting.load.len(), ENTRY_BYTES, setting.seed);
    for mode in Mode::ALL {
        let kinds = setting.kinds(mode);
        let mut all = vec![Both::default(); kinds.len()];
        for _ in 0..setting.rounds.max(ROUNDS_MIN) {
            for (number, kind) in kinds.iter().enumerate() {
                for (log, durability) in
                    [Durability::None, Durability::Process].into_iter().enumerate()
                {
                    let dir = dir.join(format!("log-{}-{number}-{log}", mode.name()));
                    run(setting, &load, kind.kind, durability, &dir, &mut all[number][log])?;
                    std::fs::remove_dir_all(&dir)?;
                }
            }
        }
        show(&kinds, &all, mode, report);
    }
    Ok(())
}

fn show(kinds: &[Kind], all: &[Both], mode: Mode, report: &mut Report) {
    let rows = kinds.iter().zip(all).map(|(kind, both)| {
        let columns = both.iter().flat_map(|runs| {
            [
                format!("{} to {}", nanos(runs.least()), nanos(runs.most())),
                format!("{:.0} %", runs.waited() * 100.0),
                runs.flushes.to_string(),
                format!("{:.2}", runs.written),
            ]
        });
        std::iter::once(kind.name.to_owned()).chain(columns).collect()
    });
    report.table(
        format!("§3.1: inserts into a tree without and with the log, {}", mode.name()),
        &[
            "memtable",
            "per insert, all rounds",
            "waited",
            "flushes",
            "write amp.",
            "with log",
            "waited",
            "flushes",
            "write amp.",
        ],
        rows.collect(),
    );
    let trends = Trends::of(kinds, all);
    let same_flushes = all.iter().all(|[without, with]| without.flushes == with.flushes);
    let flushes = if same_flushes { "as many flushes" } else { "other numbers of flushes" };
    let turned = if trends.turned.is_empty() {
        "none turns".to_owned()
    } else {
        format!("{} turn", trends.turned.join(", "))
    };
    report.claim(Claim::new(
        "§3.1",
        "enabling the log does not change the trends",
        mode,
        (
            format!(
                "of {} pairs of kinds that differ in every round {} do so with the log, {} are closer \
                 than rounds are, {turned} round; {flushes}",
                trends.apart, trends.kept, trends.closer
            ),
            trends.turned.is_empty() && same_flushes,
        ),
        if trends.waits {
            "the other waits for flushes for more of the time, and writes the log while it would wait"
        } else {
            ""
        },
    ));
}

/// What becomes of the order of kinds.
#[derive(Default)]
struct Trends {
    /// Pairs of which one is faster in every round, without the log.
    apart: usize,
    /// Of these, those of which it still is with the log.
    kept: usize,
    /// Those of which neither is.
    closer: usize,
    /// Those of which the other one is, and how long each waits without the log.
    turned: Vec<String>,
    /// Whether each of those waits more of the time than the one that it overtakes.
    waits: bool,
}

impl Trends {
    fn of(kinds: &[Kind], all: &[Both]) -> Self {
        let mut trends = Self { waits: true, ..Self::default() };
        let pairs = kinds.iter().zip(all);
        for (one, [one_without, one_with]) in pairs.clone() {
            for (other, [other_without, other_with]) in pairs.clone() {
                if !one_without.is_faster(other_without) {
                    continue;
                }
                trends.apart += 1;
                if one_with.is_faster(other_with) {
                    trends.kept += 1;
                } else if !other_with.is_faster(one_with) {
                    trends.closer += 1;
                } else {
                    let waited = [one_without, other_without].map(|runs| runs.waited() * 100.0);
                    trends.waits &= waited[1] > waited[0];
                    trends.turned.push(format!(
                        "{} (waits {:.0} % of the time without it) and {} ({:.0} %)",
                        one.name, waited[0], other.name, waited[1]
                    ));
                }
            }
        }
        trends
    }
}

/// Loads a tree, and adds what that took to the runs.
fn run(
    setting: &Setting,
    load: &Load,
    memtable: MemtableKind,
    durability: Durability,
    dir: &Path,
    runs: &mut Runs,
) -> Result<()> {
    let mut design: Design = "leveling T=4; block=4KiB".parse()?;
    design.memtable = memtable;
    // Full a few times: what is flushed is the same with and without the log.
    design.buffer_bytes = ((2 << 20) as f64 * setting.scale) as u64;
    design.buffer_bytes = design.buffer_bytes.max(64 << 10);
    design.table_bytes = design.buffer_bytes;
    if let MemtableKind::Vector { prealloc_bytes, .. } = &mut design.memtable {
        *prealloc_bytes = (*prealloc_bytes).min(design.buffer_bytes);
    }
    design.validate()?;
    let options = Options::new().design(design).durability(durability).compaction_threads(1);
    let db = options.open(dir)?;
    let start = Instant::now();
    load.each(|key, value| db.put(key, value))?;
    let nanos = start.elapsed().as_nanos() as f64;
    let waited = db.stats().stalls.total_micros() as f64 * 1e3;
    db.flush()?;
    db.wait_for_compactions()?;
    let stats = db.stats();
    db.close()?;
    let written = stats.flush_bytes_written + stats.compaction_bytes_written;
    runs.each.push(nanos / load.len() as f64);
    runs.waited.push(waited / nanos);
    runs.flushes = stats.flushes;
    runs.written = written as f64 / (load.len() * ENTRY_BYTES) as f64;
    Ok(())
}

//! Compares forecasts of a design change with the work that the change then takes, for random pairs
//! of designs of the catalogue.
//!
//! Bounds: if every key is written once, compactions read the forecast bytes minus the filters and
//! indexes, which take a large share of such small tables. Where a change first merges a level in
//! place, the forecast does not know where the new tables are cut, and later merges may take up to
//! twice as much; over all changes that evens out. The numbers of runs and compactions differ by a
//! few. If keys are overwritten and deleted, the forecast cannot know which entries compactions
//! drop: they read less, down to half, or slightly more if the drops lead to other picks.

use terrane::{Db, Event};
use terrane_policy::catalogue;
use terrane_testkit::{Rng, seed_from_env};

use crate::support::{DIR, in_memory, tiny};

/// The number of design changes per test.
const CHANGES: usize = 25;
/// The largest share of a table of 4 KiB that is filter, index and footer.
const NOT_READ: f64 = 0.16;

/// The size of two tables.
const SLACK: u64 = 8 << 10;

/// The measured work of a design change.
struct MeasuredChange {
    jobs: u64,
    read_bytes: u64,
    runs: u64,
    largest_written: u64,
}

fn change(
    from: &str,
    to: &str,
    fill: impl FnOnce(&Db),
) -> (terrane_policy::Forecast, MeasuredChange) {
    let db = in_memory().0.design(tiny(from)).open(DIR).unwrap();
    fill(&db);
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let design = tiny(to);
    let forecast = db.forecast(&design).unwrap();
    assert!(forecast.is_complete, "{from} to {to}: {forecast:?}");
    let (before, events) = (db.stats(), db.events().len());
    db.set_design(design).unwrap();
    db.wait_for_compactions().unwrap();
    let after = db.stats();
    let jobs = |stats: &terrane::Stats| stats.compactions + stats.move_compactions;
    let written = db.events().into_iter().skip(events).filter_map(|logged| match logged.event {
        Event::JobEnded { written_bytes, .. } => Some(written_bytes),
        _ => None,
    });
    let measured = MeasuredChange {
        jobs: jobs(&after) - jobs(&before),
        read_bytes: after.compaction_bytes_read - before.compaction_bytes_read,
        runs: db.tree().shape.run_count() as u64,
        largest_written: written.max().unwrap_or(0),
    };
    (forecast, measured)
}

/// Returns random pairs of names of designs.
fn pairs(rng: &mut Rng) -> Vec<(&'static str, &'static str)> {
    (0..CHANGES).map(|_| (rng.pick(catalogue::ALL).name, rng.pick(catalogue::ALL).name)).collect()
}

fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

#[test]
fn a_change_of_unique_keys_takes_the_forecast_work() {
    let mut rewrote = 0;
    let (mut all_read, mut all_forecast) = (0.0, 0.0);
    for (from, to) in pairs(&mut Rng::new(seed_from_env(1))) {
        let (forecast, measured) =
            change(from, to, |db| (0..5000).for_each(|n| db.put(key(n), [7; 40]).unwrap()));
        let name = format!("{from} to {to}: {forecast:?}");
        let (least, most) = ((1.0 - NOT_READ) * 0.85, 2.0);
        let read = measured.read_bytes as f64;
        let bytes = forecast.bytes_rewritten as f64;
        assert!(read >= least * bytes && read <= most * bytes, "{name} {read}");
        (all_read, all_forecast) = (all_read + read, all_forecast + bytes);
        assert!(
            measured.jobs.abs_diff(forecast.jobs) <= forecast.jobs / 8 + 2,
            "{name} {}",
            measured.jobs
        );
        assert!(measured.runs.abs_diff(forecast.after.runs) <= 1, "{name} {}", measured.runs);
        let peak = forecast.peak_extra_bytes;
        assert!(
            measured.largest_written <= peak + peak / 20,
            "{name} {}",
            measured.largest_written
        );
        rewrote += u64::from(bytes > 0.0);
    }
    assert!(rewrote >= 3, "{rewrote} changes rewrote something");
    assert!(all_read <= 1.05 * all_forecast, "{all_read} {all_forecast}");
}

#[test]
fn a_change_of_overwritten_keys_takes_about_the_forecast_work() {
    let mut rewrote = 0;
    let mut rng = Rng::new(seed_from_env(2));
    for (from, to) in pairs(&mut rng) {
        let (forecast, measured) = change(from, to, |db| {
            for _ in 0..5000 {
                let key = key(rng.below(1500));
                if rng.percent(10) {
                    db.delete(key).unwrap();
                } else {
                    db.put(key, [7; 40]).unwrap();
                }
            }
        });
        let name = format!("{from} to {to}: {forecast:?}");
        let bytes = forecast.bytes_rewritten;
        assert!(measured.read_bytes <= bytes + bytes / 4 + SLACK, "{name} {}", measured.read_bytes);
        assert!((measured.read_bytes + SLACK) * 2 >= bytes, "{name} {}", measured.read_bytes);
        assert!(measured.jobs <= forecast.jobs + forecast.jobs / 8 + 2, "{name} {}", measured.jobs);
        assert!(measured.runs <= forecast.after.runs + 1, "{name} {}", measured.runs);
        let peak = forecast.peak_extra_bytes;
        assert!(
            measured.largest_written <= peak + peak / 20,
            "{name} {}",
            measured.largest_written
        );
        rewrote += u64::from(bytes > 0);
    }
    assert!(rewrote >= 3, "{rewrote} changes rewrote something");
}

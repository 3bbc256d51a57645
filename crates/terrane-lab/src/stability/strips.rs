//! The rows below the plots over time: runs, levels, running merges, and what writers waited for.

use terrane_workload::Glance;
use terrane_workload::stability::PhaseReport;

use crate::output::plot::{Span, Strip};

/// Returns the rows of a phase that has samples. A cause for which no writer waited has no row.
pub(super) fn of(phase: &PhaseReport) -> Vec<Strip> {
    let end = phase.seconds + phase.warm_up_seconds;
    let count = |name: &str, value: fn(&Glance) -> Option<u64>| {
        let counts: Vec<(f64, u64)> = phase
            .samples
            .iter()
            .filter_map(|sample| Some((sample.seconds, value(&sample.glance)?)))
            .collect();
        (!counts.is_empty()).then(|| Strip::of_counts(name, &counts, end))
    };
    let counts = [
        count("runs", |glance| glance.components),
        count("levels", |glance| glance.levels),
        count("merges", |glance| glance.running_merges),
    ];
    counts.into_iter().flatten().chain(causes(phase)).collect()
}

/// Returns a row for each cause for which writers waited: the share of the time that they did.
fn causes(phase: &PhaseReport) -> impl Iterator<Item = Strip> {
    let strip = |(at, cause): (usize, &str)| {
        let spans: Vec<Span> = phase
            .samples
            .windows(2)
            .filter_map(|pair| {
                let [before, after] = pair else { return None };
                let micros = |glance: &Glance| glance.stalls_micros.get(at).copied();
                let waited = micros(&after.glance)?.saturating_sub(micros(&before.glance)?);
                let time = (after.seconds - before.seconds) * f64::from(phase.writers.max(1));
                let share = (waited as f64 / 1e6 / time.max(1e-9)).min(1.0);
                (waited > 0).then(|| Span {
                    from: before.seconds,
                    to: after.seconds,
                    strength: share,
                    label: format!("{:.0} %", share * 100.0),
                })
            })
            .collect();
        (!spans.is_empty()).then(|| Strip { name: cause.to_owned(), spans })
    };
    let causes = phase.counters.stalls.iter().map(|stall| &*stall.cause).enumerate();
    causes.filter_map(strip).collect::<Vec<_>>().into_iter()
}

/// Returns the cause for which writers waited longest between two samples; `None` if they did not
/// wait.
pub(super) fn longest_cause<'p>(
    phase: &'p PhaseReport,
    before: &Glance,
    after: &Glance,
) -> Option<&'p str> {
    let waited = before.stalls_micros.iter().zip(&after.stalls_micros);
    let waited = waited.map(|(before, after)| after.saturating_sub(*before));
    let (micros, cause) = waited.zip(&phase.counters.stalls).max_by_key(|(micros, _)| *micros)?;
    (micros > 0).then_some(&*cause.cause)
}

#[cfg(test)]
mod tests {
    use terrane_workload::stability::{Arrival, Sample};
    use terrane_workload::store::StallTime;

    use super::*;
    use crate::stability::testing;

    #[test]
    fn writers_waited_where_the_time_of_a_cause_grew() {
        let mut phase = testing::report(Arrival::Constant).running;
        let cause = |name: &str| StallTime { cause: name.to_owned(), count: 0, micros: 0 };
        phase.counters.stalls = vec![cause("level-0-runs"), cause("delay")];
        let sample = |seconds: f64, delay: u64, merges: u64| {
            let mut glance = Glance { running_merges: Some(merges), ..Glance::default() };
            glance.stalls_micros[1] = delay;
            Sample { seconds, glance }
        };
        phase.samples = vec![sample(0.0, 0, 1), sample(1.0, 0, 2), sample(2.0, 500_000, 0)];
        let strips = of(&phase);
        let names: Vec<_> = strips.iter().map(|strip| &*strip.name).collect();
        assert_eq!(names, ["merges, up to 2", "delay"]);
        let waited = &strips[1].spans;
        assert_eq!((waited.len(), waited[0].from, waited[0].strength), (1, 1.0, 0.5));
        let [_, before, after] = &phase.samples[..] else { panic!("three samples") };
        assert_eq!(longest_cause(&phase, &before.glance, &after.glance), Some("delay"));
        assert_eq!(longest_cause(&phase, &after.glance, &after.glance), None);
    }
}

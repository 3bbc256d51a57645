//! Reasons to doubt a verdict: a run shows only the events that happened during it.

use terrane_workload::stability::{PhaseReport, TwoPhaseReport};

use crate::output::human;

/// If the mean number of runs grew by more than a quarter plus one, from the second quarter of the
/// running phase to the last, it may still be growing.
const GROWTH_FACTOR: f64 = 1.25;
const GROWTH_RUNS: f64 = 1.0;
/// If the rate fell by more than a tenth within the testing phase, the rate had not yet reached its
/// lasting value.
const FALL_SHARE: f64 = 0.9;
/// The share of the p99 write latency above which the driver's own delay is reported.
const DRIVER_SHARE: f64 = 0.25;

/// Returns the cautions of a report.
pub(super) fn of(report: &TwoPhaseReport) -> Vec<String> {
    let TwoPhaseReport { testing, running } = report;
    let mut cautions = Vec::new();
    if testing.counters.compactions == Some(0) {
        cautions.push(
            "no merge ran in the testing phase, so the maximum includes flushes only; use a \
             longer --testing and --running, or a smaller buffer"
                .to_owned(),
        );
    } else if running.counters.compactions == Some(0) {
        cautions.push("no merge ran in the running phase; use a longer --running".to_owned());
    } else if let [above @ .., _last] = &running.counters.compactions_by_level[..]
        && above.last() == Some(&0)
    {
        cautions.push(
            "no merge into the last level ran in the running phase, so the verdict excludes the largest \
             merges; use a longer --running"
                .to_owned(),
        );
    }
    if let Some((first, second)) = halves(testing)
        && second < first * FALL_SHARE
    {
        cautions.push(format!(
            "the maximum was still falling, from {} to {} writes/s within the testing phase; use a \
             longer --testing and a longer --warm-up",
            human::number(first),
            human::number(second)
        ));
    }
    let quarters = running.mean_components(0.25, 0.5).zip(running.mean_components(0.75, 1.0));
    if let Some((early, late)) = quarters
        && late > early * GROWTH_FACTOR + GROWTH_RUNS
    {
        cautions.push(format!(
            "the number of sorted runs was still growing, from {early:.1} to {late:.1} on average, so \
             the rate may not last; use a longer --running"
        ));
    }
    let share = running.late.percentile_micros(99.0) / running.write.percentile_micros(99.0);
    if running.late.samples() > 0 && share > DRIVER_SHARE {
        cautions.push(format!(
            "the driver started writes {} µs late at p99, which the write latency includes; reduce \
             other load on the machine",
            human::number(running.late.percentile_micros(99.0))
        ));
    }
    cautions
}

/// Returns the mean writes per second in each half of the phase.
fn halves(phase: &PhaseReport) -> Option<(f64, f64)> {
    let windows = phase.timeline.windows(1.0);
    let measured: Vec<f64> = windows
        .iter()
        .filter(|window| window.begin_seconds >= phase.warm_up_seconds)
        .map(terrane_workload::stability::Window::per_second)
        .collect();
    let (first, second) = measured.split_at(measured.len() / 2);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    (first.len() >= 2).then(|| (mean(first), mean(second)))
}

#[cfg(test)]
mod tests {
    use terrane_workload::Glance;
    use terrane_workload::stability::{Arrival, Sample};

    use super::super::testing::report;
    use super::*;

    fn cautions(change: impl Fn(&mut TwoPhaseReport)) -> Vec<String> {
        let mut report = report(Arrival::Constant);
        report.testing.counters.compactions = Some(3);
        report.running.counters.compactions = Some(3);
        report.running.late = terrane_workload::Latency::new();
        change(&mut report);
        of(&report)
    }

    #[test]
    fn runs_without_merges_or_with_growing_trees_get_a_caution() {
        assert_eq!(cautions(|_| ()), [""; 0]);
        let found = cautions(|report| report.testing.counters.compactions = Some(0));
        assert!(found.len() == 1 && found[0].contains("flushes only"), "{found:?}");
        let found = cautions(|report| report.running.counters.compactions = Some(0));
        assert!(found.len() == 1 && found[0].contains("longer --running"), "{found:?}");
        let found = cautions(|report| report.running.counters.compactions_by_level = vec![3, 0, 0]);
        assert!(found.len() == 1 && found[0].contains("into the last level"), "{found:?}");
        let levels = |report: &mut TwoPhaseReport| {
            report.running.counters.compactions_by_level = vec![2, 1, 0];
        };
        assert_eq!(cautions(levels), [""; 0]);
        let found = cautions(|report| {
            let seconds = report.running.seconds;
            report.running.samples = (0..=20)
                .map(|step| Sample {
                    seconds: seconds * f64::from(step) / 20.0,
                    glance: Glance { components: Some(step as u64), ..Glance::default() },
                })
                .collect();
        });
        assert!(
            found.len() == 1 && found[0].contains("still growing, from 7.5 to 17.5"),
            "{found:?}"
        );
    }

    #[test]
    fn the_error_of_the_driver_is_reported() {
        let found = cautions(|report| report.running.late = report.running.write.clone());
        assert!(found.len() == 1 && found[0].contains("the driver started"), "{found:?}");
    }
}

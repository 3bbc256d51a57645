//! What weakens a verdict: a run shows only what happened during it.

use terrane_workload::stability::{PhaseReport, TwoPhaseReport};

use crate::human;

/// If the runs grew by more than a quarter plus one, from the second quarter of the running phase to
/// the last, they may keep growing.
const GROWTH_FACTOR: f64 = 1.25;
const GROWTH_RUNS: f64 = 1.0;
/// If the rate fell by more than a tenth within the testing phase, it was not the maximum yet.
const FALL_SHARE: f64 = 0.9;
/// The share of the write latency above which the driver's own error is reported.
const DRIVER_SHARE: f64 = 0.25;

/// Returns the cautions of a report.
pub(super) fn of(report: &TwoPhaseReport) -> Vec<String> {
    let TwoPhaseReport { testing, running } = report;
    let mut cautions = Vec::new();
    if testing.counters.compactions == Some(0) {
        cautions.push(
            "no merge ran in the testing phase, so the maximum is that of flushes alone: \
             longer phases, or a smaller buffer, show more"
                .to_owned(),
        );
    } else if running.counters.compactions == Some(0) {
        cautions.push("no merge ran in the running phase; try a longer --running".to_owned());
    } else if let [above @ .., _last] = &running.counters.compactions_by_level[..]
        && above.last() == Some(&0)
    {
        cautions.push(
            "no merge into the last level ran in the running phase, so the largest merges are still \
             due; try a longer --running"
                .to_owned(),
        );
    }
    if let Some((first, second)) = halves(testing)
        && second < first * FALL_SHARE
    {
        cautions.push(format!(
            "the maximum was still falling, from {} to {} writes/s within the testing phase: \
             --testing longer with a longer --warm-up",
            human::number(first),
            human::number(second)
        ));
    }
    let quarters = running.mean_components(0.25, 0.5).zip(running.mean_components(0.75, 1.0));
    if let Some((early, late)) = quarters
        && late > early * GROWTH_FACTOR + GROWTH_RUNS
    {
        cautions.push(format!(
            "sorted runs were still growing, from {early:.1} to {late:.1} on average, so the rate may \
             not last; try a longer --running"
        ));
    }
    let share = running.late.percentile_micros(99.0) / running.write.percentile_micros(99.0);
    if running.late.samples() > 0 && share > DRIVER_SHARE {
        cautions.push(format!(
            "the driver itself was late by {} µs at p99, which is in the write latency",
            human::number(running.late.percentile_micros(99.0))
        ));
    }
    cautions
}

/// Returns the writes per second of the two halves of the phase.
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
    fn a_run_in_which_nothing_was_merged_or_runs_grew_is_worth_less() {
        assert_eq!(cautions(|_| ()), [""; 0]);
        let told = cautions(|report| report.testing.counters.compactions = Some(0));
        assert!(told.len() == 1 && told[0].contains("flushes alone"), "{told:?}");
        let told = cautions(|report| report.running.counters.compactions = Some(0));
        assert!(told.len() == 1 && told[0].contains("longer --running"), "{told:?}");
        let told = cautions(|report| report.running.counters.compactions_by_level = vec![3, 0, 0]);
        assert!(told.len() == 1 && told[0].contains("into the last level"), "{told:?}");
        let levels = |report: &mut TwoPhaseReport| {
            report.running.counters.compactions_by_level = vec![2, 1, 0];
        };
        assert_eq!(cautions(levels), [""; 0]);
        let told = cautions(|report| {
            let seconds = report.running.seconds;
            report.running.samples = (0..=20)
                .map(|step| Sample {
                    seconds: seconds * f64::from(step) / 20.0,
                    glance: Glance { components: Some(step as u64), ..Glance::default() },
                })
                .collect();
        });
        assert!(told.len() == 1 && told[0].contains("still growing, from 7.5 to 17.5"), "{told:?}");
    }

    #[test]
    fn the_error_of_the_driver_is_reported() {
        let told = cautions(|report| report.running.late = report.running.write.clone());
        assert!(told.len() == 1 && told[0].contains("the driver itself"), "{told:?}");
    }
}

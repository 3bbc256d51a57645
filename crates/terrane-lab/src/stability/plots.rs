//! The plots of an evaluation: throughput and sorted runs over time, latency by percentile, the
//! simulator's continuation, and all designs in one plot.
//!
//! The axes are those of the running phase: values of the testing phase beyond them are cut off,
//! and the legend says so. Limits on the number of runs are separate lines.

use terrane::Design;
use terrane_policy::design::{Bound, Limit, NEVER, Violation};
use terrane_workload::RunLimit;
use terrane_workload::stability::{PhaseReport, Window};

use super::evaluation::{DesignEvaluation, MapCalibration};
use super::outlook::Outlook;
use super::strips;
use super::words::all_micros;
use crate::output::plot::{Curve, Plot, Scale, Stroke};

/// The maximum number of points of a curve over time.
const POINTS_MAX: f64 = 400.0;

/// Values of the testing phase above this multiple of the running phase are cut off.
const TESTING_MAX: f64 = 1.5;

/// Returns the plots of one design, each with a word for its file name.
pub(super) fn of(
    evaluation: &DesignEvaluation,
    calibration: Option<&MapCalibration>,
) -> Vec<(&'static str, Plot)> {
    let running = &evaluation.report.running;
    let mut plots = vec![
        ("throughput", throughput(evaluation)),
        ("latency", latency(running, calibration)),
        ("longest", longest(running)),
    ];
    plots.extend(components(evaluation).map(|plot| ("runs", plot)));
    plots.extend(continued(evaluation).map(|plot| ("simulated", plot)));
    plots.extend(queries(running).map(|plot| ("queries", plot)));
    plots
}

fn windows(phase: &PhaseReport) -> Vec<Window> {
    let total = phase.seconds + phase.warm_up_seconds;
    phase.timeline.windows((total / POINTS_MAX).max(0.1))
}

fn over_time(phase: &PhaseReport, value: fn(&Window) -> f64) -> Vec<(f64, f64)> {
    let point = |window: &Window| (window.begin_seconds + window.seconds / 2.0, value(window));
    windows(phase).iter().map(point).collect()
}

fn bands(phase: &PhaseReport) -> Vec<(f64, f64)> {
    let stalls = phase.stalls();
    stalls.iter().map(|stall| (stall.begin_seconds, stall.begin_seconds + stall.seconds)).collect()
}

fn curve(name: &str, stroke: Stroke, points: Vec<(f64, f64)>) -> Curve {
    Curve { name: name.to_owned(), points, stroke }
}

/// Cuts points off above `highest`; returns true if there were any.
fn cut_off(points: &mut [(f64, f64)], highest: f64) -> bool {
    let mut is_cut = false;
    for (_, value) in points.iter_mut().filter(|(_, value)| *value > highest) {
        *value = highest;
        is_cut = true;
    }
    is_cut
}

/// Returns the highest value.
fn highest(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|(_, value)| *value).fold(0.0, f64::max)
}

/// Returns the testing phase as a reference for the running phase, without values that would
/// flatten the running phase.
fn reference(mut testing: Vec<(f64, f64)>, running: &[(f64, f64)]) -> Curve {
    let limit = TESTING_MAX * highest(running);
    let end = running.last().map_or(0.0, |(seconds, _)| *seconds);
    testing.retain(|(seconds, _)| *seconds <= end.max(1.0));
    let is_cut = limit > 0.0 && cut_off(&mut testing, limit);
    curve(if is_cut { "testing, cut off" } else { "testing" }, Stroke::Dashed, testing)
}

/// Returns the limits on level 0 as lines from the start to the end of a plot.
fn limits(design: &str, end: f64) -> Vec<Curve> {
    let Ok(design) = design.parse::<Design>() else { return Vec::new() };
    let constraint = design.constraint;
    let line = |name: &str, runs: u32| {
        let points = vec![(0.0, f64::from(runs)), (end, f64::from(runs))];
        (runs < NEVER).then(|| curve(&format!("{name} at {runs}"), Stroke::Dashed, points))
    };
    match (constraint.limit, constraint.violation) {
        (_, Violation::None) => Vec::new(),
        (Limit::Level0, Violation::Stop | Violation::Spread) => {
            line("level 0 stops", constraint.stop_runs).into_iter().collect()
        }
        (Limit::Level0, _) => {
            let lines = [
                line("level 0 delays", constraint.delay_runs),
                line("level 0 stops", constraint.stop_runs),
            ];
            lines.into_iter().flatten().collect()
        }
        (Limit::Global(Bound::Runs(runs)), _) => line("stop", runs).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Returns the number of runs that the limit counts, and the numbers at which writers are delayed and
/// stopped. These two change with the number of levels if the limit is a multiple of it.
fn limit_over_time(running: &PhaseReport) -> Vec<Curve> {
    let line = |name: &str, stroke, value: &dyn Fn(&RunLimit) -> Option<u32>| {
        let points = running
            .samples
            .iter()
            .filter_map(|sample| Some((sample.seconds, f64::from(value(&sample.glance.limit?)?))));
        curve(name, stroke, points.collect())
    };
    let lines = [
        line("limited", Stroke::Solid, &|limit| Some(limit.runs)),
        line("delay", Stroke::Dashed, &|limit| limit.delay),
        line("stop", Stroke::Dashed, &|limit| Some(limit.stop)),
    ];
    lines.into_iter().filter(|line| !line.points.is_empty()).collect()
}

/// Returns the runs of the longest simulated time.
fn continued(evaluation: &DesignEvaluation) -> Option<Plot> {
    let Outlook::Played(played) = &evaluation.outlook else { return None };
    let horizon = played.horizons.last()?;
    let hours: Vec<(f64, f64)> =
        horizon.runs.iter().map(|(seconds, runs)| (seconds / 3600.0, *runs)).collect();
    let end = horizon.seconds / 3600.0;
    let stall = horizon.first_stall.filter(|_| !horizon.holds);
    let mut curves = vec![curve("simulated", Stroke::Solid, hours)];
    curves.extend(limits(&evaluation.design, end));
    Some(Plot {
        title: format!("Sorted runs over {}, simulated, {}", horizon.name, evaluation.name),
        x_label: "hours since the start of the running phase".into(),
        y_label: "runs".into(),
        y_scale: Scale::Linear,
        x_names: Vec::new(),
        curves,
        bands: stall
            .map(|stall| {
                (stall.from / 3600.0, (stall.until / 3600.0).max(stall.from / 3600.0 + end / 200.0))
            })
            .into_iter()
            .collect(),
        strips: Vec::new(),
    })
}

/// Returns the running phases of several designs in one plot.
pub(super) fn overlaid(evaluations: &[DesignEvaluation]) -> Vec<(&'static str, Plot)> {
    let plot = |title: &str, y_label: &str, curves| Plot {
        title: format!("{title}, running phases"),
        x_label: "seconds since the start of the phase".into(),
        y_label: y_label.into(),
        y_scale: Scale::Linear,
        x_names: Vec::new(),
        curves,
        bands: Vec::new(),
        strips: Vec::new(),
    };
    let curves = |points: &dyn Fn(&PhaseReport) -> Vec<(f64, f64)>| {
        let of =
            |one: &DesignEvaluation| curve(&one.name, Stroke::Solid, points(&one.report.running));
        evaluations.iter().map(of).collect::<Vec<Curve>>()
    };
    vec![
        (
            "throughput",
            plot(
                "Writes",
                "writes per second",
                curves(&|phase| over_time(phase, Window::per_second)),
            ),
        ),
        ("runs", plot("Sorted runs", "runs", curves(&runs_over_time))),
    ]
}

fn runs_over_time(phase: &PhaseReport) -> Vec<(f64, f64)> {
    let samples = phase.samples.iter();
    samples.filter_map(|sample| Some((sample.seconds, sample.glance.components? as f64))).collect()
}

fn throughput(evaluation: &DesignEvaluation) -> Plot {
    let (testing, running) = (&evaluation.report.testing, &evaluation.report.running);
    let writes = over_time(running, Window::per_second);
    Plot {
        title: format!("Writes over time, {}", evaluation.name),
        x_label: "seconds since the start of the phase".into(),
        y_label: "writes per second".into(),
        y_scale: Scale::Linear,
        x_names: Vec::new(),
        curves: vec![
            curve("running", Stroke::Solid, writes.clone()),
            reference(over_time(testing, Window::per_second), &writes),
        ],
        bands: bands(running),
        strips: strips::of(running),
    }
}

fn longest(running: &PhaseReport) -> Plot {
    // A window without completed writes has no longest latency.
    let ended = windows(running).into_iter().filter(|window| window.completed > 0);
    let millis = ended.map(|window| {
        (window.begin_seconds + window.seconds / 2.0, window.longest_nanos as f64 / 1e6)
    });
    Plot {
        title: "Longest write latency over time, running phase".into(),
        x_label: "seconds since the start of the phase".into(),
        y_label: "milliseconds from arrival to completion".into(),
        y_scale: Scale::Logarithmic,
        x_names: Vec::new(),
        curves: vec![curve("longest of its window", Stroke::Solid, millis.collect())],
        bands: bands(running),
        strips: strips::of(running),
    }
}

fn latency(running: &PhaseReport, calibration: Option<&MapCalibration>) -> Plot {
    let millis = |latency| -> Vec<(f64, f64)> {
        let all = all_micros(latency);
        all.iter().enumerate().map(|(at, (_, micros))| (at as f64, micros / 1e3)).collect()
    };
    let mut curves = vec![
        curve("write latency", Stroke::Solid, millis(&running.write)),
        curve("processing", Stroke::Solid, millis(&running.processing)),
    ];
    if let Some(calibration) = calibration {
        let mem = &calibration.report.running;
        curves.push(curve("write, mem", Stroke::Dashed, millis(&mem.write)));
        curves.push(curve("processing, mem", Stroke::Dashed, millis(&mem.processing)));
    }
    Plot {
        title: "Latency by percentile, running phase".into(),
        x_label: "percentile of writes".into(),
        y_label: "milliseconds".into(),
        y_scale: Scale::Logarithmic,
        x_names: all_micros(&running.write).into_iter().map(|(name, _)| name).collect(),
        curves,
        bands: Vec::new(),
        strips: Vec::new(),
    }
}

fn components(evaluation: &DesignEvaluation) -> Option<Plot> {
    let running = runs_over_time(&evaluation.report.running);
    let end = running.last().map_or(0.0, |(seconds, _)| *seconds);
    let testing = reference(runs_over_time(&evaluation.report.testing), &running);
    let mut curves = vec![curve("running", Stroke::Solid, running), testing];
    curves.extend(limit_over_time(&evaluation.report.running));
    (end > 0.0).then(|| Plot {
        title: "Sorted runs over time".into(),
        x_label: "seconds since the start of the phase".into(),
        y_label: "runs".into(),
        y_scale: Scale::Linear,
        x_names: Vec::new(),
        curves,
        bands: bands(&evaluation.report.running),
        strips: Vec::new(),
    })
}

fn queries(running: &PhaseReport) -> Option<Plot> {
    let readers = running.readers.as_ref()?;
    let total = running.seconds + running.warm_up_seconds;
    let windows = readers.timeline.windows((total / POINTS_MAX).max(0.1));
    let point =
        |window: &Window| (window.begin_seconds + window.seconds / 2.0, window.per_second());
    Some(Plot {
        title: "Queries over time, running phase".into(),
        x_label: "seconds since the start of the phase".into(),
        y_label: format!("{} queries per second", readers.query),
        y_scale: Scale::Linear,
        x_names: Vec::new(),
        curves: vec![curve("queries", Stroke::Solid, windows.iter().map(point).collect())],
        bands: bands(running),
        strips: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spikes_of_the_testing_phase_do_not_flatten_the_running_phase() {
        let running = vec![(0.0, 100.0), (30.0, 90.0)];
        let reference = reference(vec![(0.0, 80.0), (10.0, 5000.0), (90.0, 70.0)], &running);
        assert_eq!(reference.points, [(0.0, 80.0), (10.0, 150.0)]);
        assert!(reference.name.contains("cut off"));
    }

    #[test]
    fn limits_are_lines() {
        let names = |design: &str| {
            limits(design, 10.0).into_iter().map(|line| line.name).collect::<Vec<_>>()
        };
        let both = names("balanced; limit=level0; violation=slow-down; delay=12; stop=24");
        assert_eq!(both, ["level 0 delays at 12", "level 0 stops at 24"]);
        assert_eq!(
            names("balanced; limit=level0; violation=stop; delay=8; stop=9"),
            ["level 0 stops at 9"]
        );
        assert_eq!(names("balanced; violation=none"), [""; 0]);
    }
}

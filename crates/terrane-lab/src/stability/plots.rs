//! The plots of an evaluation: throughput and sorted runs over time, latency by percentile.

use terrane_workload::stability::{PhaseReport, Window};

use super::evaluation::{DesignEvaluation, MapCalibration};
use super::words::all_micros;
use crate::plot::{Curve, Plot, Scale, Stroke};

/// The maximum number of points of a curve over time.
const POINTS_MAX: f64 = 400.0;

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

fn throughput(evaluation: &DesignEvaluation) -> Plot {
    let (testing, running) = (&evaluation.report.testing, &evaluation.report.running);
    Plot {
        title: format!("Writes over time, {}", evaluation.name),
        x_label: "seconds since the start of the phase".into(),
        y_label: "writes per second".into(),
        y_scale: Scale::Linear,
        x_names: Vec::new(),
        curves: vec![
            curve("running", Stroke::Solid, over_time(running, Window::per_second)),
            curve("testing", Stroke::Dashed, over_time(testing, Window::per_second)),
        ],
        bands: bands(running),
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
    }
}

fn components(evaluation: &DesignEvaluation) -> Option<Plot> {
    let points = |phase: &PhaseReport| -> Vec<(f64, f64)> {
        let samples = phase.samples.iter();
        samples
            .filter_map(|sample| Some((sample.seconds, sample.glance.components? as f64)))
            .collect()
    };
    let running = points(&evaluation.report.running);
    (!running.is_empty()).then(|| Plot {
        title: "Sorted runs over time".into(),
        x_label: "seconds since the start of the phase".into(),
        y_label: "runs".into(),
        y_scale: Scale::Linear,
        x_names: Vec::new(),
        curves: vec![
            curve("running", Stroke::Solid, running),
            curve("testing", Stroke::Dashed, points(&evaluation.report.testing)),
        ],
        bands: bands(&evaluation.report.running),
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
    })
}

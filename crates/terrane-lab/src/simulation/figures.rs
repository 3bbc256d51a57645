//! The report of simulations: rates, runs and latencies, with a curve for each design.

use serde_json::Value;
use terrane_sim::SimulationOutcome;

use crate::output::plot::{Curve, Plot, Scale, Stroke};
use crate::report::figures::FigureReport;
use crate::report::run_page::Figure;
use crate::simulation::report::QUANTILES;

/// A phase of a simulated design.
#[derive(Debug, Clone)]
pub struct SimulatedCurves {
    name: String,
    rates: Vec<(f64, f64)>,
    runs: Vec<(f64, f64)>,
    latencies: Vec<(f64, f64)>,
}

impl SimulatedCurves {
    /// Returns the curves of an outcome, named `name`, with windows of `window_seconds`.
    #[must_use]
    pub fn of(name: impl Into<String>, window_seconds: f64, outcome: &SimulationOutcome) -> Self {
        let minutes = |number: usize| (number + 1) as f64 * window_seconds / 60.0;
        let windows = || outcome.windows.iter().enumerate();
        let quantiles = QUANTILES.iter().enumerate();
        Self {
            name: name.into(),
            rates: windows().map(|(number, window)| (minutes(number), window.rate)).collect(),
            runs: windows().map(|(number, window)| (minutes(number), window.runs)).collect(),
            latencies: quantiles
                .filter_map(|(at, (_, part))| {
                    Some((at as f64, outcome.latencies.quantile(*part)? * 1e3))
                })
                .collect(),
        }
    }
}

/// Returns the report of some simulations, whose lines of JSON are `lines`.
#[must_use]
pub fn of_simulations(curves: &[SimulatedCurves], lines: Vec<Value>) -> FigureReport {
    let plot =
        |title: &str, y_label: &str, points: fn(&SimulatedCurves) -> &Vec<(f64, f64)>| Plot {
            title: title.to_owned(),
            x_label: "minutes".into(),
            y_label: y_label.to_owned(),
            y_scale: Scale::Linear,
            x_names: Vec::new(),
            curves: curves
                .iter()
                .map(|one| Curve {
                    name: one.name.clone(),
                    points: points(one).clone(),
                    stroke: Stroke::Solid,
                })
                .collect(),
            bands: Vec::new(),
            strips: Vec::new(),
        };
    let latencies = Plot {
        x_label: "percentile".into(),
        x_names: QUANTILES.iter().map(|(name, _)| (*name).to_owned()).collect(),
        y_scale: Scale::Logarithmic,
        ..plot("Latency of writes", "ms", |one| &one.latencies)
    };
    let plots = [
        ("writes", plot("Writes over time", "writes/s", |one| &one.rates)),
        ("runs", plot("Sorted runs over time", "runs", |one| &one.runs)),
        ("latency", latencies),
    ];
    let about = lines.iter().filter_map(|line| {
        let text = |name: &str| line.get(name).and_then(Value::as_str);
        let number = |name: &str| line.get(name).and_then(Value::as_f64);
        Some(format!(
            "{}: {} records of {} B, {}",
            text("design")?,
            number("records")?,
            number("record_bytes")?,
            text("keys")?
        ))
    });
    FigureReport {
        title: "Simulation".into(),
        about: about.collect(),
        verdict: Vec::new(),
        figures: plots.iter().map(|(name, plot)| Figure::of_plot(name, plot)).collect(),
        lines,
    }
}

//! The report of a benchmark: a panel for each metric, with a series for each design.

use anyhow::Result;

use crate::bench::{BenchComparison, BenchPlan, DesignRun, JsonRow, WorkloadRow, verdict};
use crate::output::human;
use crate::output::plot::{Panel, PanelAxis, PanelPoint, PanelSeries, Scale};
use crate::report::figures::FigureReport;
use crate::report::run_page::Figure;

/// A metric with a panel of its own.
struct PlottedMetric {
    file: &'static str,
    title: &'static str,
    unit: &'static str,
    scale: Scale,
    of: fn(&WorkloadRow) -> Option<f64>,
}

const METRICS: [PlottedMetric; 6] = [
    PlottedMetric {
        file: "throughput",
        title: "Throughput",
        unit: "operations/s",
        scale: Scale::Logarithmic,
        of: |row| Some(row.operations_per_second),
    },
    PlottedMetric {
        file: "latency-p50",
        title: "Median latency",
        unit: "µs",
        scale: Scale::Logarithmic,
        of: |row| row.latency.map(|latency| latency.p50),
    },
    PlottedMetric {
        file: "latency-p99",
        title: "99th percentile of latency",
        unit: "µs",
        scale: Scale::Logarithmic,
        of: |row| row.latency.map(|latency| latency.p99),
    },
    PlottedMetric {
        file: "write-amplification",
        title: "Write amplification",
        unit: "bytes to tables per byte written",
        scale: Scale::Linear,
        of: |row| row.write_amplification,
    },
    PlottedMetric {
        file: "read-amplification",
        title: "Read amplification",
        unit: "blocks per lookup",
        scale: Scale::Linear,
        of: |row| row.read_amplification,
    },
    PlottedMetric {
        file: "sorted-runs",
        title: "Sorted runs after the workload",
        unit: "runs",
        scale: Scale::Linear,
        of: |row| Some(row.work.sorted_runs as f64),
    },
];

/// Returns the report of a benchmark.
///
/// # Errors
/// If a row cannot be written as JSON.
pub fn of_bench(plan: &BenchPlan, designs: &[Vec<DesignRun>]) -> Result<FigureReport> {
    let rows = designs.iter().flatten().flat_map(|run| &run.rows);
    let lines = rows.map(|row| serde_json::to_value(JsonRow::of(row)));
    let comparisons = BenchComparison::of(designs);
    let run = &plan.run;
    let mut about = vec![format!(
        "{} keys of {} B with values of {} B, {}, seed {}",
        human::count(run.num),
        run.key_size_bytes,
        run.value_size,
        human::counted(run.threads.into(), "client thread"),
        run.seed
    )];
    about.extend(plan.designs.iter().map(|design| format!("{}: {}", design.name, design.design)));
    let figures = METRICS.iter().filter_map(|metric| {
        let panel = panel(metric, designs)?;
        Some(Figure::of_panel(metric.file, &panel))
    });
    Ok(FigureReport {
        title: "Benchmark".into(),
        about,
        verdict: verdict(&comparisons),
        figures: figures.collect(),
        lines: lines.collect::<Result<_, _>>()?,
    })
}

/// Returns the panel of a metric; `None` if no workload has it.
fn panel(metric: &PlottedMetric, designs: &[Vec<DesignRun>]) -> Option<Panel> {
    let first = designs.first()?.first()?;
    let has_it = |number: &usize| {
        let mut runs = designs.iter().flatten().filter_map(|run| run.rows.get(*number));
        runs.any(|row| (metric.of)(row).is_some())
    };
    let workloads: Vec<usize> = (0..first.rows.len()).filter(has_it).collect();
    if workloads.is_empty() {
        return None;
    }
    let names = workloads.iter().map(|number| first.rows[*number].workload.to_string());
    let series = designs.iter().filter_map(|repetitions| {
        let points = workloads.iter().enumerate().filter_map(|(x, number)| {
            let rows = repetitions.iter().filter_map(|run| run.rows.get(*number));
            point(x, rows.filter_map(metric.of).collect())
        });
        let name = repetitions.first()?.name.clone();
        Some(PanelSeries { name, is_paper: false, points: points.collect() })
    });
    Some(Panel {
        title: metric.title.into(),
        x_label: "workload".into(),
        y_label: metric.unit.into(),
        x: PanelAxis::Names(names.collect()),
        y_scale: metric.scale,
        series: series.collect(),
    })
}

/// Returns the median of some repetitions, with their range.
fn point(x: usize, mut values: Vec<f64>) -> Option<PanelPoint> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (*values.first()?, *values.last()?);
    let value = *values.get(values.len() / 2)?;
    Some(PanelPoint { x: x as f64, value, low, high })
}

//! Statistics, trees and forecasts as dictionaries, which the Python sources turn into dataclasses.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use terrane::policy::{Amplification, Forecast, Level, Run};
use terrane::{Stats, TreeView};

use crate::design::Design;

/// Returns the metrics by name, and the other statistics.
pub(crate) fn stats<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    let metrics = PyDict::new(py);
    for metric in stats.metrics() {
        metrics.set_item(metric.name, (metric.value, metric.help))?;
    }
    all.set_item("metrics", metrics)?;
    all.set_item("write_amplification", stats.write_amplification())?;
    all.set_item("read_amplification", stats.read_amplification())?;
    all.set_item("durability", stats.durability.to_string())?;
    all.set_item("error", stats.error.as_ref().map(ToString::to_string))?;
    let latencies = PyDict::new(py);
    for latency in stats.latencies.all() {
        let times = latency.times;
        let percentiles = [50.0, 90.0, 99.0, 99.9].map(|percent| times.percentile_micros(percent));
        let row =
            (times.count(), times.mean_micros(), percentiles, times.max_micros(), latency.help);
        latencies.set_item(latency.name, row)?;
    }
    all.set_item("latencies", latencies)?;
    let levels = PyList::empty(py);
    for level in &stats.by_level {
        let row = PyDict::new(py);
        for (name, _, value) in level.numbers() {
            row.set_item(name, value)?;
        }
        levels.append(row)?;
    }
    all.set_item("by_level", levels)?;
    all.set_item("text", stats.to_string())?;
    all.set_item("open_metrics", stats.open_metrics())?;
    Ok(all)
}

/// Returns a tree with its levels, runs and tables.
pub(crate) fn tree<'py>(py: Python<'py>, tree: &TreeView) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("keyspace", &tree.keyspace)?;
    all.set_item("design", Bound::new(py, Design::new(tree.design.clone()))?)?;
    all.set_item("memtable_bytes", tree.memtable_bytes)?;
    all.set_item("memtable_entries", tree.memtable_entries)?;
    all.set_item("immutable_memtables", tree.immutable_memtables)?;
    all.set_item("buffer_bytes", tree.design.buffer_bytes)?;
    all.set_item("compactions", &tree.compactions)?;
    all.set_item("value_bytes", tree.shape.value_bytes())?;
    all.set_item("live_value_bytes", tree.shape.live_value_bytes())?;
    all.set_item("text", tree.to_string())?;
    let levels = PyList::empty(py);
    let last = tree.shape.last_level();
    for (number, level) in tree.shape.levels.iter().enumerate() {
        let capacity = tree.design.capacity_bytes(number, last);
        levels.append(level_of(py, level, number, capacity)?)?;
    }
    all.set_item("levels", levels)?;
    Ok(all)
}

fn level_of<'py>(
    py: Python<'py>,
    level: &Level,
    number: usize,
    capacity: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("level", number)?;
    row.set_item("size_bytes", level.size_bytes())?;
    row.set_item("capacity_bytes", (capacity < u64::MAX).then_some(capacity))?;
    let runs = level.runs.iter().map(|run| run_of(py, run)).collect::<PyResult<Vec<_>>>()?;
    row.set_item("runs", runs)?;
    Ok(row)
}

fn run_of<'py>(py: Python<'py>, run: &Run) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("size_bytes", run.size_bytes())?;
    let tables = run.tables.iter().map(|table| {
        let row = PyDict::new(py);
        row.set_item("id", table.id.0)?;
        row.set_item("size_bytes", table.size_bytes)?;
        row.set_item("entries", table.entries)?;
        row.set_item("tombstones", table.tombstones + table.range_tombstones)?;
        row.set_item("start", PyBytes::new(py, &table.range.start))?;
        row.set_item("stop", table.range.end.as_ref().map(|end| PyBytes::new(py, end)))?;
        Ok(row)
    });
    row.set_item("tables", tables.collect::<PyResult<Vec<_>>>()?)?;
    Ok(row)
}

/// Returns a forecast.
pub(crate) fn forecast<'py>(py: Python<'py>, forecast: &Forecast) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("jobs", forecast.jobs)?;
    all.set_item("tables_rewritten", forecast.tables_rewritten)?;
    all.set_item("tables_moved", forecast.tables_moved)?;
    all.set_item("bytes_rewritten", forecast.bytes_rewritten)?;
    all.set_item("peak_extra_bytes", forecast.peak_extra_bytes)?;
    all.set_item("is_complete", forecast.is_complete)?;
    let amplification = |amplification: &Amplification| {
        let row = PyDict::new(py);
        row.set_item("runs", amplification.runs)?;
        row.set_item("blocks_per_missing_key", amplification.blocks_per_missing_key)?;
        row.set_item("space", amplification.space)?;
        PyResult::Ok(row)
    };
    all.set_item("before", amplification(&forecast.before)?)?;
    all.set_item("after", amplification(&forecast.after)?)?;
    Ok(all)
}

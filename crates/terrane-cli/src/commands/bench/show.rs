//! Header, tables and pictures.

use std::io::{self, Write};
use std::time::Duration;

use terrane_lab::bench::{BenchPlan, DesignRun, WorkloadRow};
use terrane_workload::LatencyMicros;

use super::notes::notes;
use crate::picture::{Work, by_key, by_size};
use crate::table::{Align, lines, table};
use crate::terminal::{Paint, picture_columns};
use terrane_lab::host::machine::Machine;
use terrane_lab::output::human;

/// The maximum number of runs to draw along the axis of keys; more runs would be unreadable.
const RUNS_DRAWN_MAX: usize = 24;

/// Prints the benchmark and the machine.
pub(super) fn header(out: &mut impl Write, plan: &BenchPlan, machine: &Machine) -> io::Result<()> {
    let paint = Paint::stdout();
    let run = &plan.run;
    writeln!(out, "{} · {machine}", paint.bold(concat!("terrane ", env!("CARGO_PKG_VERSION"))))?;
    write!(
        out,
        "{} keys of {} B with values of {} B = {}",
        human::count(run.num),
        run.key_size_bytes,
        run.value_size,
        human::bytes(plan.data_bytes())
    )?;
    if let Some(memory_bytes) = machine.memory_bytes {
        let share = plan.data_bytes() as f64 / memory_bytes as f64;
        let fits = if share < 0.8 { ", so reads come from memory" } else { "" };
        write!(out, ", {} × memory{fits}", human::number(share))?;
    }
    let threads = human::counted(run.threads.into(), "client thread");
    writeln!(out, " · {threads} · seed {}", run.seed)?;
    for design in &plan.designs {
        writeln!(out, "design {}: {}", paint.bold(&design.name), design.design)?;
    }
    out.flush()
}

/// Prints the tables and their notes.
pub(super) fn results(
    out: &mut impl Write,
    plan: &BenchPlan,
    finished: &[&DesignRun],
) -> io::Result<()> {
    let paint = Paint::stdout();
    let durability = finished.first().map(|first| first.stats.durability);
    if let Some(durability) = durability {
        writeln!(
            out,
            "durability {}: {}",
            paint.bold(&durability.to_string()),
            promise(durability)
        )?;
    }
    writeln!(out)?;
    measurements(out, finished)?;
    kinds(out, finished, paint)?;
    compactions(out, finished, paint)?;
    notes(out, plan, finished, paint)
}

/// Draws each tree.
pub(super) fn trees(out: &mut impl Write, finished: &[&DesignRun]) -> io::Result<()> {
    let paint = Paint::stdout();
    for one in finished {
        writeln!(out, "\n{}", paint.bold(&format!("The tree of {}", one.name)))?;
        write!(
            out,
            "{}",
            by_size(&one.view, Some(Work::of(&one.stats)), picture_columns(), paint)
        )?;
        if (1..=RUNS_DRAWN_MAX).contains(&one.view.shape.run_count()) {
            writeln!(out, "\n{}", paint.dim("its tables by key, one line per sorted run"))?;
            write!(out, "{}", by_key(&one.view, picture_columns(), paint))?;
        }
    }
    Ok(())
}

/// Suggests next commands.
pub(super) fn next(out: &mut impl Write, plan: &BenchPlan) -> io::Result<()> {
    if !plan.is_design_given {
        writeln!(
            out,
            "\nnext: terrane bench --design leveling --design tiering   (compare designs)"
        )?;
        writeln!(out, "      terrane design list   ·   terrane shell DIR   ·   terrane --help")?;
    }
    out.flush()
}

fn promise(durability: terrane::Durability) -> &'static str {
    use terrane::Durability;
    match durability {
        Durability::Process => "writes survive a crash of the process, not a power failure",
        Durability::Interval(_) => {
            "writes survive a crash of the process, and a power failure after the interval"
        }
        Durability::Sync => "writes survive a power failure",
        _ => "a crash of the process loses writes that are not flushed",
    }
}

/// Prints the rows grouped by workload, so that designs are adjacent.
fn measurements(out: &mut impl Write, finished: &[&DesignRun]) -> io::Result<()> {
    let several = finished.len() > 1;
    let mut headers = vec![("workload", Align::Left)];
    headers.extend(several.then_some(("design", Align::Left)));
    headers.extend(
        ["ops/s", "p50 µs", "p99 µs", "p99.9 µs", "max µs", "write amp", "read amp", "space amp"]
            .map(|name| (name, Align::Right)),
    );
    headers.extend([("settled", Align::Right), ("stalls", Align::Left)]);
    let mut table = table(&headers);
    let count = finished.first().map_or(0, |first| first.rows.len());
    for index in 0..count {
        for (number, row) in finished.iter().filter_map(|one| one.rows.get(index)).enumerate() {
            let name = if number == 0 { row.workload.to_string() } else { String::new() };
            let mut cells = vec![name];
            cells.extend(several.then(|| row.design.clone()));
            cells.extend(row_cells(row));
            table.add_row(cells);
        }
    }
    for line in lines(&table) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Prints the kinds of operation in mixes, if there are any.
fn kinds(out: &mut impl Write, finished: &[&DesignRun], paint: Paint) -> io::Result<()> {
    let rows = || finished.iter().flat_map(|one| &one.rows).filter(|row| !row.kinds.is_empty());
    if rows().next().is_none() {
        return Ok(());
    }
    writeln!(out, "\n{}", paint.bold("Kinds of operation, µs"))?;
    let mut table = table(&[
        ("design", Align::Left),
        ("operation", Align::Left),
        ("count", Align::Right),
        ("mean", Align::Right),
        ("p50", Align::Right),
        ("p90", Align::Right),
        ("p99", Align::Right),
        ("max", Align::Right),
    ]);
    for row in rows() {
        for (number, kind) in row.kinds.iter().enumerate() {
            let time = |of: fn(&LatencyMicros) -> f64| or_dash(kind.latency.as_ref().map(of));
            let name = if number == 0 { row.design.clone() } else { String::new() };
            let mut cells = vec![name, kind.name.clone(), human::count(kind.operations)];
            cells.extend([
                time(|latency| latency.mean),
                time(|latency| latency.p50),
                time(|latency| latency.p90),
                time(|latency| latency.p99),
                time(|latency| latency.max),
            ]);
            table.add_row(cells);
        }
    }
    lines(&table).try_for_each(|line| writeln!(out, "{line}"))
}

/// Prints the work of compactions, if there were any.
fn compactions(out: &mut impl Write, finished: &[&DesignRun], paint: Paint) -> io::Result<()> {
    let has_some = |row: &&WorkloadRow| row.compactions + row.work.move_compactions > 0;
    let rows = || finished.iter().flat_map(|one| &one.rows).filter(has_some);
    if rows().next().is_none() {
        return Ok(());
    }
    writeln!(out, "\n{}", paint.bold("Compactions"))?;
    let mut headers = vec![("workload", Align::Left), ("design", Align::Left)];
    headers.extend(
        [
            "number",
            "moves",
            "read",
            "written",
            "mean ms",
            "p50",
            "p90",
            "p99",
            "max",
            "cpu",
            "tombstones",
            "oldest",
            "levels",
            "tables",
        ]
        .map(|name| (name, Align::Right)),
    );
    let mut table = table(&headers);
    for row in rows() {
        table.add_row(compaction_cells(row));
    }
    lines(&table).try_for_each(|line| writeln!(out, "{line}"))
}

fn compaction_cells(row: &WorkloadRow) -> Vec<String> {
    let work = &row.work;
    let times = &work.compaction_times;
    let millis = |micros: Option<f64>| or_dash(micros.map(|micros| micros / 1e3));
    let at = |percent| millis(times.percentile_micros(percent));
    let dash = || "-".to_owned();
    vec![
        row.workload.to_string(),
        row.design.clone(),
        human::count(row.compactions),
        human::count(work.move_compactions),
        human::bytes(work.compaction_bytes_read),
        human::bytes(work.compaction_bytes_written),
        millis(times.mean_micros()),
        at(50.0),
        at(90.0),
        at(99.0),
        millis(times.max_micros()),
        work.compaction_cpu_share().map_or_else(dash, |share| format!("{:.0} %", 100.0 * share)),
        human::count(work.tombstones),
        work.oldest_tombstone_micros
            .map_or_else(dash, |micros| human::duration(Duration::from_micros(micros))),
        work.levels.to_string(),
        human::count(work.tables),
    ]
}

fn or_dash(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), human::number)
}

fn row_cells(row: &WorkloadRow) -> [String; 10] {
    let time = |of: fn(&LatencyMicros) -> f64| or_dash(row.latency.as_ref().map(of));
    let hundredths =
        |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    let seconds = |seconds| human::duration(Duration::from_secs_f64(seconds));
    [
        human::count(row.operations_per_second.round() as u64),
        time(|latency| latency.p50),
        time(|latency| latency.p99),
        time(|latency| latency.p99_9),
        time(|latency| latency.max),
        hundredths(row.write_amplification),
        hundredths(row.read_amplification),
        hundredths(row.space_amplification),
        row.settle_seconds.map_or("-".to_owned(), seconds),
        row.stall_cause.map_or("-".to_owned(), |cause| {
            format!("{} {cause}", human::duration(Duration::from_micros(row.stall_micros)))
        }),
    ]
}

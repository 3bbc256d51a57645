//! Header, table and pictures for people.

use std::io::{self, Write};
use std::time::Duration;

use super::plan::Plan;
use super::row::Row;
use super::runner::Finished;
use crate::human;
use crate::machine::Machine;
use crate::picture::{Work, by_key, by_size};
use crate::table::{Align, lines, table};
use crate::terminal::Paint;

/// Runs are drawn along the axis of keys if there are no more than this; more are no picture.
const RUNS_DRAWN_MAX: usize = 24;

/// What is about to be run, and on what.
pub(super) fn header(out: &mut impl Write, plan: &Plan, machine: &Machine) -> io::Result<()> {
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
    for candidate in &plan.candidates {
        writeln!(out, "design {}: {}", paint.bold(&candidate.name), candidate.design)?;
    }
    out.flush()
}

/// The tables and what they mean.
pub(super) fn results(out: &mut impl Write, plan: &Plan, finished: &[&Finished]) -> io::Result<()> {
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
    figures(out, finished)?;
    kinds(out, finished, paint)?;
    compactions(out, finished, paint)?;
    notes(out, plan, finished, paint)
}

/// A picture of each tree, and what to do next.
pub(super) fn trees(out: &mut impl Write, plan: &Plan, finished: &[&Finished]) -> io::Result<()> {
    let paint = Paint::stdout();
    for one in finished {
        writeln!(out, "\n{}", paint.bold(&format!("The tree of {}", one.name)))?;
        write!(out, "{}", by_size(&one.view, Some(Work::of(&one.stats)), paint))?;
        if (1..=RUNS_DRAWN_MAX).contains(&one.view.shape.run_count()) {
            writeln!(out, "\n{}", paint.dim("its tables by key, a line a sorted run"))?;
            write!(out, "{}", by_key(&one.view, paint))?;
        }
    }
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
        Durability::None => "a write is lost with the process until it is flushed",
        Durability::Process => "a write survives the process, not the loss of power",
        Durability::Interval(_) => {
            "a write survives the process, and after that time the loss of power"
        }
        Durability::Sync => "a write survives the loss of power",
    }
}

/// Rows grouped by workload, so that designs stand below each other.
fn figures(out: &mut impl Write, finished: &[&Finished]) -> io::Result<()> {
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

/// The kinds of operation of mixes, if there are any.
fn kinds(out: &mut impl Write, finished: &[&Finished], paint: Paint) -> io::Result<()> {
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
            let latency = &kind.latency;
            let times = [latency.mean, latency.p50, latency.p90, latency.p99, latency.max];
            let name = if number == 0 { row.design.clone() } else { String::new() };
            let mut cells = vec![name, kind.name.clone(), human::count(kind.operations)];
            cells.extend(times.map(human::number));
            table.add_row(cells);
        }
    }
    lines(&table).try_for_each(|line| writeln!(out, "{line}"))
}

/// What compactions did, where there were any.
fn compactions(out: &mut impl Write, finished: &[&Finished], paint: Paint) -> io::Result<()> {
    let has_some = |row: &&Row| row.compactions + row.work.move_compactions > 0;
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

fn compaction_cells(row: &Row) -> Vec<String> {
    let work = &row.work;
    let times = &work.compaction_times;
    let millis = |micros: f64| human::number(micros / 1e3);
    let at = |percent| millis(times.percentile_micros(percent) as f64);
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
        millis(times.max_micros() as f64),
        work.compaction_cpu_share().map_or_else(dash, |share| format!("{:.0} %", 100.0 * share)),
        human::count(work.tombstones),
        work.oldest_tombstone_micros
            .map_or_else(dash, |micros| human::duration(Duration::from_micros(micros))),
        work.levels.to_string(),
        human::count(work.tables),
    ]
}

fn row_cells(row: &Row) -> [String; 10] {
    let latency = &row.latency;
    let or_dash = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    let seconds = |seconds| human::duration(Duration::from_secs_f64(seconds));
    [
        human::count(row.operations_per_second.round() as u64),
        human::number(latency.p50),
        human::number(latency.p99),
        human::number(latency.p99_9),
        human::number(latency.max),
        or_dash(row.write_amplification),
        or_dash(row.read_amplification),
        or_dash(row.space_amplification),
        row.settle_seconds.map_or("-".to_owned(), seconds),
        row.stall_cause.map_or("-".to_owned(), |cause| {
            format!("{} {cause}", human::duration(Duration::from_micros(row.stall_micros)))
        }),
    ]
}

/// What the columns mean, and what one should know of these numbers.
fn notes(
    out: &mut impl Write,
    plan: &Plan,
    finished: &[&Finished],
    paint: Paint,
) -> io::Result<()> {
    let rows = || finished.iter().flat_map(|one| &one.rows);
    let mut notes = vec![
        "write amp: bytes written to tables for each byte that the user wrote, settling included"
            .to_owned(),
        "read amp: data blocks looked into for each key looked up · space amp: table bytes beyond \
         the live ones, for each live byte"
            .to_owned(),
    ];
    let mut sampled: Vec<String> = Vec::new();
    for row in rows().filter(|row| row.operations_per_sample > 1) {
        let note = format!(
            "{}: latencies are those of {} operations",
            row.workload, row.operations_per_sample
        );
        if !sampled.contains(&note) {
            sampled.push(note);
        }
    }
    notes.append(&mut sampled);
    notes.extend(rows().filter_map(misses_note));
    for row in rows() {
        if let Some(rate) = row.writer_operations_per_second {
            let (workload, rate) = (row.workload, human::number(rate));
            notes.push(format!("{workload} on {}: the writer made {rate} writes/s", row.design));
        }
    }
    for one in finished {
        notes.extend(one.rows.iter().rev().find_map(|row| live_note(&one.name, row)));
        notes.extend(uncompacted_note(plan, one));
        notes.extend(refused_note(&one.name, one.stats.direct_refused));
    }
    if plan.candidates.iter().any(|candidate| candidate.name.contains('/') && !plan.is_design_given)
    {
        notes.push(
            "the sizes of the default design are divided so that this little data makes a tree of \
             several levels; --design balanced has them whole"
                .to_owned(),
        );
    }
    notes.iter().try_for_each(|note| writeln!(out, "{}", paint.dim(note)))
}

/// What the cache did not have, by level.
fn misses_note(row: &Row) -> Option<String> {
    let misses = row.work.cache_misses;
    if misses.data + misses.index + misses.filter == 0 {
        return None;
    }
    let levels = row.work.by_level.iter().enumerate().filter_map(|(number, level)| {
        let count = level.data_misses + level.index_misses + level.filter_misses;
        (count > 0).then(|| format!("L{number} {}", human::count(count)))
    });
    Some(format!(
        "{} on {}: the cache missed {} data, {} index and {} filter blocks; {}",
        row.workload,
        row.design,
        human::count(misses.data),
        human::count(misses.index),
        human::count(misses.filter),
        levels.collect::<Vec<_>>().join(", ")
    ))
}

/// Why there were no compactions, if there were none.
fn uncompacted_note(plan: &Plan, one: &Finished) -> Option<String> {
    if one.stats.flushes == 0 || one.stats.compactions + one.stats.trivial_moves > 0 {
        return None;
    }
    let design = plan.candidates.iter().find(|candidate| candidate.name == one.name);
    let is_manual = design.is_some_and(|candidate| candidate.design.strategy.is_manual());
    let why = if is_manual {
        "nothing is compacted unless it is asked for, as its trigger says"
    } else {
        "nothing has been compacted yet; a longer run shows more"
    };
    Some(format!("{}: {why}", one.name))
}

/// What was asked for around the page cache, and went through it.
pub(super) fn refused_note(name: &str, tables: u64) -> Option<String> {
    (tables > 0).then(|| {
        format!(
            "{name}: the file system cannot read or write around the page cache: {} went through \
             it, so that these figures are not those of the direct mode that was asked for; --db \
             names a directory elsewhere",
            human::counted(tables, "table")
        )
    })
}

fn live_note(name: &str, row: &Row) -> Option<String> {
    let live = row.live?;
    let (tables, bytes) = (human::bytes(row.table_bytes), human::bytes(live.bytes));
    let source = match live.source {
        "scan" => "counted by a scan",
        _ => "known from what was written",
    };
    Some(format!("{name}: {tables} of tables for {bytes} live, {source}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_through_the_page_cache_unasked_is_told() {
        assert_eq!(refused_note("leveling", 0), None);
        let told = refused_note("leveling", 1).unwrap();
        assert!(told.starts_with("leveling: the file system cannot") && told.contains("1 table "));
    }
}

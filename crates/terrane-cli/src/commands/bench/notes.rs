//! Notes below the tables of a benchmark: the meaning of the columns, and caveats.

use std::io::{self, Write};

use terrane_lab::bench::{BenchPlan, DesignRun, WorkloadRow};

use crate::terminal::Paint;
use terrane_lab::output::human;

/// Prints what the columns mean, and caveats about the numbers.
pub(super) fn notes(
    out: &mut impl Write,
    plan: &BenchPlan,
    finished: &[&DesignRun],
    paint: Paint,
) -> io::Result<()> {
    let rows = || finished.iter().flat_map(|one| &one.rows);
    let mut notes = vec![
        "write amp: bytes written to tables per byte the user wrote, settling included".to_owned(),
        "read amp: data blocks read per lookup · space amp: bytes of tables and value files per live \
         byte"
            .to_owned(),
    ];
    let mut sampled: Vec<String> = Vec::new();
    for row in rows().filter(|row| row.operations_per_sample > 1) {
        let note = format!(
            "{}: each latency covers {} operations",
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
            notes.push(format!("{workload} on {}: the writer did {rate} writes/s", row.design));
        }
    }
    for one in finished {
        notes.extend(one.rows.iter().rev().find_map(|row| live_note(&one.name, row)));
        notes.extend(uncompacted_note(plan, one));
        notes.extend(refused(&one.name, one.stats.direct_refused));
    }
    if let Some(one) = plan.designs.iter().find(|candidate| candidate.divided_by > 1) {
        let (name, divided_by) = (&one.name, one.divided_by);
        let others =
            if plan.designs.len() > 1 { ", and those of the other designs likewise" } else { "" };
        notes.push(format!(
            "the sizes of {name} are divided by {divided_by}{others}, so that this amount of data \
             fills several levels; a design that gives a size, such as '{name}; buffer=64MiB', is \
             run as given"
        ));
    }
    notes.iter().try_for_each(|note| writeln!(out, "{}", paint.dim(note)))
}

/// Describes the cache misses, by level.
fn misses_note(row: &WorkloadRow) -> Option<String> {
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

/// Explains a run without compactions.
fn uncompacted_note(plan: &BenchPlan, one: &DesignRun) -> Option<String> {
    if one.stats.flushes == 0 || one.stats.compactions + one.stats.trivial_moves > 0 {
        return None;
    }
    let design = plan.designs.iter().find(|candidate| candidate.name == one.name);
    let is_manual = design.is_some_and(|candidate| candidate.design.strategy.is_manual());
    let why = if is_manual {
        "its trigger compacts nothing until requested"
    } else {
        "no compaction was due; a longer run shows more"
    };
    Some(format!("{}: {why}", one.name))
}

/// Describes tables for which the file system refused direct I/O.
pub(super) fn refused(name: &str, tables: u64) -> Option<String> {
    (tables > 0).then(|| {
        format!(
            "{name}: the file system does not support direct I/O, so {} went through the page cache \
             and the results are not those of direct I/O; choose another file system with --db",
            human::counted(tables, "table")
        )
    })
}

fn live_note(name: &str, row: &WorkloadRow) -> Option<String> {
    let live = row.live?;
    let (tables, bytes) = (human::bytes(row.table_bytes), human::bytes(live.bytes));
    let source = match live.source {
        "scan" => "counted by a scan",
        _ => "computed from the writes",
    };
    Some(format!("{name}: {tables} of tables and value files for {bytes} live, {source}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_direct_io_is_reported() {
        assert_eq!(refused("leveling", 0), None);
        let note = refused("leveling", 1).unwrap();
        assert!(note.starts_with("leveling: the file system does not support direct I/O"));
        assert!(note.contains("1 table "), "{note}");
    }
}

//! Traces as JSON.
//!
//! An event is an array: the time in seconds, the kind, and what the kind says.
//!
//! | kind | then |
//! |---|---|
//! | `start` | the tables |
//! | `full` | the number of immutable memtables |
//! | `flush` | bytes to write, the reason of the merge or `null`, the numbers of its input tables |
//! | `flushed` | the numbers of removed tables, the added tables |
//! | `merge` | its number, the reason, source and target level, the numbers of its input tables, bytes to read, bytes to write |
//! | `share` | the number of a merge, the part that is done, its new share of the bandwidth |
//! | `merged` | the number of a merge, the numbers of removed tables, the added tables |
//! | `move` | the reason, source and target level, the numbers of removed tables, the added tables |
//! | `drop` | the numbers of removed tables |
//! | `admit` | `proceed`, or `delay` or `stop` with the cause, the measured number and the limit |
//! | `block` | the cause, the measured number |
//! | `unblock` | nothing |
//!
//! A table is an array: its number, the number of its run, its level, where its keys begin and end as
//! shares of the key space, its bytes and its entries. Tables are removed before others are added: a
//! table that moves is in both lists.

use serde_json::{Value, json};
use terrane_policy::{Admission, Pressure, TableId};
use terrane_sim::{TableChange, TraceEvent, TraceKind, TracedTable};

/// Returns a number with this many decimals.
fn rounded(number: f64, decimals: f64) -> f64 {
    (number * decimals).round() / decimals
}

fn share(part: f64) -> f64 {
    rounded(part, 1e7)
}

fn table(table: &TracedTable) -> Value {
    let range = (share(table.start), share(table.end));
    json!([table.table.0, table.run.0, table.level, range.0, range.1, table.bytes, table.entries])
}

fn numbers(tables: &[TableId]) -> Vec<u64> {
    tables.iter().map(|table| table.0).collect()
}

/// Returns the numbers of removed tables, and the added tables.
fn changes(changes: &[TableChange]) -> (Vec<u64>, Vec<Value>) {
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    for change in changes {
        match change {
            TableChange::Removed(table) => removed.push(table.0),
            TableChange::Added(one) => added.push(table(one)),
        }
    }
    (removed, added)
}

fn admission(admission: &Admission) -> Value {
    let pressed = |how: &str, pressure: &Pressure, limit: u32| {
        json!(["admit", how, pressure.cause.to_string(), pressure.measured, limit])
    };
    match admission {
        Admission::Proceed => json!(["admit", "proceed"]),
        Admission::Delay(pressure) => pressed("delay", pressure, pressure.threshold),
        Admission::Stop(pressure) => pressed("stop", pressure, pressure.stop_at),
    }
}

fn what(kind: &TraceKind) -> Value {
    match kind {
        TraceKind::Start(tables) => json!(["start", tables.iter().map(table).collect::<Vec<_>>()]),
        TraceKind::MemtableFull(waiting) => json!(["full", waiting]),
        TraceKind::FlushBegan { merge, written_bytes } => {
            let reason = merge.as_ref().map(|merge| &merge.reason);
            let inputs = merge.as_ref().map(|merge| numbers(&merge.inputs)).unwrap_or_default();
            json!(["flush", written_bytes.round(), reason, inputs])
        }
        TraceKind::FlushEnded(tables) => {
            let (removed, added) = changes(tables);
            json!(["flushed", removed, added])
        }
        TraceKind::MergeBegan { job, merge, read_bytes, written_bytes } => {
            let bytes = (read_bytes.round(), written_bytes.round());
            let inputs = numbers(&merge.inputs);
            json!(["merge", job, merge.reason, merge.from, merge.into, inputs, bytes.0, bytes.1])
        }
        TraceKind::MergeShare { job, done, share } => {
            json!(["share", job, rounded(*done, 1e6), rounded(*share, 1e6)])
        }
        TraceKind::MergeEnded { job, changes: tables } => {
            let (removed, added) = changes(tables);
            json!(["merged", job, removed, added])
        }
        TraceKind::Moved { merge, changes: tables } => {
            let (removed, added) = changes(tables);
            json!(["move", merge.reason, merge.from, merge.into, removed, added])
        }
        TraceKind::Dropped(tables) => json!(["drop", changes(tables).0]),
        TraceKind::Admission(decision) => admission(decision),
        TraceKind::Blocked(cause, measured) => json!(["block", cause.to_string(), measured]),
        TraceKind::Unblocked => json!(["unblock"]),
    }
}

/// Returns a trace as arrays.
pub(crate) fn events(trace: &[TraceEvent]) -> Vec<Value> {
    let event = |event: &TraceEvent| {
        let mut event_json = what(&event.what);
        if let Value::Array(parts) = &mut event_json {
            parts.insert(0, json!(rounded(event.at, 1e6)));
        }
        event_json
    };
    trace.iter().map(event).collect()
}

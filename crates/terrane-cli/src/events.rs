//! Formats the events of a database as text and as JSON.

use serde::Serialize;
use terrane::{Event, LoggedEvent};

use crate::time::utc;
use terrane_lab::json::SCHEMA;
use terrane_lab::progress;

/// An event as JSON.
#[derive(Serialize)]
pub(crate) struct JsonEvent {
    schema: u32,
    number: u64,
    at_micros: u64,
    event: &'static str,
    text: String,
}

impl JsonEvent {
    pub(crate) fn of(event: &LoggedEvent) -> Self {
        let LoggedEvent { number, at_micros, event, .. } = event;
        let (number, at_micros) = (*number, *at_micros);
        Self { schema: SCHEMA, number, at_micros, event: name(event), text: event.to_string() }
    }
}

/// Formats an event as a line.
pub(crate) fn sentence(event: &LoggedEvent) -> String {
    format!("{} {}", utc(event.at_micros), event.event)
}

/// Writes an event to standard error, above progress bars.
pub(crate) fn report(event: &LoggedEvent) {
    progress::line(&sentence(event));
}

fn name(event: &Event) -> &'static str {
    match event {
        Event::FlushBegun { .. } => "flush-begun",
        Event::FlushEnded { .. } => "flush-ended",
        Event::JobBegun { .. } => "job-begun",
        Event::JobEnded { .. } => "job-ended",
        Event::TablesDropped { .. } => "tables-dropped",
        Event::TablesIngested { .. } => "tables-ingested",
        Event::DesignChanged { .. } => "design-changed",
        Event::OptionChanged { .. } => "option-changed",
        Event::WritesStalled(_) => "writes-stalled",
        Event::WritesResumed { .. } => "writes-resumed",
        Event::WorkFailed { .. } => "trouble-begun",
        Event::WorkRecovered { .. } => "trouble-ended",
        Event::Failed { .. } => "failed",
        Event::DeletesLate { .. } => "deletes-late",
        Event::DeadValuesLate { .. } => "dead-values-late",
        Event::MemtableChosen { .. } => "memtable-chosen",
        _ => "other",
    }
}

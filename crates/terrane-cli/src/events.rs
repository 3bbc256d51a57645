//! Formats the events of a database as text and as JSON.

use serde::Serialize;
use serde_json::Value;
use terrane::LoggedEvent;
use terrane_control::EventItem;

use crate::time::utc;
use terrane_lab::host::progress;
use terrane_lab::output::json::SCHEMA;

/// An event as JSON: its sentence, and all its fields.
#[derive(Debug, Serialize)]
pub(crate) struct JsonEvent {
    schema: u32,
    text: String,
    #[serde(flatten)]
    details: Value,
}

impl JsonEvent {
    pub(crate) fn of(event: EventItem) -> Self {
        Self { schema: SCHEMA, text: event.text, details: event.details }
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

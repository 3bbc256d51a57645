//! What a load has loaded, for people and programs.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use crate::output;
use terrane_lab::input::import_export::Skipped;
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, write_line};

/// The entries that were loaded.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) entries: u64,
    pub(super) user_bytes: u64,
    /// Entries whose expiry times had passed when the load began.
    pub(super) expired: u64,
}

/// A complete load.
pub(super) struct Report {
    pub(super) counts: Counts,
    pub(super) skipped: Skipped,
    pub(super) time: Duration,
    pub(super) durability: String,
}

#[derive(Serialize)]
struct JsonLoaded {
    schema: u32,
    entries: u64,
    user_bytes: u64,
    seconds: f64,
    durability: String,
    /// Entries that are not visible.
    expired: u64,
    header_line: Option<u64>,
    blank_lines: u64,
    nulls: u64,
    /// Lines and entries before those of --skip-lines and --from-line.
    earlier: u64,
    escaped: u64,
    long_fields: Vec<u64>,
}

impl Report {
    /// Prints the report.
    pub(super) fn print(self, is_json: bool) -> Result<()> {
        if is_json {
            return Ok(write_line(&mut output::stdout(), &self.json())?);
        }
        let Counts { entries, user_bytes, .. } = self.counts;
        let (entries, bytes) = (human::counted(entries, "entry"), human::bytes(user_bytes));
        let (time, durability) = (human::duration(self.time), &self.durability);
        let mut text = format!("loaded {entries}, {bytes}, in {time} · durability {durability}\n");
        for note in self.notes() {
            text.push_str(&note);
            text.push('\n');
        }
        let _ = io::stderr().write_all(text.as_bytes());
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        let Skipped { header_line, blank_lines, nulls, earlier, escaped, long_fields } =
            &self.skipped;
        let mut notes = Vec::new();
        if self.counts.expired > 0 {
            let (noun, verb) = if self.counts.expired == 1 {
                ("entry has", "is")
            } else {
                ("entries have", "are")
            };
            let expired = human::count(self.counts.expired);
            notes.push(format!(
                "warning: {expired} {noun} already expired and {verb} not visible; expiry times are microseconds \
                 since 1970"
            ));
        }
        for line in long_fields {
            let line = human::count(*line);
            notes.push(format!(
                "warning: the field that begins in line {line} has more than 1,000 line breaks; is its quote closed too \
                 late?"
            ));
        }
        let mut skipped = Vec::new();
        skipped.extend(header_line.map(|line| format!("the header in line {line}")));
        let mut add = |count: u64, noun: &str| {
            skipped.extend((count > 0).then(|| human::counted(count, noun)));
        };
        add(*blank_lines, "blank line");
        add(*nulls, "null row");
        add(*earlier, "earlier row");
        if !skipped.is_empty() {
            notes.push(format!("skipped {}", skipped.join(", ")));
        }
        if *escaped > 0 {
            let escaped = human::counted(*escaped, "entry");
            notes.push(format!(
                "replaced backslash escapes in {escaped}; --raw would load them as text"
            ));
        }
        notes
    }

    fn json(self) -> JsonLoaded {
        let Counts { entries, user_bytes, expired } = self.counts;
        let Skipped { header_line, blank_lines, nulls, earlier, escaped, long_fields } =
            self.skipped;
        JsonLoaded {
            schema: SCHEMA,
            entries,
            user_bytes,
            seconds: self.time.as_secs_f64(),
            durability: self.durability,
            expired,
            header_line,
            blank_lines,
            nulls,
            earlier,
            escaped,
            long_fields,
        }
    }
}

//! Answers on standard output, as text and as JSON.

use std::io::{self, BufWriter, Write};
use std::time::Instant;

use serde::Serialize;

use crate::exit;
use crate::output::Stdout;
use crate::terminal::{Paint, columns};
use crate::wrap::wrapped;
use terrane_lab::input::import_export::{Entry, jsonl};
use terrane_lab::input::kv_literal;
use terrane_lab::output::human;
use terrane_lab::output::json::{JsonBytes, SCHEMA, write_line};

/// The output of answers, and its format.
pub(super) struct Answers {
    out: BufWriter<Stdout>,
    is_json: bool,
    is_for_person: bool,
}

#[derive(Serialize)]
struct JsonOk {
    schema: u32,
    ok: bool,
}

#[derive(Serialize)]
struct JsonValue<'a> {
    schema: u32,
    value: Option<JsonBytes<'a>>,
}

#[derive(Serialize)]
struct JsonKey<'a> {
    schema: u32,
    key: JsonBytes<'a>,
}

#[derive(Serialize)]
struct JsonCount {
    schema: u32,
    count: u64,
}

#[derive(Serialize)]
struct JsonEntries {
    schema: u32,
    entries: u64,
}

#[derive(Serialize)]
struct JsonKeyspaces<'a> {
    schema: u32,
    keyspaces: &'a [String],
}

#[derive(Serialize)]
struct JsonHelp<'a> {
    schema: u32,
    help: &'a str,
}

#[derive(Serialize)]
struct JsonOpenMetrics<'a> {
    schema: u32,
    openmetrics: &'a str,
}

#[derive(Serialize)]
struct JsonError<'a> {
    schema: u32,
    error: &'a str,
    line: u64,
}

impl Answers {
    /// Writes answers to `out`.
    pub(super) fn new(out: BufWriter<Stdout>, is_json: bool, is_for_person: bool) -> Self {
        Self { out, is_json, is_for_person }
    }

    pub(super) fn is_for_person(&self) -> bool {
        self.is_for_person
    }

    pub(super) fn is_json(&self) -> bool {
        self.is_json
    }

    /// Flushes the answers so far, before a wait for input.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.write_all(b"\n")
    }

    /// Writes a success.
    pub(super) fn ok(&mut self) -> io::Result<()> {
        if self.is_json {
            return self.json(&JsonOk { schema: SCHEMA, ok: true });
        }
        self.line("ok")
    }

    /// Writes an answer as JSON.
    pub(super) fn json(&mut self, answer: &impl Serialize) -> io::Result<()> {
        write_line(&mut self.out, answer)
    }

    /// Writes a value, or its absence.
    pub(super) fn value(&mut self, value: Option<&[u8]>) -> io::Result<()> {
        if self.is_json {
            return self.json(&JsonValue { schema: SCHEMA, value: value.map(JsonBytes) });
        }
        match value {
            Some(value) => self.line(&kv_literal::print(value)),
            None => self.line("(nil)"),
        }
    }

    /// Writes a number of keys.
    pub(super) fn count(&mut self, count: u64) -> io::Result<()> {
        if self.is_json {
            return self.json(&JsonCount { schema: SCHEMA, count });
        }
        match self.is_for_person {
            true => self.line(&human::count(count)),
            false => self.line(&count.to_string()),
        }
    }

    /// Writes an entry of a scan.
    pub(super) fn entry(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        if self.is_json {
            return jsonl::write(&mut self.out, Entry::new(key, value));
        }
        let gap = if self.is_for_person { "   " } else { "\t" };
        let (key, value) = (kv_literal::print(key), kv_literal::print(value));
        writeln!(self.out, "{key}{gap}{value}")
    }

    /// Writes a key.
    pub(super) fn key(&mut self, key: &[u8]) -> io::Result<()> {
        if self.is_json {
            return self.json(&JsonKey { schema: SCHEMA, key: JsonBytes(key) });
        }
        self.line(&kv_literal::print(key))
    }

    /// Writes the end of a scan.
    pub(super) fn entries(&mut self, entries: u64, begun: Instant) -> io::Result<()> {
        if self.is_json {
            return self.json(&JsonEntries { schema: SCHEMA, entries });
        }
        if self.is_for_person {
            let (count, time) =
                (human::counted(entries, "entry"), human::duration(begun.elapsed()));
            let text = Paint::stdout().dim(&format!("{count} ({time})"));
            self.line(&text)?;
        }
        Ok(())
    }

    /// Writes the names of keyspaces.
    pub(super) fn keyspaces(&mut self, keyspaces: &[String]) -> io::Result<()> {
        if self.is_json {
            return self.json(&JsonKeyspaces { schema: SCHEMA, keyspaces });
        }
        keyspaces.iter().try_for_each(|name| self.line(&kv_literal::print(name.as_bytes())))
    }

    /// Writes text for people.
    pub(super) fn text(&mut self, text: &str) -> io::Result<()> {
        if self.is_json {
            return self.json(&JsonHelp { schema: SCHEMA, help: text });
        }
        match columns() {
            Some(columns) => self.out.write_all(wrapped(text, columns).as_bytes()),
            None => self.out.write_all(text.as_bytes()),
        }
    }

    /// Writes metrics in the OpenMetrics text format; in JSON, as one string.
    pub(super) fn open_metrics(&mut self, text: &str) -> io::Result<()> {
        if self.is_json {
            return self.json(&JsonOpenMetrics { schema: SCHEMA, openmetrics: text });
        }
        self.out.write_all(text.as_bytes())
    }

    /// Writes an error, after all earlier answers.
    pub(super) fn error(&mut self, error: &anyhow::Error, line: u64) -> io::Result<()> {
        if self.is_json {
            let text = exit::sentence(error);
            self.json(&JsonError { schema: SCHEMA, error: &text, line })?;
        }
        self.flush()?;
        if self.is_for_person {
            exit::print_error(error);
        } else {
            exit::print_error(&anyhow::anyhow!("line {line}: {}", exit::sentence(error)));
        }
        Ok(())
    }
}

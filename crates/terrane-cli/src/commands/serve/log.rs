//! The log of the server on standard error, as lines of text or JSON.

use std::fmt::{self, Write as _};
use std::io;
use std::time::SystemTime;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

const HEADING: &str = "Log";

/// The target of the engine's events.
const ENGINE: &str = "terrane";

/// What the log on standard error has, and how.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = HEADING)]
pub(super) struct LogArguments {
    /// The form of the log's lines on standard error
    #[arg(long, value_name = "FORM", default_value = "text")]
    log_format: LogFormat,

    /// The least important lines of the log
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: LogLevel,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogFormat {
    /// A sentence after time and level; in the journal of systemd, after the priority
    Text,
    /// A JSON object with `time`, `level`, `kind`, `message` and other fields
    Json,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

impl LogArguments {
    /// Prints the log from now on.
    pub(super) fn begin(self) {
        let format = match self.log_format {
            // systemd sets this variable if standard error is its journal, which has times of its own.
            LogFormat::Text if std::env::var_os("JOURNAL_STREAM").is_some() => Lines::Journal,
            LogFormat::Text => Lines::Text,
            LogFormat::Json => Lines::Json,
        };
        let level = match self.log_level {
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
        };
        let subscriber = tracing_subscriber::fmt().with_max_level(level).event_format(format);
        // It fails only if this process has a log already, which then goes on.
        let _ = subscriber.with_writer(io::stderr).try_init();
    }
}

/// The form of a line.
#[derive(Debug, Clone, Copy)]
enum Lines {
    Text,
    Journal,
    Json,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        // The engine's own events, in builds with its feature `tracing`; the server passes on those that matter.
        if event.metadata().target() == ENGINE {
            return Ok(());
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let line = self.line(*event.metadata().level(), fields, SystemTime::now());
        writer.write_str(&line)
    }
}

impl Lines {
    /// Returns a line with its end.
    fn line(self, level: Level, fields: Fields, time: SystemTime) -> String {
        let Fields { message, others } = fields;
        let time = humantime::format_rfc3339_micros(time);
        let mut line = match self {
            Self::Json => {
                let mut object = Map::new();
                object.insert("time".into(), time.to_string().into());
                object.insert("level".into(), level.as_str().to_ascii_lowercase().into());
                object.extend(others);
                object.insert("message".into(), message.into());
                return Value::Object(object).to_string() + "\n";
            }
            Self::Text => format!("{time} {level:5} {}", one_line(&message)),
            Self::Journal => format!("<{}>{}", priority(level), one_line(&message)),
        };
        // The kind is for programs.
        for (name, value) in others.iter().filter(|(name, _)| *name != "kind") {
            let text = value.as_str().map_or_else(|| value.to_string(), one_line);
            // Writing to a string does not fail.
            let _ = write!(line, " {name}={text}");
        }
        line + "\n"
    }
}

/// Returns the priority of syslog.
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

/// Escapes line breaks and other control characters, which could forge a line.
fn one_line(text: &str) -> String {
    text.chars().fold(String::new(), |mut line, char| {
        if char.is_control() {
            line.extend(char.escape_default());
        } else {
            line.push(char);
        }
        line
    })
}

/// The fields of an event, and its message.
#[derive(Debug, Default)]
struct Fields {
    message: String,
    others: Map<String, Value>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: Value) {
        if field.name() == "message" {
            self.message = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        } else {
            self.others.insert(field.name().to_owned(), value);
        }
    }
}

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}").into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(message: &str) -> Fields {
        let mut others = Map::new();
        others.insert("kind".into(), "failed".into());
        others.insert("times".into(), 3.into());
        Fields { message: message.into(), others }
    }

    #[test]
    fn lines_have_the_form_that_their_readers_expect() {
        let line =
            |form: Lines| form.line(Level::WARN, fields("disk full"), SystemTime::UNIX_EPOCH);
        assert_eq!(line(Lines::Text), "1970-01-01T00:00:00.000000Z WARN  disk full times=3\n");
        assert_eq!(line(Lines::Journal), "<4>disk full times=3\n");
        let json: Value = serde_json::from_str(&line(Lines::Json)).unwrap();
        assert_eq!(
            json,
            serde_json::json!({"time": "1970-01-01T00:00:00.000000Z", "level": "warn",
                "kind": "failed", "times": 3, "message": "disk full"})
        );
    }

    #[test]
    fn a_message_cannot_forge_a_line() {
        let line =
            Lines::Text.line(Level::INFO, fields("a\n<3>b\u{1b}[2J"), SystemTime::UNIX_EPOCH);
        assert_eq!(line.matches('\n').count(), 1);
        assert!(line.contains("a\\n<3>b\\u{1b}[2J"), "{line}");
    }
}

//! Events of the engine as events of the crate `tracing`, and a span for each job.
//!
//! The target is `terrane`. An event has the fields that all kinds of events share, and its sentence as
//! its message. Failures are errors or warnings; changes and stalls have a higher level than
//! flushes, compactions and ingests, which are normal work.

#[cfg(feature = "tracing")]
use super::Event;
use super::LoggedEvent;

/// The span of a flush, a compaction, or the commit of an ingest.
#[cfg(feature = "tracing")]
pub(crate) type JobSpan = tracing::span::EnteredSpan;

/// Empty without the feature `tracing`.
#[cfg(not(feature = "tracing"))]
pub(crate) struct JobSpan;

/// Enters the span of a job of this kind until the result is dropped.
#[cfg(feature = "tracing")]
pub(crate) fn enter_job(kind: &'static str, keyspace: &str) -> JobSpan {
    tracing::info_span!(target: "terrane", "job", kind, keyspace).entered()
}

/// Does nothing without the feature `tracing`.
#[cfg(not(feature = "tracing"))]
#[inline]
pub(crate) fn enter_job(_kind: &'static str, _keyspace: &str) -> JobSpan {
    JobSpan
}

/// The fields that events share.
#[cfg(feature = "tracing")]
#[derive(Default)]
struct Fields<'a> {
    kind: &'static str,
    keyspace: Option<&'a str>,
    begun: Option<u64>,
    took_micros: Option<u64>,
    read_bytes: Option<u64>,
    written_bytes: Option<u64>,
    error: Option<&'a str>,
}

#[cfg(feature = "tracing")]
impl<'a> Fields<'a> {
    #[rustfmt::skip]
    fn of(event: &'a Event) -> Self {
        let fields = |kind| Self { kind, ..Self::default() };
        let in_keyspace = |kind, keyspace: &'a str| Self { keyspace: Some(keyspace), ..fields(kind) };
        match event {
            Event::FlushBegun { keyspace, .. } => in_keyspace("flush-begun", keyspace),
            Event::FlushEnded {
                begun, keyspace, read_bytes, written_bytes, took_micros, failure, ..
            } => Self {
                begun: *begun,
                took_micros: Some(*took_micros),
                read_bytes: Some(*read_bytes),
                written_bytes: Some(*written_bytes),
                error: failure.as_deref(),
                ..in_keyspace("flush-ended", keyspace)
            },
            Event::JobBegun { keyspace, .. } => in_keyspace("job-begun", keyspace),
            Event::JobEnded {
                begun, keyspace, read_bytes, written_bytes, took_micros, failure, ..
            } => Self {
                begun: *begun,
                took_micros: Some(*took_micros),
                read_bytes: Some(*read_bytes),
                written_bytes: Some(*written_bytes),
                error: failure.as_deref(),
                ..in_keyspace("job-ended", keyspace)
            },
            Event::MemtableChosen { keyspace, .. } => in_keyspace("memtable-chosen", keyspace),
            Event::TablesDropped { keyspace, .. } => in_keyspace("tables-dropped", keyspace),
            Event::TablesIngested { keyspace, written_bytes, took_micros, .. } => Self {
                took_micros: Some(*took_micros),
                written_bytes: Some(*written_bytes),
                ..in_keyspace("tables-ingested", keyspace)
            },
            Event::DesignChanged { keyspace, .. } => in_keyspace("design-changed", keyspace),
            Event::OptionChanged { .. } => fields("option-changed"),
            Event::DirectoryNotSynced { error, .. } => {
                Self { error: Some(error), ..fields("directory-not-synced") }
            }
            Event::LogNotMapped { error, .. } => {
                Self { error: Some(error), ..fields("log-not-mapped") }
            }
            Event::MemoryBudgetTooLarge { .. } => fields("memory-budget-too-large"),
            Event::MemoryShort { .. } => fields("memory-short"),
            Event::MemoryRecovered {} => fields("memory-recovered"),
            Event::CompactionFilterInactive { keyspace, .. } => in_keyspace("compaction-filter-inactive", keyspace),
            Event::WritesStalled(stall) => in_keyspace("writes-stalled", &stall.keyspace),
            Event::WritesResumed { keyspace, lasted_micros, .. } => Self {
                took_micros: Some(*lasted_micros),
                ..in_keyspace("writes-resumed", keyspace)
            },
            Event::WorkFailed { error, .. } => Self { error: Some(error), ..fields("work-failed") },
            Event::WorkRecovered { .. } => fields("work-recovered"),
            Event::Failed { error, .. } => Self { error: Some(error), ..fields("failed") },
            Event::DeletesLate { keyspace, .. } => in_keyspace("deletes-late", keyspace),
            Event::DeadValuesLate { keyspace, .. } => in_keyspace("dead-values-late", keyspace),
        }
    }
}

/// Passes an event on to the subscriber, if there is one.
#[cfg(feature = "tracing")]
pub(super) fn report(logged: &LoggedEvent) {
    let LoggedEvent { number, event, .. } = logged;
    let Fields { kind, keyspace, begun, took_micros, read_bytes, written_bytes, error } =
        Fields::of(event);
    macro_rules! at {
        ($level:ident) => {
            tracing::event!(
                target: "terrane",
                tracing::Level::$level,
                kind,
                number,
                keyspace,
                begun,
                took_micros,
                read_bytes,
                written_bytes,
                error,
                "{event}"
            )
        };
    }
    match event {
        Event::Failed { .. } => at!(ERROR),
        _ if error.is_some() => at!(WARN),
        Event::WritesStalled(_)
        | Event::MemoryBudgetTooLarge { .. }
        | Event::MemoryShort { .. }
        | Event::CompactionFilterInactive { .. }
        | Event::DeletesLate { .. }
        | Event::DeadValuesLate { .. } => at!(WARN),
        Event::FlushBegun { .. }
        | Event::FlushEnded { .. }
        | Event::JobBegun { .. }
        | Event::JobEnded { .. }
        | Event::TablesDropped { .. }
        | Event::TablesIngested { .. } => at!(DEBUG),
        _ => at!(INFO),
    }
}

/// Does nothing without the feature `tracing`.
#[cfg(not(feature = "tracing"))]
#[inline]
pub(super) fn report(_logged: &LoggedEvent) {}

#[cfg(test)]
#[cfg(feature = "tracing")]
mod tests {
    use std::fmt::{Debug, Write};
    use std::sync::{Arc, Mutex};

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Metadata, Subscriber};

    use crate::files::storage::{Fault, FaultStorage, MemoryStorage, Operation};
    use crate::{Background, Durability, Options, WriteOptions};

    /// Records every span and event as a line.
    #[derive(Clone, Default)]
    struct Recorder(Arc<Mutex<Vec<String>>>);

    struct Line(String);

    impl Visit for Line {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            write!(self.0, " {}={value:?}", field.name()).unwrap();
        }
    }

    impl Subscriber for Recorder {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.target() == "terrane"
        }

        fn new_span(&self, span: &Attributes<'_>) -> Id {
            let mut line = Line(format!("span {}", span.metadata().name()));
            span.record(&mut line);
            self.0.lock().unwrap().push(line.0);
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &tracing::Event<'_>) {
            let mut line = Line(event.metadata().level().to_string());
            event.record(&mut line);
            self.0.lock().unwrap().push(line.0);
        }

        fn enter(&self, _: &Id) {
            self.0.lock().unwrap().push("enter".into());
        }

        fn exit(&self, _: &Id) {
            self.0.lock().unwrap().push("exit".into());
        }
    }

    #[test]
    fn jobs_are_spans_and_failures_are_errors() {
        let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
        let options = Options::new().storage(Arc::new(storage.clone()));
        let db = options.background(Background::Inline).open("db").unwrap();
        let recorder = Recorder::default();
        let lines = tracing::subscriber::with_default(recorder.clone(), || {
            db.put("a", "1").unwrap();
            db.flush().unwrap();
            db.put("a", "2").unwrap();
            db.compact_range(..).unwrap();
            db.ingest([("b", "1")]).unwrap();
            storage.set(Some(Fault {
                operation: Some(Operation::Sync),
                path_contains: ".log".into(),
                after: 0,
                is_permanent: true,
                error: std::io::ErrorKind::Other,
            }));
            db.put_with("b", "1", WriteOptions::new().durability(Durability::Sync)).unwrap_err();
            recorder.0.lock().unwrap().clone()
        });
        let at = |wanted: &[&str]| {
            let has_all = |line: &String| wanted.iter().all(|part| line.contains(part));
            lines.iter().position(has_all).unwrap_or_else(|| panic!("{wanted:?} in {lines:#?}"))
        };
        let span = at(&["span job", "kind=\"flush\"", "keyspace=\"default\""]);
        let begun = at(&["DEBUG", "kind=\"flush-begun\"", "message=default: flushing 1 entry"]);
        let ended = at(&["DEBUG", "kind=\"flush-ended\"", "begun=1", "written_bytes="]);
        assert!(span < begun && begun < ended && ended < at(&["exit"]));
        let job = at(&["span job", "kind=\"compaction\""]);
        assert!(job < at(&["DEBUG", "kind=\"job-ended\"", "read_bytes="]));
        let ingest = at(&["span job", "kind=\"ingest\"", "keyspace=\"default\""]);
        assert!(ingest < at(&["DEBUG", "kind=\"tables-ingested\"", "written_bytes="]));
        at(&["ERROR", "kind=\"failed\"", "error=", "message=writes are refused"]);
    }
}

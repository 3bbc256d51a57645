//! Events as sentences.

use std::fmt;
use std::time::Duration;

use terrane_policy::units::short_bytes as human;

use super::{BackgroundWork, Event, FlushReason, PredictedChange, StallEffect, WriteStall};

/// Formats a time in microseconds with three decimals.
fn time(micros: u64) -> String {
    format!("{:.3?}", Duration::from_micros(micros))
}

fn tables(count: u64) -> String {
    if count == 1 { "1 table".into() } else { format!("{count} tables") }
}

fn entries_of(count: u64) -> String {
    if count == 1 { "1 entry".into() } else { format!("{count} entries") }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FlushBegun { keyspace, reason, entries, bytes } => {
                let (entries, bytes) = (entries_of(*entries), human(*bytes));
                write!(f, "{keyspace}: flushing {entries}, {bytes}, because {reason}")
            }
            Self::FlushEnded { keyspace, failure: Some(failure), .. } => {
                write!(f, "{keyspace}: flush failed: {failure}")
            }
            Self::FlushEnded {
                keyspace,
                tables: made,
                written_bytes,
                merged_tables,
                read_bytes,
                new_run_reason,
                took_micros,
                ..
            } => {
                let (made, written) = (tables(*made), human(*written_bytes));
                let took = time(*took_micros);
                write!(f, "{keyspace}: flushed into {made}, {written}, in {took}")?;
                if *merged_tables > 0 {
                    let (merged, read) = (tables(*merged_tables), human(*read_bytes));
                    write!(f, ", merged with {merged} of level 0, {read} read")?;
                }
                let Some(reason) = new_run_reason else { return Ok(()) };
                write!(f, ", a new run because {reason}")
            }
            Self::JobBegun { keyspace, what, why, predicted_bytes } => {
                let predicted = rewritten(*predicted_bytes);
                write!(f, "{keyspace}: compacting {what}, {predicted}, because of {why}")
            }
            Self::JobEnded { .. } => self.job_ended(f),
            Self::MemtableChosen { keyspace, kind, reason } => {
                write!(f, "{keyspace}: switched to memtable '{kind}': {reason}")
            }
            Self::TablesDropped { keyspace, tables: dropped } => {
                let dropped = tables(*dropped);
                write!(f, "{keyspace}: dropped {dropped} without a visible entry")
            }
            Self::TablesIngested { .. } => self.ingested(f),
            Self::DesignChanged { .. } | Self::OptionChanged { .. } => self.changed(f),
            Self::DirectoryNotSynced { .. }
            | Self::LogNotMapped { .. }
            | Self::MemoryBudgetTooLarge { .. } => self.limited(f),
            Self::MemoryShort { .. } | Self::MemoryRecovered {} => self.limited(f),
            Self::CompactionFilterInactive { keyspace, filter, reason } => {
                write!(f, "{keyspace}: compaction filter '{filter}' is not applied: {reason}")
            }
            Self::WritesStalled(stall) => stall.fmt(f),
            Self::WritesResumed { keyspace, cause, lasted_micros } => {
                let lasted = time(*lasted_micros);
                write!(f, "{keyspace}: writes resumed after a stall of {lasted} by {cause}")
            }
            Self::WorkFailed { work, error, .. } => write!(f, "{work} failed, retrying: {error}"),
            Self::WorkRecovered { work } => write!(f, "{work} recovered"),
            Self::Failed { error, .. } => {
                write!(f, "writes are refused until the database is opened again: {error}")
            }
            Self::DeletesLate { keyspace, table, age_micros, threshold_micros } => {
                let what = format_args!("a delete in table {table} is not persistent");
                late(f, keyspace, what, (*age_micros, *threshold_micros))
            }
            Self::DeadValuesLate { keyspace, file, age_micros, threshold_micros } => {
                let what = format_args!("a dead value is in value file {file}");
                late(f, keyspace, what, (*age_micros, *threshold_micros))
            }
        }
    }
}

fn rewritten(bytes: u64) -> String {
    if bytes == 0 {
        "nothing to rewrite".to_owned()
    } else {
        format!("{} to rewrite", human(bytes))
    }
}

fn late(
    f: &mut fmt::Formatter<'_>,
    keyspace: &str,
    what: fmt::Arguments<'_>,
    (age_micros, threshold_micros): (u64, u64),
) -> fmt::Result {
    let (age, threshold) = (time(age_micros), time(threshold_micros));
    write!(f, "{keyspace}: {what} after {age}; limit {threshold}")
}

impl Event {
    fn changed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DesignChanged { keyspace, before, after, forecast } => {
                write!(f, "{keyspace}: changed the design from '{before}' to '{after}'")?;
                forecast.map_or(Ok(()), |forecast| write!(f, "; {forecast}"))
            }
            Self::OptionChanged { option, before, after } => {
                write!(f, "changed {option} from {before} to {after}")
            }
            _ => Ok(()),
        }
    }

    /// What the machine does not offer the database.
    fn limited(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DirectoryNotSynced { path, error } => write!(
                f,
                "{path}: the file system does not sync directories ({error}); a power failure may undo \
                 the creation or removal of files"
            ),
            Self::LogNotMapped { path, error } => write!(
                f,
                "the log in {path} is written with system calls, because it cannot be mapped: {error}"
            ),
            Self::MemoryBudgetTooLarge { budget_bytes, limit_bytes, limit } => write!(
                f,
                "memory_budget is {}, but the process is limited to {} by {limit}; lower the budget or \
                 raise the limit",
                human(*budget_bytes),
                human(*limit_bytes)
            ),
            Self::MemoryShort { cache_bytes, free_bytes, limit_bytes, limit } => write!(
                f,
                "the block cache may take {}, because only {} of {} are free ({limit})",
                human(*cache_bytes),
                human(*free_bytes),
                human(*limit_bytes)
            ),
            Self::MemoryRecovered {} => f.write_str("memory is no longer short"),
            _ => Ok(()),
        }
    }

    fn ingested(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::TablesIngested {
            keyspace,
            entries,
            tables: added,
            value_files,
            written_bytes,
            top_level,
            bottom_level,
            took_micros,
        } = self
        else {
            return Ok(());
        };
        let (entries, added) = (entries_of(*entries), tables(*added));
        write!(f, "{keyspace}: ingested {entries}, {added}")?;
        match value_files {
            0 => {}
            1 => write!(f, " and 1 value file")?,
            files => write!(f, " and {files} value files")?,
        }
        write!(f, ", {}, into ", human(*written_bytes))?;
        if top_level == bottom_level {
            write!(f, "level {top_level}")?;
        } else {
            write!(f, "levels {top_level} to {bottom_level}")?;
        }
        write!(f, ", committed in {}", time(*took_micros))
    }

    fn job_ended(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::JobEnded {
            keyspace,
            what,
            why,
            tables_rewritten,
            tables_moved,
            predicted_bytes,
            read_bytes,
            written_bytes,
            took_micros,
            failure,
            ..
        } = self
        else {
            return Ok(());
        };
        if let Some(failure) = failure {
            return write!(f, "{keyspace}: compacting {what} failed: {failure}");
        }
        write!(f, "{keyspace}: compacted {what}")?;
        if *tables_rewritten > 0 {
            let (read, written) = (human(*read_bytes), human(*written_bytes));
            let (predicted, took) = (human(*predicted_bytes), time(*took_micros));
            write!(f, ", {read} read, {written} written of {predicted} predicted, in {took}")?;
        }
        if *tables_rewritten + *tables_moved == 0 {
            write!(f, ", nothing to do")?;
        }
        if *tables_moved > 0 {
            write!(f, ", {} moved", tables(*tables_moved))?;
        }
        write!(f, ", because of {why}")
    }
}

impl fmt::Display for PredictedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { compactions, bytes_rewritten, runs_before, runs_after } = self;
        if *compactions == 0 {
            return f.write_str("the tree satisfies it already");
        }
        let (s, bytes) = (if *compactions == 1 { "" } else { "s" }, human(*bytes_rewritten));
        write!(f, "{compactions} compaction{s} will rewrite up to {bytes}, ")?;
        write!(f, "and {runs_before} sorted runs become {runs_after}")
    }
}

impl fmt::Display for WriteStall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keyspace, effect, cause, measured, threshold, until, .. } = self;
        write!(
            f,
            "{keyspace}: writes are {effect} by {cause} ({measured}, limit {threshold}) until {until}"
        )
    }
}

impl fmt::Display for StallEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Delayed => "delayed",
            Self::Stopped => "stopped",
        })
    }
}

impl fmt::Display for FlushReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "the memtable is full",
            Self::Memory => "memtables take too much memory",
            Self::LogLength => "the log is too long",
            Self::DeleteAge => "its deletes are due to become persistent",
            Self::MemtableKind => "its kind did not suit the operations",
            Self::Requested => "a caller requested it",
            Self::Recovery => "it was replayed from the log",
            Self::Closing => "the database is closing",
        })
    }
}

impl fmt::Display for BackgroundWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flush => "flush",
            Self::Drop => "table drop",
            Self::Compaction => "compaction",
            Self::Log => "log append",
        })
    }
}

#[cfg(test)]
mod tests {
    use terrane_policy::StallCause;

    use super::*;

    #[test]
    fn events_are_sentences() {
        let keyspace = || "default".to_owned();
        let job = |failure| Event::JobEnded {
            begun: Some(1),
            keyspace: keyspace(),
            what: "L0 r1: 2 into L1 a new run".into(),
            why: "run-count: level 0 holds 3 of 3 runs".into(),
            tables_rewritten: 1,
            tables_moved: 2,
            predicted_bytes: 4096,
            read_bytes: 2048,
            written_bytes: 1024,
            took_micros: 1500,
            failure,
        };
        let stall = WriteStall {
            keyspace: keyspace(),
            effect: StallEffect::Stopped,
            cause: StallCause::Level0Runs,
            measured: 12,
            threshold: 12,
            since_micros: 0,
            until: "level 0 holds fewer than 12 runs".into(),
        };
        let late = Event::DeletesLate {
            keyspace: keyspace(),
            table: 7,
            age_micros: 2_000_000,
            threshold_micros: 1_000_000,
        };
        let dead = Event::DeadValuesLate {
            keyspace: keyspace(),
            file: 8,
            age_micros: 2_000_000,
            threshold_micros: 1_000_000,
        };
        let begun = Event::FlushBegun {
            keyspace: keyspace(),
            reason: FlushReason::Full,
            entries: 10,
            bytes: 999,
        };
        for (event, text) in [
            (begun, "default: flushing 10 entries, 999 B, because the memtable is full"),
            (
                job(None),
                "default: compacted L0 r1: 2 into L1 a new run, 2.00 KiB read, 1.00 KiB written \
                 of 4.00 KiB predicted, in 1.500ms, 2 tables moved, because of run-count: level 0 \
                 holds 3 of 3 runs",
            ),
            (
                job(Some("closed".into())),
                "default: compacting L0 r1: 2 into L1 a new run failed: closed",
            ),
            (
                Event::WritesStalled(stall),
                "default: writes are stopped by level-0-runs (12, limit 12) until level 0 holds \
                 fewer than 12 runs",
            ),
            (late, "default: a delete in table 7 is not persistent after 2.000s; limit 1.000s"),
            (dead, "default: a dead value is in value file 8 after 2.000s; limit 1.000s"),
        ] {
            assert_eq!(event.to_string(), text);
        }
    }

    #[test]
    fn an_ingest_is_a_sentence() {
        let ingested = |entries, value_files, bottom_level| Event::TablesIngested {
            keyspace: "default".into(),
            entries,
            tables: 2,
            value_files,
            written_bytes: 4096,
            top_level: 3,
            bottom_level,
            took_micros: 1500,
        };
        for (event, text) in [
            (
                ingested(100, 0, 3),
                "default: ingested 100 entries, 2 tables, 4.00 KiB, into level 3, committed in \
                 1.500ms",
            ),
            (
                ingested(1, 1, 5),
                "default: ingested 1 entry, 2 tables and 1 value file, 4.00 KiB, into levels 3 to 5, \
                 committed in 1.500ms",
            ),
        ] {
            assert_eq!(event.to_string(), text);
        }
    }

    #[test]
    fn changes_of_options_and_designs_are_sentences() {
        let (option, before, after) = ("durability", "process".into(), "sync".into());
        let changed = Event::OptionChanged { option, before, after };
        assert_eq!(changed.to_string(), "changed durability from process to sync");
        let change = |forecast| Event::DesignChanged {
            keyspace: "default".into(),
            before: "tiering".into(),
            after: "leveling".into(),
            forecast,
        };
        let plain = "default: changed the design from 'tiering' to 'leveling'";
        assert_eq!(change(None).to_string(), plain);
        let mut forecast = PredictedChange {
            compactions: 1,
            bytes_rewritten: 4096,
            runs_before: 3,
            runs_after: 1,
        };
        assert_eq!(
            change(Some(forecast)).to_string(),
            format!(
                "{plain}; 1 compaction will rewrite up to 4.00 KiB, and 3 sorted runs become 1"
            )
        );
        forecast.compactions = 0;
        assert_eq!(
            change(Some(forecast)).to_string(),
            format!("{plain}; the tree satisfies it already")
        );
    }

    #[test]
    fn limits_of_the_machine_are_sentences() {
        let (path, error) = ("/data".to_owned(), "Invalid argument (os error 22)".to_owned());
        let (budget_bytes, limit_bytes, limit) = (2 << 30, 1 << 30, "RLIMIT_AS".into());
        for (event, sentence) in [
            (
                Event::DirectoryNotSynced { path: path.clone(), error: error.clone() },
                "/data: the file system does not sync directories (Invalid argument (os error 22)); a \
                 power failure may undo the creation or removal of files",
            ),
            (
                Event::LogNotMapped { path, error },
                "the log in /data is written with system calls, because it cannot be mapped: Invalid \
                 argument (os error 22)",
            ),
            (
                Event::MemoryBudgetTooLarge { budget_bytes, limit_bytes, limit },
                "memory_budget is 2.00 GiB, but the process is limited to 1.00 GiB by RLIMIT_AS; lower \
                 the budget or raise the limit",
            ),
            (
                Event::MemoryShort {
                    cache_bytes: 1 << 30,
                    free_bytes: 300 << 20,
                    limit_bytes: 16 << 30,
                    limit: "the memory of the machine".into(),
                },
                "the block cache may take 1.00 GiB, because only 300 MiB of 16.0 GiB are free (the \
                 memory of the machine)",
            ),
            (Event::MemoryRecovered {}, "memory is no longer short"),
        ] {
            assert_eq!(event.to_string(), sentence);
        }
    }
}

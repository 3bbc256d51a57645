//! What each directive does.

use std::fmt::Write;
use std::ops::Bound;
use std::time::Duration;

use terrane::{Error, Iter, KeyspaceOptions, Stats, inspect};
use terrane_testkit::datadriven::Case;

use crate::crash;
use crate::draw;
use crate::session::Session;
use crate::write;

/// Carries out a case. Errors are answers.
pub(crate) fn answer(session: &mut Session, case: &Case) -> String {
    let answer = state(session, case)
        .or_else(|| read(session, case))
        .or_else(|| background(session, case))
        .or_else(|| Some(Ok(files(session, case))));
    let text = match answer.unwrap() {
        Ok(text) => text,
        Err(error) => draw::mask(&format!("{:?} error: {error}", error.kind())),
    };
    if text.trim().is_empty() { "ok".into() } else { text }
}

type Answer = Option<Result<String, Error>>;

fn done(result: Result<(), Error>) -> Answer {
    Some(result.map(|()| String::new()))
}

/// Directives that open, close and write.
fn state(session: &mut Session, case: &Case) -> Answer {
    match case.directive.as_str() {
        "open" => Some(session.open(case).map(|()| opened(session))),
        "reopen" => Some(session.reopen().map(|()| opened(session))),
        "close" => done(session.close()),
        "keyspace" => {
            let mut options = KeyspaceOptions::new();
            if let Some(design) = case.argument("design") {
                options = options.design(design.parse().unwrap());
            }
            done(session.db().keyspace(case.argument("name").unwrap(), options).map(drop))
        }
        "drop-keyspace" => {
            done(session.db().drop_keyspace(case.argument("name").unwrap()).map(drop))
        }
        "write" | "batch" => {
            let result = write::write(session, case, case.directive == "batch");
            let events = draw::event_counts(session);
            Some(result.map(|text| text + &events))
        }
        "sync" => done(session.db().sync()),
        "snapshot" => {
            let snapshot = session.db().snapshot();
            let seq = snapshot.sequence_number();
            session.snapshots.insert(case.argument("name").unwrap().into(), snapshot);
            Some(Ok(format!("seq {seq}")))
        }
        "release" => {
            session.snapshots.remove(case.argument("name").unwrap()).unwrap();
            done(Ok(()))
        }
        "advance" => {
            let seconds = case.argument("seconds").unwrap().parse().unwrap();
            session.clock.advance(Duration::from_secs(seconds));
            done(Ok(()))
        }
        "checkpoint" => done(session.db().checkpoint(case.argument("dir").unwrap())),
        _ => None,
    }
}

fn opened(session: &Session) -> String {
    let stats = session.db().stats();
    let mut text = format!("replayed {} writes", stats.replayed_writes);
    if stats.dropped_log_records > 0 {
        write!(text, ", dropped {} records", stats.dropped_log_records).unwrap();
    }
    text
}

/// Directives that read.
fn read(session: &mut Session, case: &Case) -> Answer {
    Some(match case.directive.as_str() {
        "get" => get(session, case),
        "scan" => scan(session, case).and_then(|iter| {
            let pair = |entry: Result<(terrane::Key, terrane::Value), Error>| {
                entry.map(|(key, value)| format!("{}={}", draw::text(&key), draw::value(&value)))
            };
            let pairs = if case.argument("reverse").is_some() {
                iter.rev().map(pair).collect::<Result<Vec<_>, Error>>()?
            } else {
                iter.map(pair).collect::<Result<Vec<_>, Error>>()?
            };
            Ok(if pairs.is_empty() { "nothing".into() } else { pairs.join(" ") })
        }),
        "count" => scan(session, case).and_then(|iter| {
            let keys = iter.collect::<Result<Vec<_>, Error>>()?;
            Ok(draw::counted(keys.len() as u64, "entry"))
        }),
        "tree" => {
            let tree = session.keyspace(case.argument("in")).tree();
            Ok(draw::tree(&tree, case.argument("brief").is_some()))
        }
        "stats" => Ok(stats(&session.db().stats(), case)),
        "events" => Ok(draw::new_events(session, true)),
        _ => return None,
    })
}

fn get(session: &Session, case: &Case) -> Result<String, Error> {
    let mut out = String::new();
    for line in case.input.lines() {
        let (keyspace, key) = write::place(session, line);
        let value = match session.snapshot(case) {
            Some(snapshot) => snapshot.get_in(&keyspace, &key)?,
            None => keyspace.get(&key)?,
        };
        let value = value.map_or("nothing".into(), |value| draw::value(&value));
        writeln!(out, "{line}: {value}").unwrap();
    }
    Ok(out)
}

fn scan(session: &Session, case: &Case) -> Result<Iter, Error> {
    let keyspace = session.keyspace(case.argument("in"));
    let from = case.argument("from").map_or(Bound::Unbounded, Bound::Included);
    let to = case.argument("to").map_or(Bound::Unbounded, Bound::Excluded);
    match session.snapshot(case) {
        Some(snapshot) => snapshot.range_in(&keyspace, (from, to)),
        None => keyspace.range((from, to)),
    }
}

/// Directives that do background work, and those that change the design.
fn background(session: &mut Session, case: &Case) -> Answer {
    let range = || {
        let from = case.argument("from").map_or(Bound::Unbounded, Bound::Included);
        let to = case.argument("to").map_or(Bound::Unbounded, Bound::Excluded);
        (from, to)
    };
    let keyspace = || session.keyspace(case.argument("in"));
    let result = match case.directive.as_str() {
        "flush" if case.argument("in").is_some() => keyspace().flush(),
        "flush" => session.db().flush(),
        "settle" => session.db().wait_for_compactions(),
        "compact" => keyspace().compact_range(range()),
        "job" => session.db().run_background_job().map(drop),
        "design" => keyspace().set_design(case.argument("to").unwrap().parse().unwrap()),
        _ => return None,
    };
    let mut text = draw::new_events(session, false);
    if let Err(error) = result {
        writeln!(text, "{:?} error: {}", error.kind(), draw::mask(&error.to_string())).unwrap();
    }
    Some(Ok(text))
}

/// Directives about files, crashes and faults.
fn files(session: &mut Session, case: &Case) -> String {
    match case.directive.as_str() {
        "manifest" => {
            let edits = draw::manifest(session);
            if case.argument("skip").is_some() { String::new() } else { edits }
        }
        "log" => draw::log(session, case.argument("brief").is_some()),
        "files" => draw::files(session),
        "verify" => {
            let dir = session.on_disk();
            let report = inspect::verify(dir.path(), &mut |_| {}).unwrap();
            let mut text = format!(
                "{} tables, {} entries, {} writes in the log\n",
                report.tables, report.entries, report.log_writes
            );
            for problem in report.problems {
                writeln!(text, "{}", draw::mask(&problem.what)).unwrap();
            }
            text
        }
        "record" => {
            session.memory.track_crash_points();
            String::new()
        }
        "points" => crash::points(session),
        "crash" => {
            crash::crash(session, case);
            String::new()
        }
        "fault" => crash::fault(session, case),
        "disk" => {
            crash::disk(session, case);
            String::new()
        }
        "flip" => {
            crash::flip(session, case);
            String::new()
        }
        other => panic!("line {}: unknown directive {other}", case.line),
    }
}

/// Returns the counters that the case names. Their names are those of the fields.
fn stats(stats: &Stats, case: &Case) -> String {
    let all = [
        ("writes", stats.writes),
        ("get_blocks", stats.get_blocks),
        ("filter_negatives", stats.filter_negatives),
        ("flushes", stats.flushes),
        ("flushes_merged", stats.flushes_merged),
        ("flushes_apart", stats.flushes_apart),
        ("compactions", stats.compactions),
        ("move_compactions", stats.move_compactions),
        ("trivial_moves", stats.trivial_moves),
        ("compaction_bytes_read", stats.compaction_bytes_read),
        ("compaction_bytes_written", stats.compaction_bytes_written),
        ("tables_dropped", stats.tables_dropped),
        ("log_syncs", stats.log_syncs),
        ("table_entries", stats.table_entries),
        ("table_tombstones", stats.table_tombstones),
        ("table_range_tombstones", stats.table_range_tombstones),
        ("tables", stats.tables),
        ("sorted_runs", stats.sorted_runs),
        ("levels", stats.levels),
        ("snapshots", stats.snapshots as u64),
        ("membuffer_writes", stats.membuffer.writes),
        ("updates_in_place", stats.membuffer.updates_in_place),
        ("drained", stats.membuffer.drained),
        ("scan_restarts", stats.membuffer.scan_restarts),
        ("gets_retried", stats.membuffer.gets_retried),
    ];
    let mut out = String::new();
    for (name, _) in &case.arguments {
        let (name, value) = all.iter().find(|(known, _)| known == name).unwrap();
        writeln!(out, "{name}: {value}").unwrap();
    }
    if let Some(error) = &stats.error {
        writeln!(out, "error: {}", draw::mask(&error.to_string())).unwrap();
    }
    out
}

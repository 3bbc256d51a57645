//! Trees, events, logs and manifests as text.

use std::fmt::Write;

use terrane::{Event, TreeView, inspect};
use terrane_policy::Admission;
use terrane_policy::shape::{Run, TableInfo};

use crate::session::Session;

/// Values longer than this are cut.
const VALUE_CHARACTERS: usize = 12;

pub(crate) fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

pub(crate) fn value(bytes: &[u8]) -> String {
    let whole = text(bytes);
    if whole.len() <= VALUE_CHARACTERS {
        return whole;
    }
    let start = whole.trim_end_matches('x');
    format!("{start}x({} bytes)", bytes.len())
}

/// Masks the words that differ from run to run: durations, and the random numbers in names.
pub(crate) fn mask(line: &str) -> String {
    let words = line.split(' ').map(|word| {
        let bare = word.trim_end_matches([',', ';', ':']);
        let number = bare.trim_end_matches("ms").trim_end_matches("µs").trim_end_matches("ns");
        let number = number.trim_end_matches('s');
        let is_time = number != bare && number.parse::<f64>().is_ok() && number.contains('.');
        if is_time { word.replacen(bare, "TIME", 1) } else { file_names(word) }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// `00000001-0123456789abcdef.sst` without the number of its writer.
fn file_names(word: &str) -> String {
    let Some(end) = word.find(".sst") else { return word.to_owned() };
    let Some(dash) = word[..end].rfind('-') else { return word.to_owned() };
    format!("{}{}", &word[..dash], &word[end..])
}

pub(crate) fn counted(count: u64, what: &str) -> String {
    match (count, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        _ => format!("{count} {what}s"),
    }
}

fn table(table: &TableInfo) -> String {
    let mut text = format!("#{} {} {}", table.id, table.range, counted(table.entries, "entry"));
    if table.tombstones > 0 {
        write!(text, ", {}", counted(table.tombstones, "tombstone")).unwrap();
    }
    if table.range_tombstones > 0 {
        write!(text, ", {}", counted(table.range_tombstones, "range tombstone")).unwrap();
    }
    write!(text, ", seq {}-{}", table.smallest_seq, table.largest_seq).unwrap();
    text
}

fn brief(run: &Run) -> String {
    let entries = run.tables.iter().map(|table| table.entries).sum();
    let tables = counted(run.tables.len() as u64, "table");
    format!("{tables} {}, {}", run.range().unwrap(), counted(entries, "entry"))
}

pub(crate) fn tree(tree: &TreeView, is_brief: bool) -> String {
    let mut out = format!("memtable: {}", counted(tree.memtable_entries, "entry"));
    if tree.immutable_memtables > 0 {
        write!(out, ", {} immutable", tree.immutable_memtables).unwrap();
    }
    out.push('\n');
    for (index, level) in tree.shape.levels.iter().enumerate() {
        for run in &level.runs {
            write!(out, "L{index} r{}:", run.id).unwrap();
            match &run.tables[..] {
                _ if is_brief => writeln!(out, " {}", brief(run)).unwrap(),
                [one] => writeln!(out, " {}", table(one)).unwrap(),
                tables => {
                    out.push('\n');
                    tables.iter().for_each(|one| writeln!(out, "  {}", table(one)).unwrap());
                }
            }
        }
    }
    match tree.admission {
        Admission::Proceed => {}
        Admission::Delay(pressure) => writeln!(out, "writers are delayed: {pressure}").unwrap(),
        Admission::Stop(pressure) => writeln!(out, "writers are stopped: {pressure}").unwrap(),
    }
    out
}

/// Returns true if an event marks the start of a job, which has another event at its end, or
/// repeats the input of a case.
fn is_short_of_news(event: &Event) -> bool {
    matches!(event, Event::FlushBegun { .. } | Event::JobBegun { .. } | Event::DesignChanged { .. })
}

/// Returns the events that no answer has shown. Leaves out those that begin a job, unless
/// `is_whole` is set.
pub(crate) fn new_events(session: &mut Session, is_whole: bool) -> String {
    let mut out = String::new();
    for logged in take_events(session) {
        if is_whole || !is_short_of_news(&logged) {
            let text = mask(&logged.to_string());
            writeln!(out, "{}", text.strip_prefix("default: ").unwrap_or(&text)).unwrap();
        }
    }
    if out.is_empty() { "no events".into() } else { out }
}

fn take_events(session: &mut Session) -> Vec<Event> {
    let events = session.db().events().into_iter();
    let new: Vec<_> = events.filter(|logged| logged.number > session.shown_event).collect();
    session.shown_event = new.last().map_or(session.shown_event, |logged| logged.number);
    new.into_iter().map(|logged| logged.event).collect()
}

/// Returns how many events of each kind no answer has shown.
pub(crate) fn event_counts(session: &mut Session) -> String {
    let events = take_events(session);
    let count = |is: fn(&Event) -> bool| events.iter().filter(|event| is(event)).count() as u64;
    let counts = [
        ("flush", count(|event| matches!(event, Event::FlushEnded { .. }))),
        ("compaction", count(|event| matches!(event, Event::JobEnded { .. }))),
        ("stall", count(|event| matches!(event, Event::WritesStalled(_)))),
    ];
    let some = counts.iter().filter(|(_, count)| *count > 0);
    some.map(|(name, count)| format!(", {name} events: {count}")).collect()
}

/// The line of a keyspace with the first word of its design only.
fn short_design(change: &str) -> &str {
    let design = if change.starts_with("keyspace ") { change.find("': ") } else { None };
    let end = design.and_then(|at| change[at + 3..].find(' ').map(|len| at + 3 + len));
    &change[..end.unwrap_or(change.len())]
}

/// Returns the edits of the manifest that no answer has shown, without options and random numbers.
pub(crate) fn manifest(session: &mut Session) -> String {
    let dir = session.on_disk();
    let mut out = String::new();
    for edit in inspect::manifest(dir.path()).unwrap() {
        if edit.version <= session.shown_edit {
            continue;
        }
        session.shown_edit = edit.version;
        writeln!(out, "edit {} of opening {}", edit.version, edit.epoch).unwrap();
        for change in edit.changes {
            let shown = ["keyspace ", "next ", "last ", "required ", "drop "];
            if shown.iter().any(|start| change.starts_with(start)) {
                writeln!(out, "  {}", mask(short_design(&change))).unwrap();
            }
        }
    }
    if out.is_empty() { "no edits".into() } else { out }
}

pub(crate) fn log(session: &Session, is_brief: bool) -> String {
    let dir = session.on_disk();
    let report = inspect::log(dir.path()).unwrap();
    let mut out = String::new();
    for segment in &report.segments {
        let end = if segment.ends_in_garbage { ", then garbage" } else { "" };
        let records = counted(segment.records.len() as u64, "record");
        writeln!(out, "segment {} after {}: {records}{end}", segment.segment, segment.previous)
            .unwrap();
        for record in segment.records.iter().filter(|_| !is_brief) {
            let operations = record.operations.iter().map(|operation| {
                let to = operation.end.as_deref().map(|end| format!("..{}", text(end)));
                let keyspace = match operation.keyspace {
                    0 => String::new(),
                    number => format!("{number}/"),
                };
                let key = text(&operation.key);
                format!("{} {keyspace}{key}{}", operation.kind, to.unwrap_or_default())
            });
            let operations = operations.collect::<Vec<_>>().join(", ");
            let line = match record.kind {
                "batch" => format!("seq {}: {operations}", record.sequence_number),
                kind => kind.to_owned(),
            };
            writeln!(out, "  {line}").unwrap();
        }
    }
    for path in &report.unreadable {
        writeln!(out, "{} is not a segment", path.file_name().unwrap().display()).unwrap();
    }
    out
}

pub(crate) fn files(session: &Session) -> String {
    let mut counts = std::collections::BTreeMap::<&str, u64>::new();
    let names = session.names();
    for name in &names {
        let kind = match name.rsplit_once('.') {
            Some((_, extension)) => extension,
            None => name.split('-').next().unwrap(),
        };
        *counts.entry(kind).or_default() += 1;
    }
    counts.iter().map(|(kind, count)| format!("{kind}: {count}\n")).collect()
}

//! A sample as lines of text that fit the terminal.

use std::path::Path;
use std::time::Duration;

use terrane_control::sample::{Job, Latency, Level, Sample, Tree};

use crate::database::Database;
use crate::terminal::Paint;
use crate::time::utc;
use terrane::{JobState, JobType};
use terrane_lab::output::human::{self, number};

/// The columns of a page in a file or a pipe.
pub(super) const COLUMNS: usize = 100;

/// The columns of the names at the left.
const LABEL: usize = 14;

/// The most jobs and trees to show; the others are counted.
const JOBS_SHOWN: usize = 6;
const TREES_SHOWN: usize = 8;

/// The content of the first line.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) title: String,
}

impl Origin {
    pub(super) fn of(dir: &Path, database: &Database) -> Self {
        let dir = dir.display();
        let title = match database {
            Database::Open(_) => format!("{dir} · files"),
            Database::Served(client) => {
                let info = client.info();
                format!("{dir} · process {} ({})", info.pid, info.program)
            }
        };
        Self { title }
    }
}

/// Lines of bounded width.
struct Page {
    lines: Vec<String>,
    columns: usize,
    paint: Paint,
}

impl Page {
    /// Adds a line with a name at the left.
    fn line(&mut self, label: &str, text: &str) {
        let text = cut(text, self.columns.saturating_sub(LABEL + 1));
        let label = self.paint.bold(&format!("{label:<LABEL$}"));
        self.lines.push(format!("{label} {text}").trim_end().to_owned());
    }

    /// Adds a line that continues the one before.
    fn more(&mut self, text: &str) {
        let text = cut(text, self.columns.saturating_sub(LABEL + 1));
        self.lines.push(format!("{:LABEL$} {text}", ""));
    }

    /// Adds a line that marks a problem.
    fn alarm(&mut self, label: &str, text: &str) {
        let text = cut(text, self.columns.saturating_sub(LABEL + 1));
        let (label, text) = (format!("{label:<LABEL$}"), self.paint.red(&text));
        self.lines.push(format!("{} {text}", self.paint.bold(&label)));
    }
}

/// Cuts a string to at most `columns` columns; `…` marks the cut.
fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}

/// Formats a sample.
pub(super) fn lines(sample: &Sample, origin: &Origin, columns: usize, paint: Paint) -> Vec<String> {
    let mut page = Page { lines: Vec::new(), columns, paint };
    head(&mut page, sample, origin);
    operations(&mut page, sample);
    latencies(&mut page, &sample.latencies);
    stalls(&mut page, sample);
    jobs(&mut page, &sample.jobs);
    memory(&mut page, sample);
    let shown = sample.trees.iter().take(TREES_SHOWN);
    shown.for_each(|one| tree(&mut page, one));
    if let Some(left @ 1..) = sample.trees.len().checked_sub(TREES_SHOWN) {
        page.more(&format!("and {}", human::counted(left as u64, "keyspace")));
    }
    page.lines
}

fn head(page: &mut Page, sample: &Sample, origin: &Origin) {
    let time = utc(sample.at_micros);
    let time = time.get(11..19).unwrap_or(&time).to_owned();
    let interval = human::duration(Duration::from_micros(sample.interval_micros));
    let right = format!("{interval} to {time} UTC");
    let room = page.columns.saturating_sub(right.chars().count() + 2);
    let title = cut(&origin.title, room);
    let gap = " ".repeat(room.saturating_sub(title.chars().count()) + 2);
    page.lines.push(format!("{}{gap}{right}", page.paint.bold(&title)));
    match (&sample.error, sample.health.as_str()) {
        (Some(error), health) => page.alarm(health, error),
        (None, "ok") => {}
        (None, health) => page.line("health", health),
    }
}

fn operations(page: &mut Page, sample: &Sample) {
    let rates = &sample.per_second;
    let mut text = format!(
        "{} writes, {} gets, {} scans",
        per_second(rates.writes),
        per_second(rates.gets),
        per_second(rates.scans)
    );
    if rates.scan_entries > 0.0 {
        text += &format!(" of {} entries", per_second(rates.scan_entries));
    }
    page.line("operations/s", &text);
    let io = &sample.io;
    page.line(
        "I/O per second",
        &format!(
            "user writes {}, log {}, flushes {}, reads {}",
            bytes(rates.written_bytes),
            bytes(io.log_written),
            bytes(io.flush_written),
            bytes(io.table_read)
        ),
    );
    let (read, written) = (bytes(io.compaction_read), bytes(io.compaction_written));
    page.more(&format!("compactions {read} read, {written} written"));
}

fn latencies(page: &mut Page, latencies: &[Latency]) {
    if latencies.is_empty() {
        return;
    }
    let cells = |cells: [&str; 5]| {
        let [first, rest @ ..] = cells;
        rest.iter().fold(format!("{first:>9}"), |line, cell| format!("{line} {cell:>9}"))
    };
    page.line("latency", &cells(["p50", "p99", "p99.9", "max", "measured"]));
    for latency in latencies {
        let time = |micros: f64| human::duration(Duration::from_secs_f64(micros.max(0.0) / 1e6));
        let Latency { p50_micros, p99_micros, p999_micros, max_micros, .. } = *latency;
        let [p50, p99, p999, max] = [p50_micros, p99_micros, p999_micros, max_micros].map(time);
        let label = format!("  {}", latency.name);
        page.line(&label, &cells([&p50, &p99, &p999, &max, &human::count(latency.count)]));
    }
}

fn stalls(page: &mut Page, sample: &Sample) {
    if sample.stalls.is_empty() && sample.stalled_share <= 0.0 {
        page.line("stalls", "none");
        return;
    }
    let lost = format!("writers lost {} s a second", number(sample.stalled_share));
    if sample.stalls.is_empty() {
        page.line("stalls", &format!("none now; {lost}"));
    }
    for (place, stall) in sample.stalls.iter().enumerate() {
        let effect = if stall.stops { "stopped" } else { "delayed" };
        let since = human::duration(Duration::from_micros(stall.micros));
        let keyspace = &stall.keyspace;
        page.alarm(
            if place == 0 { "stalls" } else { "" },
            &format!("{keyspace}: {effect} for {since}, by {}", stall.cause),
        );
        let (measured, delay_at, stop_at) = (stall.measured, stall.delay_at, stall.stop_at);
        page.more(&format!("{measured} now, delayed at {delay_at}, stopped at {stop_at}"));
        page.more(&format!("until {}", stall.until));
    }
    if !sample.stalls.is_empty() {
        page.more(&lost);
    }
}

fn jobs(page: &mut Page, jobs: &[Job]) {
    if jobs.is_empty() {
        page.line("jobs", "none");
    }
    for (place, job) in jobs.iter().take(JOBS_SHOWN).enumerate() {
        let view = &job.view;
        let state = match view.state {
            JobState::Running => "running",
            JobState::Paused => "paused",
            JobState::Queued => "queued",
            _ => "?",
        };
        let kind = if view.job == JobType::Flush { "flush" } else { "compaction" };
        let keyspace = &view.keyspace;
        let label = if place == 0 { "jobs" } else { "" };
        page.line(label, &format!("{state:<8}{kind} of {keyspace}: {}", view.what));
        page.more(&format!("{:<8}{}", progress(job), pace(job)));
        page.more(&format!("{:<8}{}", "", reason(job)));
    }
    if let Some(left @ 1..) = jobs.len().checked_sub(JOBS_SHOWN) {
        page.more(&format!("and {}", human::counted(left as u64, "job")));
    }
}

/// Formats the finished share of a job.
fn progress(job: &Job) -> String {
    let view = &job.view;
    match view.remaining_bytes {
        Some(left) if view.total_bytes > 0 => {
            let done = view.total_bytes.saturating_sub(left);
            format!("{:.0}%", done as f64 * 100.0 / view.total_bytes as f64)
        }
        _ => String::new(),
    }
}

/// Formats the size, the speed and the remaining time of a job.
fn pace(job: &Job) -> String {
    let mut text = human::bytes(job.view.total_bytes);
    if let Some(speed) = job.bytes_per_second {
        text += &format!(" at {}/s", bytes(speed));
    }
    if let Some(seconds) = job.seconds_left {
        text += &format!(", {} left", human::seconds(seconds));
    }
    text
}

/// Formats the reason for a job.
fn reason(job: &Job) -> String {
    let because = if job.view.job == JobType::Flush { "because" } else { "because of" };
    format!("{because} {}", job.view.why)
}

fn memory(page: &mut Page, sample: &Sample) {
    let memory = &sample.memory;
    let used = memory.memtables + memory.cache + memory.pinned + memory.open_tables + memory.jobs;
    let (used, budget) = (human::bytes(used), human::bytes(memory.budget));
    let (memtables, cache) = (human::bytes(memory.memtables), human::bytes(memory.cache));
    page.line("memory", &format!("{used} of {budget}: memtables {memtables}, cache {cache}"));
    page.more(&format!(
        "pinned {}, open tables {}, jobs {}",
        human::bytes(memory.pinned),
        human::bytes(memory.open_tables),
        human::bytes(memory.jobs)
    ));
    let hits = sample.cache_hits.map_or("-".to_owned(), |hits| format!("{:.1}%", hits * 100.0));
    page.line(
        "since opening",
        &format!(
            "write amplification {}; cache hits now {hits}; {}",
            sample.write_amplification.map_or("-".to_owned(), number),
            human::counted(sample.snapshots, "snapshot")
        ),
    );
}

fn tree(page: &mut Page, tree: &Tree) {
    let (used, full) = (human::bytes(tree.memtable_bytes), human::bytes(tree.memtable_capacity));
    let mut memtables = format!("memtable {used} of {full}");
    if tree.immutable_memtables > 0 {
        memtables += &format!(", {} immutable", tree.immutable_memtables);
    }
    page.line("tree", &format!("{}: {memtables}", tree.keyspace));
    for (number, level) in tree.levels.iter().enumerate().filter(|(_, level)| level.tables > 0) {
        let Level { runs, tables, bytes, .. } = level;
        let mut text = format!(
            "{:>9} {:>12} {:>12}",
            human::bytes(*bytes),
            human::counted(*runs, "run"),
            human::counted(*tables, "table")
        );
        if let Some(capacity @ 1..) = level.capacity {
            let percent = *bytes as f64 * 100.0 / capacity as f64;
            text += &format!("   {percent:.0}% of {}", human::bytes(capacity));
        }
        page.line(&format!("  level {number}"), &text);
    }
}

fn bytes(per_second: f64) -> String {
    human::bytes(per_second.max(0.0) as u64)
}

/// Formats a number of operations per second.
fn per_second(rate: f64) -> String {
    if rate == 0.0 { "0".to_owned() } else { number(rate) }
}

#[cfg(test)]
mod tests;

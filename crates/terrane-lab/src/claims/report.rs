//! Claims, tables, and their text.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::setting::{ENTRY_BYTES, Mode, Setting};
use crate::human;

/// What the paper says, and what came out.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    /// Where the paper says it.
    pub(super) figure: &'static str,
    pub(super) says: &'static str,
    /// The memtables that it was measured on, where a paper has two kinds.
    pub(super) mode: Option<Mode>,
    /// What came out here.
    pub(super) measured: String,
    pub(super) holds: bool,
    /// Why it does not hold, where that is known; with figures, where they tell.
    pub(super) why: Cow<'static, str>,
}

/// A table of figures.
#[derive(Debug, Clone)]
pub(super) struct Figures {
    pub(super) title: String,
    pub(super) headers: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Claim {
    /// A claim, and why it may not hold.
    pub(super) fn new(
        figure: &'static str,
        says: &'static str,
        mode: Mode,
        (measured, holds): (String, bool),
        why: impl Into<Cow<'static, str>>,
    ) -> Self {
        let why = if holds { Cow::Borrowed("") } else { why.into() };
        Self { figure, says, mode: Some(mode), measured, holds, why }
    }
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) claims: Vec<Claim>,
    pub(super) figures: Vec<Figures>,
}

/// A ratio as people read it.
pub(super) fn times(ratio: f64) -> String {
    format!("{}×", human::number(ratio))
}

/// Nanoseconds as people read them.
pub(super) fn nanos(nanos: f64) -> String {
    match nanos {
        nanos if nanos < 1e3 => format!("{nanos:.0} ns"),
        nanos if nanos < 1e6 => format!("{:.1} µs", nanos / 1e3),
        nanos => format!("{:.1} ms", nanos / 1e6),
    }
}

impl Report {
    pub(super) fn claim(&mut self, claim: Claim) {
        self.claims.push(claim);
    }

    pub(super) fn table(
        &mut self,
        title: impl Into<String>,
        headers: &[&str],
        rows: Vec<Vec<String>>,
    ) {
        let headers = headers.iter().map(|&header| header.to_owned()).collect();
        self.figures.push(Figures { title: title.into(), headers, rows });
    }

    /// The document.
    pub(super) fn document(&self, setting: &Setting, machine: &str, guide: &str) -> String {
        let mut text = String::new();
        let (entries, count) = (setting.load.len(), setting.entries_footprint());
        let _ = write!(
            text,
            "# Memtables\n\n\
             Which structure takes the writes of a tree is a word of its design:\n\
             `--design 'leveling; memtable=hash-skiplist(prefix=6,buckets=100000)'`. This page \
             measures them, asks\nwhether what the paper *Anatomy of the LSM Memory Buffer* \
             (DBTest 2024) says holds here, and answers\nits questions. It is written by\n\n\
             ```sh\nterrane bench claims memtables --output docs/memtables.md\n```\n\n\
             on this machine: {machine}. Scale {}: {entries} entries of {ENTRY_BYTES} bytes, \
             {count} for memory,\n{} for flushes; keys are numbers of 32 bits in decimal, seed {}, \
             best of {} rounds.\n\n\
             *Published* is the way of the paper's program: a vector is copied and sorted at every \
             query, hashed\nmemtables are copied and sorted for every range that leaves a prefix, \
             their skip-lists have four\nlevels, linked lists stay linked lists. *Ours* keeps what \
             is sorted and sorts what came since. The\nskip-list is the same in both.\n\n\
             {guide}\n{}",
            setting.scale,
            setting.entries_flushed(),
            setting.seed,
            setting.rounds,
            self.results(),
        );
        text
    }

    /// The claims and the figures, as the rest of a document.
    pub(super) fn results(&self) -> String {
        let has_modes = self.claims.iter().any(|claim| claim.mode.is_some());
        let mut text = String::from(if has_modes {
            "## Claims\n\n| figure | the paper says | mode | here | holds |\n|---|---|---|---|---|\n"
        } else {
            "## Claims\n\n| number | the paper says | here | holds |\n|---|---|---|---|\n"
        });
        for claim in &self.claims {
            let Claim { figure, says, mode, measured, holds, why } = claim;
            let holds = if *holds { "yes" } else { "**no**" };
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            let mode = mode.map_or(String::new(), |mode| format!("{} | ", mode.name()));
            let _ = writeln!(text, "| {figure} | {says} | {mode}{measured} | {holds}{why} |");
        }
        text.push_str("\n## Figures\n");
        for figures in &self.figures {
            let _ =
                write!(text, "\n### {}\n\n| {} |\n|", figures.title, figures.headers.join(" | "));
            for (index, _) in figures.headers.iter().enumerate() {
                text.push_str(if index == 0 { "---|" } else { "---:|" });
            }
            text.push('\n');
            for row in &figures.rows {
                let _ = writeln!(text, "| {} |", row.join(" | "));
            }
        }
        text
    }
}

/// A reason that is one of our memtables alone.
pub(super) fn if_ours(mode: Mode, why: &'static str) -> &'static str {
    if mode == Mode::Ours { why } else { "" }
}

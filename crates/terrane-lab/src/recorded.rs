//! Decisions of other systems, compared with those of the designs that stand for them.
//!
//! [`Replayed`] is one recording with the result of [`terrane_policy::recorded::replay`]; [`page`]
//! returns the document `docs/recorded.md`, which covers all recordings.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use terrane_policy::recorded::{Decision, Difference, Event, Trace, replay};
use terrane_policy::{Design, Granularity};

use crate::host::Environment;
use crate::input::spec;
use crate::output::json::SCHEMA;
use crate::output::markdown::table;

/// A recording, and what the design would have done.
#[derive(Debug, Clone)]
pub struct Replayed {
    /// The name of the recording: its file without the ending.
    pub name: String,
    /// The recording.
    pub trace: Trace,
    /// Its decisions.
    pub decisions: Vec<Decision>,
    /// The share of equal compactions if the design moved one table at a time; `None` if it already
    /// does.
    alone: Option<Share>,
}

/// The number of equal decisions, out of all decisions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Decisions in which system and design agree.
    pub equal: usize,
    /// All decisions.
    pub all: usize,
}

/// A recording as JSON.
#[derive(Debug, Serialize)]
pub struct JsonReplayed<'a> {
    schema: u32,
    recording: &'a str,
    system: &'a str,
    options: &'a str,
    load: &'a str,
    design: &'a str,
    compactions: Share,
    rests: Share,
    differences: BTreeMap<&'static str, usize>,
}

impl Share {
    fn of<'a>(decisions: impl Iterator<Item = &'a Decision>) -> Self {
        decisions.fold(Self::default(), |share, decision| Self {
            equal: share.equal + usize::from(decision.difference.is_none()),
            all: share.all + 1,
        })
    }

    fn plus(self, other: Self) -> Self {
        Self { equal: self.equal + other.equal, all: self.all + other.all }
    }

    fn percent(self) -> String {
        if self.all == 0 {
            return "–".to_owned();
        }
        format!("{:.1} %", self.equal as f64 * 100.0 / self.all as f64)
    }
}

impl Replayed {
    /// Reads a recording and replays it on `design`, or on the design that it names.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is damaged, or a design does not parse.
    pub fn read(path: &Path, design: Option<&str>) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let trace: Trace = text.parse().with_context(|| path.display().to_string())?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self::of(name, trace, design).with_context(|| path.display().to_string())
    }

    fn of(name: String, mut trace: Trace, design: Option<&str>) -> Result<Self> {
        if let Some(design) = design {
            trace.design = design.to_owned();
        }
        let design = spec::parse(&trace.design)?;
        let decisions = replay(&trace, &design)?;
        let expands = |one: &Granularity| matches!(one, Granularity::Expanded(_));
        let alone = if design.strategy.granularity.values().iter().any(expands) {
            let mut plain: Design = design;
            plain.strategy.granularity = Granularity::File.into();
            Some(Share::of(compactions(&replay(&trace, &plain)?)))
        } else {
            None
        };
        Ok(Self { name, trace, decisions, alone })
    }

    /// How many compactions of the system the design would have chosen.
    pub fn compactions(&self) -> Share {
        Share::of(compactions(&self.decisions))
    }

    /// How often the design had nothing to do when the system had nothing to do.
    pub fn rests(&self) -> Share {
        Share::of(self.decisions.iter().filter(|one| one.system == Event::Rest))
    }

    /// How often each difference occurs.
    pub fn differences(&self) -> BTreeMap<Difference, usize> {
        let mut counts = BTreeMap::new();
        for difference in self.decisions.iter().filter_map(|one| one.difference) {
            *counts.entry(difference).or_default() += 1;
        }
        counts
    }

    /// The result as JSON.
    pub fn json(&self) -> JsonReplayed<'_> {
        let Trace { system, options, load, design, .. } = &self.trace;
        let named = self.differences().into_iter().map(|(one, count)| (one.name(), count));
        JsonReplayed {
            schema: SCHEMA,
            recording: &self.name,
            system,
            options,
            load,
            design,
            compactions: self.compactions(),
            rests: self.rests(),
            differences: named.collect(),
        }
    }

    /// Every difference, with both choices.
    pub fn listed(&self) -> String {
        let mut text = String::new();
        for decision in self.decisions.iter().filter(|one| one.difference.is_some()) {
            let Decision { event, system, design, difference } = decision;
            let name = difference.map_or("", Difference::name);
            let ours = design.as_ref().map_or_else(|| "rest".to_owned(), ToString::to_string);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{} event {event}: {name}", self.name);
            let _ = writeln!(text, "  system: {system}\n  design: {ours}");
        }
        text
    }
}

fn compactions(decisions: &[Decision]) -> impl Iterator<Item = &Decision> {
    decisions.iter().filter(|one| matches!(one.system, Event::Compaction(_)))
}

/// The commands that write [`page`].
const COMMANDS: &str = "\
(cd compare && cargo run --release -- record --out recordings)
terrane design recorded compare/recordings/*.txt > docs/recorded.md";

/// The document about recordings.
pub fn page(all: &[Replayed]) -> String {
    let environment = Environment {
        command: COMMANDS.to_owned(),
        ..Environment::of_run(&std::env::temp_dir(), 1)
    };
    let setting = environment.markdown();
    let mut text = format!(
        "# Recorded decisions\n\n{setting}\n\
         What LevelDB and RocksDB decided, and what the designs that stand for them in the catalogue\n\
         would have decided for the same trees. `terrane-compare record` runs each system on a small\n\
         deterministic load and reads its decisions from its MANIFEST and its LOG. Each tree is rebuilt\n\
         from the system's own files, and the design picks its compaction. Then the *system's* compaction\n\
         is applied, so that differences do not accumulate. No difference is classified by hand: the\n\
         rules below assign each one.\n\n\
         `terrane design recorded --differences` lists each difference. The last\n\
         decisions of each recording are in `crates/terrane-policy/testdata/recorded`, where a test\n\
         fails if the design's decisions change.\n\n\
         ## Shares\n\n\
         A compaction is equal if its inputs and its level are. \"One table\" is the share if the design\n\
         moved one table at a time, without the tables that LevelDB and RocksDB add to it. The system\n\
         rests when it has nothing to do, and then the design should rest as well.\n\n"
    );
    text.push_str(&shares(all));
    text.push_str("\n## Differences\n\n");
    text.push_str(&counts(all));
    text.push_str("\n| difference | rule |\n|---|---|\n");
    for difference in found(all) {
        let _ = writeln!(text, "| {} | {} |", difference.name(), difference.rule());
    }
    text.push_str(
        "\nBy the system's reason for the compaction. LevelDB records none: `seeks` is a\n\
         compaction while no level is over its limit.\n\n",
    );
    text.push_str(&reasons(all));
    text.push_str(
        "\n## Settings\n\n| recording | system | options | design |\n|---|---|---|---|\n",
    );
    for one in all {
        let Trace { system, options, design, .. } = &one.trace;
        let _ = writeln!(text, "| {} | {system} | `{options}` | `{design}` |", one.name);
    }
    text
}

fn shares(all: &[Replayed]) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut sums: BTreeMap<&str, (Share, Share, Share)> = BTreeMap::new();
    let mut row = |name: String, (made, alone, rests): (Share, Share, Share)| {
        let counts = format!("{} of {}", made.equal, made.all);
        let alone = if alone.all == 0 { "–".to_owned() } else { alone.percent() };
        rows.push(vec![name, counts, made.percent(), alone, rests.percent()]);
    };
    for one in all {
        let shares = (one.compactions(), one.alone.unwrap_or_default(), one.rests());
        row(one.name.clone(), shares);
        let entry = one.trace.design.split([';', ' ']).next().unwrap_or_default();
        let sum = sums.entry(entry).or_default();
        *sum = (sum.0.plus(shares.0), sum.1.plus(shares.1), sum.2.plus(shares.2));
    }
    for (entry, shares) in sums {
        row(format!("all of `{entry}`"), shares);
    }
    table(&["recording", "compactions equal", "share", "one table", "rests equal"], &rows)
}

fn found(all: &[Replayed]) -> Vec<Difference> {
    let occurs = |one: &Difference| all.iter().any(|any| any.differences().contains_key(one));
    Difference::ALL.into_iter().filter(occurs).collect()
}

fn counts(all: &[Replayed]) -> String {
    let found = found(all);
    let headers: Vec<&str> =
        std::iter::once("recording").chain(found.iter().map(|one| one.name())).collect();
    let rows = all.iter().filter(|one| !one.differences().is_empty()).map(|one| {
        let differences = one.differences();
        let count = |one: &Difference| differences.get(one).map_or(String::new(), usize::to_string);
        std::iter::once(one.name.clone()).chain(found.iter().map(count)).collect()
    });
    table(&headers, &rows.collect::<Vec<_>>())
}

/// The differences by system and by its own reason.
fn reasons(all: &[Replayed]) -> String {
    let mut counts: BTreeMap<(&str, &str, Difference), usize> = BTreeMap::new();
    for one in all {
        for decision in &one.decisions {
            let Some((difference, Event::Compaction(made))) =
                decision.difference.zip(Some(&decision.system))
            else {
                continue;
            };
            let system = one.trace.system.as_str();
            let reason = match made.reason.as_str() {
                "-" if made.outputs.is_none() => "move without rewriting",
                reason => reason,
            };
            *counts.entry((system, reason, difference)).or_default() += 1;
        }
    }
    let rows = counts.into_iter().map(|((system, reason, difference), count)| {
        vec![format!("{system}: {reason}"), difference.name().to_owned(), count.to_string()]
    });
    table(&["system's reason", "difference", "compactions"], &rows.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn recordings() -> Vec<Replayed> {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../terrane-policy/testdata/recorded");
        let entries = std::fs::read_dir(dir).unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.iter().map(|path| Replayed::read(path, None).unwrap()).collect()
    }

    #[test]
    fn the_page_has_a_row_for_every_recording_and_every_design() {
        let all = recordings();
        let page = page(&all);
        for one in &all {
            let share = one.compactions();
            let row = format!("| {} | {} of {} | ", one.name, share.equal, share.all);
            assert!(page.contains(&row), "{row}");
        }
        for entry in ["leveldb", "rocksdb-leveling", "rocksdb-tiering"] {
            assert!(page.contains(&format!("| all of `{entry}` | ")), "{page}");
        }
        assert!(page.contains(Difference::MoreTables.rule()), "{page}");
    }

    #[test]
    fn differences_are_listed_with_both_choices() {
        let text = "design leveldb; buffer=1KiB\nlevel 0 4=a..=z:1KiB 3=a..=z:1KiB 2=a..=z:1KiB\n\
                    rest\nflush 0 5=a..=z:1KiB\ncompact - 0: 5 4 3 -> 1: 6=a..=z:3KiB\n";
        let replayed = Replayed::of("small".into(), text.parse().unwrap(), None).unwrap();
        assert_eq!((replayed.rests().equal, replayed.compactions().equal), (1, 0));
        let listed = replayed.listed();
        assert!(listed.contains("small event 2: fewer runs"), "{listed}");
        assert!(listed.contains("  system: compact - 0: 5 4 3 -> 1: 6=a..=z:3KiB"), "{listed}");
        assert!(page(&[replayed]).contains("| small | 0 of 1 | 0.0 % | 0.0 % | 100.0 % |"));
    }
}

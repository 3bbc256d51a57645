//! Named designs, and the choices of menus.

use serde::Serialize;
use terrane_policy::catalogue::{ALL, DEFAULT};
use terrane_policy::strategy::Scope;
use terrane_policy::{Movement, Scheduler, Trigger, TriggerKind, space};

/// All named designs and the choices of every menu.
#[derive(Debug, Serialize)]
pub(crate) struct Catalogue {
    /// The name of the default design.
    default: &'static str,
    designs: Vec<NamedDesign>,
    choices: Vec<Choice>,
}

/// A named design.
#[derive(Debug, Serialize)]
struct NamedDesign {
    name: &'static str,
    about: &'static str,
    source: &'static str,
    /// True if the design is a row of Table 1 of the compaction paper.
    is_row: bool,
    /// What the system has and the design has not.
    beyond: &'static str,
    /// Eagerness, trigger, granularity and movement.
    words: [String; 4],
}

/// A setting with the values that a menu offers.
#[derive(Debug, Serialize)]
struct Choice {
    key: &'static str,
    values: Vec<String>,
}

pub(crate) fn catalogue() -> Catalogue {
    let designs = ALL.iter().map(|entry| NamedDesign {
        name: entry.name,
        about: entry.about,
        source: entry.source,
        is_row: entry.row.is_some(),
        beyond: entry.beyond,
        words: (entry.design)().strategy.words(),
    });
    Catalogue { default: DEFAULT, designs: designs.collect(), choices: choices() }
}

fn choices() -> Vec<Choice> {
    let texts = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
    let fires = TriggerKind::ALL.iter().map(|kind| kind.info());
    let firing = fires.filter(|info| info.scope != Scope::Nothing);
    // As designs print them.
    let usual = firing.filter_map(|info| info.usual.parse::<Trigger>().ok());
    let triggers = usual.map(|trigger| trigger.to_string());
    let combined = ["level-saturation+run-count", "tombstone-ttl(1h)+level-saturation"];
    let rules = Movement::ALL.iter().map(ToString::to_string);
    let schedulers = Scheduler::ALL.iter().map(ToString::to_string);
    let choice = |key: &'static str, values: Vec<String>| Choice { key, values };
    vec![
        choice("name", space::eagerness_names().map(eagerness_text).collect()),
        choice("trigger", combined.map(str::to_owned).into_iter().chain(triggers).collect()),
        choice("granularity", texts(&["level", "run", "file", "files(4)"])),
        choice("movement", ["none".to_owned()].into_iter().chain(rules).collect()),
        choice("memtable", texts(MEMTABLES)),
        choice("scheduler", schedulers.collect()),
        choice("flush", texts(&["new", "merge"])),
        choice("growth", texts(&["fixed", "dynamic", "bush(2)"])),
        choice("intake", texts(&["all", "exact"])),
        choice("violation", texts(&["stop", "slow-down", "spread", "none"])),
        choice("limit", texts(&["level0", "local(2x)", "global(2x)"])),
        choice("stall", texts(&["runs", "full"])),
        choice("compression", texts(&["none", "lz4", "zstd"])),
        choice("values", texts(&["inline", "separate(1KiB)"])),
    ]
}

/// The kinds of memtables, with their usual settings.
const MEMTABLES: &[&str] = &[
    "btree",
    "skiplist",
    "vector",
    "hash-vector(buckets=1000)",
    "hash-skiplist(prefix=6,buckets=1000)",
    "hash-linkedlist(prefix=6,buckets=1000)",
    "flodb",
    "auto",
];

/// Returns the beginning of a design with this eagerness.
fn eagerness_text(name: &str) -> String {
    let runs = if name == "hybrid" { " runs=T-1,4,last:2" } else { "" };
    format!("{name}{runs}")
}

//! Settings of a design, and changes of one.

use serde::Serialize;
use terrane_policy::Design;

/// The levels whose capacity is listed.
const LEVELS_SHOWN: usize = 8;

/// A design and its settings.
#[derive(Debug, Serialize)]
pub(crate) struct DescribedDesign {
    /// Its shortest text.
    text: String,
    eagerness: String,
    /// Keys and values of all settings that are not rare.
    settings: Vec<(&'static str, String)>,
    /// Capacities in bytes, from level 0; `null` if the design does not limit a level.
    capacities: Vec<Option<u64>>,
    /// The runs that each level may hold.
    runs: Vec<u32>,
}

pub(crate) fn parse(text: &str) -> Result<Design, String> {
    text.trim().parse().map_err(|error: terrane_policy::ParseError| error.to_string())
}

pub(crate) fn describe(design: &Design) -> DescribedDesign {
    let last = LEVELS_SHOWN - 1;
    let levels = 0..LEVELS_SHOWN;
    let capacity =
        |level| Some(design.capacity_bytes(level, last)).filter(|bytes| *bytes < u64::MAX);
    DescribedDesign {
        text: design.to_string(),
        eagerness: design.strategy.words()[0].clone(),
        settings: design.settings(),
        capacities: levels.clone().map(capacity).collect(),
        runs: levels.map(|level| design.strategy.runs_allowed(level, last)).collect(),
    }
}

/// Returns a design with another value of a setting. The key `name` stands for the first part of the
/// text: a name of the catalogue or an eagerness, whose defaults then replace the settings.
pub(crate) fn changed(text: &str, key: &str, value: &str) -> Result<Design, String> {
    if key == "name" {
        return parse(value);
    }
    let design = parse(text)?;
    let settings = design.settings();
    let others = settings.iter().filter(|(other, _)| *other != key);
    let others =
        others.map(|(key, value)| (*key, value.as_str())).filter(|(_, value)| *value != "auto");
    let name = design.strategy.words()[0].clone();
    let name = name.split('(').next().unwrap_or(&name);
    let changed = Design::from_settings(name, others.chain([(key, value)]));
    changed.map_err(|error| error.to_string())
}

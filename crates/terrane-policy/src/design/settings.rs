//! A design as a name and settings: the parts of its text form and of other syntaxes such as TOML.

use std::fmt::Display;
use std::str::FromStr;

use super::{
    DEFAULT_SCHEDULER, Design, FilterAllocation, FlushMode, Limit, NEVER, PerLevel, Stall, Values,
    Violation, scaling,
};
use crate::catalogue;
use crate::error::ParseError;
use crate::strategy::{Eagerness, Growth, Intake, RunLimit, Runs};
use crate::text::split_outside;
use crate::units::{self, format_bytes, parse_count};

impl Design {
    /// All setting keys.
    pub const KEYS: [&'static str; 28] = [
        "T",
        "L0",
        "base",
        "runs",
        "growth",
        "scaling",
        "trigger",
        "granularity",
        "movement",
        "memtable",
        "buffer",
        "flush",
        "table",
        "block",
        "filter",
        "probes",
        "compression",
        "values",
        "tombstone-weight",
        "intake",
        "limit",
        "violation",
        "delay",
        "stop",
        "buffers",
        "stall",
        "max-rate",
        "scheduler",
    ];

    /// Returns every choice except the eagerness as a key and a text, in printing order. Rare
    /// settings are included only if they differ from their defaults.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let strategy = &self.strategy;
        let mut settings = vec![
            ("T", strategy.size_ratio.to_string()),
            ("L0", strategy.level0_runs.to_string()),
            ("base", strategy.base_bytes.map_or("auto".into(), format_bytes)),
        ];
        if let Eagerness::Hybrid(runs) = &strategy.eagerness {
            settings.push(("runs", runs.to_string()));
        }
        if strategy.growth != Growth::Fixed {
            settings.push(("growth", strategy.growth.to_string()));
        }
        if strategy.tombstone_weight != 0 {
            settings.push(("tombstone-weight", strategy.tombstone_weight.to_string()));
        }
        if strategy.intake != Intake::All {
            settings.push(("intake", strategy.intake.to_string()));
        }
        let limits = &self.constraint;
        settings.extend([
            ("trigger", lists(&strategy.triggers)),
            ("granularity", strategy.granularity.to_string()),
            ("movement", lists(&strategy.movement)),
            ("memtable", self.memtable.to_string()),
            ("buffer", format_bytes(self.buffer_bytes)),
        ]);
        if self.flush != FlushMode::New {
            settings.push(("flush", self.flush.to_string()));
        }
        settings.extend([
            ("table", format_bytes(self.table_bytes)),
            ("block", format_bytes(self.block_bytes.into())),
            ("filter", self.filters_text()),
        ]);
        if let Some(probes) = self.filter_probes {
            settings.push(("probes", probes.to_string()));
        }
        settings.push(("compression", self.compression.to_string()));
        if self.values != Values::Inline {
            settings.push(("values", self.values.to_string()));
        }
        settings.extend([
            ("delay", runs_or_never(limits.delay_runs)),
            ("stop", runs_or_never(limits.stop_runs)),
            ("buffers", limits.stop_buffers.to_string()),
        ]);
        if limits.limit != Limit::Level0 {
            settings.push(("limit", limits.limit.to_string()));
        }
        if limits.violation != Violation::Stop {
            settings.push(("violation", limits.violation.to_string()));
        }
        if limits.stall != Stall::Runs {
            settings.push(("stall", limits.stall.to_string()));
        }
        if let Some(rate) = limits.max_rate {
            settings.push(("max-rate", rate.to_string()));
        }
        if self.scheduler != DEFAULT_SCHEDULER {
            settings.push(("scheduler", self.scheduler.to_string()));
        }
        settings
    }

    /// Builds a design from settings and a name, which is a catalogue name or an eagerness.
    ///
    /// # Errors
    /// Returns an error if the name or a key is unknown, a value cannot be parsed, or the choices
    /// contradict each other.
    pub fn from_settings<'a>(
        name: &str,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ParseError> {
        let design = Self::build(name, named(name)?, settings)?;
        design.validate()?;
        Ok(design)
    }

    /// Returns the design with another value of one setting.
    ///
    /// # Errors
    /// As for [`Design::from_settings`].
    pub fn with_setting(&self, key: &str, value: &str) -> Result<Self, ParseError> {
        let mut design = self.clone();
        set(&mut design, key, value)?;
        design.check_stored()?;
        design.validate()?;
        Ok(design)
    }

    /// Parses the design that a database was created with. It need not satisfy rules that later
    /// versions introduced.
    ///
    /// # Errors
    /// Returns an error if a key is unknown, a value cannot be parsed, or no version accepted the
    /// design.
    pub fn stored(text: &str) -> Result<Self, ParseError> {
        let (name, settings) = super::text::parts(text)?;
        Self::build(name, named(name)?, settings)
    }

    /// Like [`Design::from_settings`] for an eagerness, without consulting the catalogue.
    pub(crate) fn plain(text: &str) -> Result<Self, ParseError> {
        let (name, settings) = super::text::parts(text)?;
        Self::build(name, eager(name)?, settings)
    }

    fn build<'a>(
        name: &str,
        mut design: Self,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ParseError> {
        let mut gives_runs = name != "hybrid";
        for (key, value) in settings {
            gives_runs |= matches!(key, "runs" | "scaling");
            set(&mut design, key, value)?;
        }
        if !gives_runs {
            return Err(ParseError::new(
                "design",
                name,
                "hybrid together with runs=, such as 'runs=4,last:1'",
            ));
        }
        design.check_stored()?;
        Ok(design)
    }
}

/// Returns the design that settings modify: a catalogue design, or the default design of an
/// eagerness.
fn named(name: &str) -> Result<Design, ParseError> {
    if let Some(entry) = catalogue::find(name) {
        return Ok((entry.design)());
    }
    eager(name).map_err(|_| {
        let known: Vec<&str> = catalogue::ALL.iter().map(|entry| entry.name).collect();
        ParseError::unknown_design(name, &format!("{}, or hybrid", known.join(", ")))
    })
}

/// Returns the default design of an eagerness.
pub(super) fn eager(name: &str) -> Result<Design, ParseError> {
    if name == "hybrid" {
        return Ok(Design::new(Eagerness::Hybrid(Runs::all(RunLimit::Tiered))));
    }
    name.parse::<Eagerness>().map(Design::new)
}

fn set(design: &mut Design, key: &str, value: &str) -> Result<(), ParseError> {
    let strategy = &mut design.strategy;
    match key {
        "T" => {
            // If level 0 gathers T runs, their number follows the ratio unless it is set
            // explicitly.
            let follows = strategy.level0_runs == strategy.size_ratio;
            strategy.size_ratio = number(key, value)?;
            if follows {
                strategy.level0_runs = strategy.size_ratio;
            }
        }
        "L0" => strategy.level0_runs = number(key, value)?,
        "base" if value == "auto" => strategy.base_bytes = None,
        "base" => strategy.base_bytes = Some(bytes(key, value)?),
        "runs" => strategy.eagerness = Eagerness::Hybrid(value.parse()?),
        "growth" => strategy.growth = value.parse()?,
        "scaling" => scaling::apply(strategy, value)?,
        "trigger" => strategy.triggers = per_level(value, |text| list(text, "manual"))?,
        "granularity" => strategy.granularity = per_level(value, str::parse)?,
        "movement" => strategy.movement = per_level(value, |text| list(text, "none"))?,
        "memtable" => design.memtable = value.parse()?,
        "flush" => design.flush = value.parse()?,
        "buffer" => design.buffer_bytes = bytes(key, value)?,
        "table" => design.table_bytes = bytes(key, value)?,
        "block" => {
            design.block_bytes = u32::try_from(bytes(key, value)?)
                .map_err(|_| out_of_range(key, value, "at most 64MiB"))?;
        }
        "filter" => {
            (design.filter_bits, design.filter_allocation) = FilterAllocation::parse(value)?;
        }
        "probes" if value == "auto" => design.filter_probes = None,
        "probes" => {
            let probes = u8::try_from(number(key, value)?);
            design.filter_probes =
                Some(probes.map_err(|_| out_of_range(key, value, PROBES_ACCEPTED))?);
        }
        "compression" => design.compression = value.parse()?,
        "values" => design.values = value.parse()?,
        "delay" => design.constraint.delay_runs = number_or_never(key, value)?,
        "stop" => design.constraint.stop_runs = number_or_never(key, value)?,
        "buffers" => design.constraint.stop_buffers = number(key, value)?,
        "stall" => design.constraint.stall = value.parse()?,
        "limit" => design.constraint.limit = value.parse()?,
        "violation" => design.constraint.violation = value.parse()?,
        "max-rate" if value == "none" => design.constraint.max_rate = None,
        "max-rate" => design.constraint.max_rate = Some(number(key, value)?),
        "scheduler" => design.scheduler = value.parse()?,
        "tombstone-weight" => strategy.tombstone_weight = number(key, value)?,
        "intake" => strategy.intake = value.parse()?,
        _ => {
            return Err(ParseError::unknown_setting(key, &Design::KEYS.join(", ")));
        }
    }
    Ok(())
}

/// Parses a value for each level; the error names the value that could not be parsed.
fn per_level<T>(
    value: &str,
    parse: impl Fn(&str) -> Result<T, ParseError>,
) -> Result<PerLevel<T>, ParseError> {
    let mut values = split_outside(value, ',').into_iter();
    let first = parse(values.next().unwrap_or(""))?;
    let rest = values.map(parse).collect::<Result<Vec<T>, ParseError>>()?;
    Ok(PerLevel::new(first, rest))
}

/// Parses a list with `+`. `none` is an empty list, unless `none` is itself a value.
fn list<T: FromStr<Err = ParseError>>(text: &str, alone: &str) -> Result<Vec<T>, ParseError> {
    if alone == "none" && text == "none" {
        return Ok(Vec::new());
    }
    split_outside(text, '+').into_iter().map(str::parse).collect()
}

fn lists<T: Display>(values: &PerLevel<Vec<T>>) -> String {
    let words = values.values().iter().map(|list| {
        if list.is_empty() {
            return "none".to_owned();
        }
        list.iter().map(ToString::to_string).collect::<Vec<_>>().join("+")
    });
    words.collect::<Vec<_>>().join(",")
}

/// What `probes` accepts, for error messages.
pub(super) const PROBES_ACCEPTED: &str = "1 to 16, or auto";

fn number(key: &str, value: &str) -> Result<u32, ParseError> {
    let count = parse_count(value).ok().and_then(|count| u32::try_from(count).ok());
    count.ok_or_else(|| out_of_range(key, value, "a whole number such as 4, 500 or 20K"))
}

fn bytes(key: &str, value: &str) -> Result<u64, ParseError> {
    let wrong = |error: ParseError| out_of_range(key, value, &error.expected);
    units::parse_bytes(value).map_err(wrong)
}

fn number_or_never(key: &str, value: &str) -> Result<u32, ParseError> {
    if value == "never" { Ok(NEVER) } else { number(key, value) }
}

fn runs_or_never(runs: u32) -> String {
    if runs == NEVER { "never".to_owned() } else { runs.to_string() }
}

pub(super) fn out_of_range(key: &str, value: impl Display, expected: &str) -> ParseError {
    ParseError::new("design", format!("{key}={value}"), expected)
}

//! The text form of a design. See [`crate::design`].

use std::fmt::{self, Display};
use std::str::FromStr;

use super::flodb::FloDb;
use super::{Compression, Design, MemtableKind};
use crate::catalogue;
use crate::error::ParseError;
use crate::strategy::Eagerness;
use crate::units::{format_bytes, parse_bytes};

impl Display for Design {
    /// Every choice, in the form that parses back to the same design.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let strategy = &self.strategy;
        let base = strategy.base_bytes.map_or("auto".into(), format_bytes);
        write!(
            f,
            "{} T={} L0={} base={base}",
            strategy.eagerness, strategy.size_ratio, strategy.level0_runs
        )?;
        write!(f, "; trigger={}", joined(&strategy.triggers))?;
        write!(f, "; granularity={}", strategy.granularity)?;
        write!(f, "; movement={}", joined(&strategy.movement))?;
        write!(f, "; memtable={}; buffer={}", self.memtable, format_bytes(self.buffer_bytes))?;
        write!(f, "; table={}", format_bytes(self.table_bytes))?;
        write!(f, "; block={}", format_bytes(self.block_bytes.into()))?;
        write!(f, "; filter={}; compression={}", self.filter_bits, self.compression)?;
        let limits = &self.constraint;
        write!(
            f,
            "; delay={}; stop={}; buffers={}",
            limits.delay_runs, limits.stop_runs, limits.stop_buffers
        )
    }
}

fn joined<T: Display>(values: &[T]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join("+")
}

impl FromStr for Design {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut parts = text.split(';');
        let mut words = parts.next().unwrap_or("").split_whitespace();
        let mut design = named(words.next().unwrap_or(""))?;
        for setting in words.chain(parts).map(str::trim).filter(|setting| !setting.is_empty()) {
            let (key, value) = setting.split_once('=').ok_or_else(|| {
                ParseError::new("design", setting, "settings such as 'T=10' or 'filter=10'")
            })?;
            set(&mut design, key.trim(), value.trim())?;
        }
        design.validate()?;
        Ok(design)
    }
}

/// The design that a text starts from: one of the catalogue, or the usual one of an eagerness.
fn named(name: &str) -> Result<Design, ParseError> {
    if let Some(entry) = catalogue::find(name) {
        return Ok((entry.design)());
    }
    name.parse::<Eagerness>().map(Design::new).map_err(|_| {
        let known: Vec<&str> = catalogue::ALL.iter().map(|entry| entry.name).collect();
        ParseError::new("design", name, format!("one of {}", known.join(", ")))
    })
}

fn set(design: &mut Design, key: &str, value: &str) -> Result<(), ParseError> {
    let strategy = &mut design.strategy;
    match key {
        "T" => {
            // Levels that gather T runs follow the ratio unless told otherwise.
            let follows = strategy.level0_runs == strategy.size_ratio;
            strategy.size_ratio = number(key, value)?;
            if follows {
                strategy.level0_runs = strategy.size_ratio;
            }
        }
        "L0" => strategy.level0_runs = number(key, value)?,
        "base" if value == "auto" => strategy.base_bytes = None,
        "base" => strategy.base_bytes = Some(parse_bytes(value)?),
        "trigger" => strategy.triggers = list(value)?,
        "granularity" => strategy.granularity = value.parse()?,
        "movement" => strategy.movement = list(value)?,
        "memtable" => design.memtable = value.parse()?,
        "buffer" => design.buffer_bytes = parse_bytes(value)?,
        "table" => design.table_bytes = parse_bytes(value)?,
        "block" => {
            design.block_bytes = u32::try_from(parse_bytes(value)?)
                .map_err(|_| out_of_range(key, value, "at most 64MiB"))?;
        }
        "filter" => design.filter_bits = value.parse()?,
        "compression" => design.compression = value.parse()?,
        "delay" => design.constraint.delay_runs = number(key, value)?,
        "stop" => design.constraint.stop_runs = number(key, value)?,
        "buffers" => design.constraint.stop_buffers = number(key, value)?,
        _ => {
            return Err(ParseError::new(
                "design",
                key,
                "T, L0, base, trigger, granularity, movement, memtable, buffer, table, block, filter, compression, delay, stop or buffers",
            ));
        }
    }
    Ok(())
}

fn number(key: &str, value: &str) -> Result<u32, ParseError> {
    value.parse().map_err(|_| out_of_range(key, value, "a whole number"))
}

fn list<T: FromStr<Err = ParseError>>(value: &str) -> Result<Vec<T>, ParseError> {
    value.split('+').map(|word| word.trim().parse()).collect()
}

fn out_of_range(key: &str, value: impl Display, expected: &str) -> ParseError {
    ParseError::new("design", format!("{key}={value}"), expected)
}

impl Design {
    /// Checks that the choices make sense together.
    ///
    /// # Errors
    /// The first value that is out of range or contradicts another, with what is allowed.
    pub fn validate(&self) -> Result<(), ParseError> {
        let strategy = &self.strategy;
        let limits = &self.constraint;
        let least_stop = strategy.level0_runs.max(limits.delay_runs) + 1;
        let checks = [
            (
                (2..=1000).contains(&strategy.size_ratio),
                "T",
                u64::from(strategy.size_ratio),
                "2 to 1000",
            ),
            (
                (1..=1000).contains(&strategy.level0_runs),
                "L0",
                strategy.level0_runs.into(),
                "1 to 1000",
            ),
            (strategy.base_bytes != Some(0), "base", 0, "at least 1 byte"),
            (
                (1024..=1 << 40).contains(&self.buffer_bytes),
                "buffer",
                self.buffer_bytes,
                "1KiB to 1TiB",
            ),
            (
                (1024..=1 << 40).contains(&self.table_bytes),
                "table",
                self.table_bytes,
                "1KiB to 1TiB",
            ),
            (
                (64..=64 << 20).contains(&self.block_bytes),
                "block",
                self.block_bytes.into(),
                "64 bytes to 64MiB",
            ),
            (
                limits.delay_runs >= strategy.level0_runs,
                "delay",
                limits.delay_runs.into(),
                "at least L0, or writers would be slowed in the tree's normal shape",
            ),
            (
                limits.stop_runs >= least_stop,
                "stop",
                limits.stop_runs.into(),
                "more than delay and more than L0",
            ),
            (
                (1..=1000).contains(&limits.stop_buffers),
                "buffers",
                limits.stop_buffers.into(),
                "1 to 1000",
            ),
        ];
        for (holds, key, value, expected) in checks {
            if !holds {
                return Err(out_of_range(key, value, expected));
            }
        }
        if let Some(bits) =
            self.filter_bits.values().iter().find(|bits| !(0.0..=64.0).contains(*bits))
        {
            return Err(out_of_range("filter", bits, "0 to 64 bits per key"));
        }
        Ok(())
    }
}

impl FromStr for Compression {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "none" => Ok(Self::None),
            "lz4" => Ok(Self::Lz4),
            _ => Err(ParseError::new("compression", text, "none or lz4")),
        }
    }
}

impl Display for MemtableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BTree => f.write_str("btree"),
            &Self::SKIP_LIST => f.write_str("skiplist"),
            Self::SkipList { branching, height } => {
                write!(f, "skiplist(branching={branching},height={height})")
            }
            Self::FloDb(flodb) => flodb.fmt(f),
        }
    }
}

impl FromStr for MemtableKind {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = |found: &str| {
            let expected = "btree, skiplist, skiplist(branching=4,height=12), flodb or flodb(membuffer=25%,...)";
            ParseError::new("memtable", found, expected)
        };
        if text == "btree" {
            return Ok(Self::BTree);
        }
        let (name, arguments) = match text.split_once('(') {
            Some((name, rest)) => (name, rest.strip_suffix(')').ok_or_else(|| bad(text))?),
            None => (text, ""),
        };
        if name.trim() == "flodb" {
            return FloDb::parse(arguments).map(Self::FloDb);
        }
        if name.trim() != "skiplist" {
            return Err(bad(text));
        }
        let (mut branching, mut height) = (4, 12);
        for argument in arguments.split(',').filter(|argument| !argument.trim().is_empty()) {
            let (key, value) = argument.split_once('=').ok_or_else(|| bad(argument))?;
            let value: u8 = value.trim().parse().map_err(|_| bad(argument))?;
            match key.trim() {
                "branching" if (2..=16).contains(&value) => branching = value,
                "height" if (1..=20).contains(&value) => height = value,
                _ => return Err(bad(argument)),
            }
        }
        Ok(Self::SkipList { branching, height })
    }
}

//! The text form of a shape, one run per line:
//!
//! ```text
//! L0 r9: 12=a..=f:10MiB
//! L1 r4: 7=a..=c:2MiB,entries=100,tombstones=3,seq=5-90 8=d..:2MiB,values=3:1MiB/100+5:20/2
//! V 3: 4MiB
//! V 5: 1MiB,values=64,state=unflushed
//! ```
//!
//! A table is `id=range:size`, followed by the attributes that are not zero. A range is `a..=f`
//! with its last key, `a..f` without it, or `a..` without an end. Keys are written as
//! [`escape`](crate::key_range::escape) prints them, and the three characters `.`, `:` and `,` as
//! `\x2e`, `\x3a` and `\x2c`. Lines that start with `#` are comments.
//!
//! `expiring=3@100-200` says that three entries expire, between these times in microseconds.
//!
//! `values=` lists the value files that a table refers to, each as `file:bytes/values`. A line with
//! `V` is a value file, with its bytes and the attributes that are not zero; its state is `open`,
//! `unflushed` or, by default, settled.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{
    AddedTable, Expiry, RunId, ShapeEdit, TableInfo, TreeShape, ValueFileId, ValueFileInfo,
    ValueFileState, ValueRef,
};
use crate::error::ParseError;
use crate::key_range::{KeyRange, escape};
use crate::units::{format_bytes, parse_bytes};

impl fmt::Display for TreeShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, level) in self.levels.iter().enumerate() {
            for run in &level.runs {
                write!(f, "L{index} r{}:", run.id)?;
                for table in &run.tables {
                    write!(f, " {table}")?;
                }
                writeln!(f)?;
            }
        }
        self.value_files.iter().try_for_each(|file| writeln!(f, "V {file}"))
    }
}

impl fmt::Display for ValueFileInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.id, format_bytes(self.bytes))?;
        if self.values != 0 {
            write!(f, ",values={}", self.values)?;
        }
        if self.state != ValueFileState::Settled {
            write!(f, ",state={}", self.state)?;
        }
        if self.created_micros != 0 {
            write!(f, ",created={}", self.created_micros)?;
        }
        self.oldest_dead_micros.map_or(Ok(()), |micros| write!(f, ",oldest-dead={micros}"))
    }
}

impl fmt::Display for ValueFileState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Unflushed => "unflushed",
            Self::Settled => "settled",
        })
    }
}

impl fmt::Display for TableInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}..", self.id, escape_word(&self.range.start))?;
        match self.range.end.as_deref() {
            None => {}
            Some([last @ .., 0]) => write!(f, "={}", escape_word(last))?,
            Some(end) => write!(f, "{}", escape_word(end))?,
        }
        write!(f, ":{}", format_bytes(self.size_bytes))?;
        let attributes = [
            ("entries", self.entries),
            ("tombstones", self.tombstones),
            ("range-tombstones", self.range_tombstones),
            ("created", self.created_micros),
        ];
        for (name, value) in attributes.iter().filter(|(_, value)| *value != 0) {
            write!(f, ",{name}={value}")?;
        }
        if let Some(micros) = self.oldest_tombstone_micros {
            write!(f, ",oldest-tombstone={micros}")?;
        }
        if let Some(Expiry { entries, first_micros, last_micros }) = self.expiry {
            write!(f, ",expiring={entries}@{first_micros}-{last_micros}")?;
        }
        if self.largest_seq != 0 {
            write!(f, ",seq={}-{}", self.smallest_seq, self.largest_seq)?;
        }
        for (number, used) in self.value_refs.iter().enumerate() {
            let separator = if number == 0 { ",values=" } else { "+" };
            let bytes = format_bytes(used.bytes);
            write!(f, "{separator}{}:{bytes}/{}", used.file, used.values)?;
        }
        Ok(())
    }
}

fn escape_word(key: &[u8]) -> String {
    escape(key).replace('.', "\\x2e").replace(':', "\\x3a").replace(',', "\\x2c")
}

impl FromStr for TreeShape {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut edit = ShapeEdit::default();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (place, tables) =
                line.split_once(':').ok_or_else(|| bad(line, "'L0 r1: tables'"))?;
            if let Some(number) = place.strip_prefix("V ") {
                edit.value_files.push(Arc::new(parse_value_file(number, tables)?));
                continue;
            }
            let (level, run) = parse_place(place)?;
            for word in tables.split_whitespace() {
                edit.added.push(AddedTable { level, run, table: Arc::new(word.parse()?) });
            }
        }
        TreeShape::default().apply(&edit).map_err(|error| bad(text, &error.to_string()))
    }
}

fn bad(found: &str, expected: &str) -> ParseError {
    ParseError::new("tree shape", found, expected)
}

fn parse_value_file(number: &str, facts: &str) -> Result<ValueFileInfo, ParseError> {
    let wanted = || bad(facts, "a value file such as 'V 3: 4MiB,values=64,state=open'");
    let number = number.trim().parse().map_err(|_| wanted())?;
    let mut fields = facts.trim().split(',');
    let bytes = parse_bytes(fields.next().unwrap_or("")).map_err(|_| wanted())?;
    let mut file = ValueFileInfo::new(number, bytes);
    for field in fields {
        let (name, value) = field.split_once('=').ok_or_else(wanted)?;
        set_fact(&mut file, name, value).ok_or_else(wanted)?;
    }
    Ok(file)
}

fn set_fact(file: &mut ValueFileInfo, name: &str, value: &str) -> Option<()> {
    match name {
        "values" => file.values = value.parse().ok()?,
        "state" => {
            let states = [ValueFileState::Open, ValueFileState::Unflushed, ValueFileState::Settled];
            file.state = states.into_iter().find(|state| state.to_string() == value)?;
        }
        "created" => file.created_micros = value.parse().ok()?,
        "oldest-dead" => file.oldest_dead_micros = Some(value.parse().ok()?),
        _ => return None,
    }
    Some(())
}

fn parse_value_refs(text: &str) -> Option<Box<[ValueRef]>> {
    let parse = |one: &str| {
        let (file, rest) = one.split_once(':')?;
        let (bytes, values) = rest.split_once('/')?;
        Some(ValueRef {
            file: ValueFileId(file.parse().ok()?),
            bytes: parse_bytes(bytes).ok()?,
            values: values.parse().ok()?,
        })
    };
    text.split('+').map(parse).collect()
}

fn parse_place(place: &str) -> Result<(usize, RunId), ParseError> {
    let wanted = || bad(place, "a level and a run such as 'L0 r1'");
    let mut words = place.split_whitespace();
    let level = words.next().and_then(|word| word.strip_prefix('L')).ok_or_else(wanted)?;
    let run = words.next().and_then(|word| word.strip_prefix('r')).ok_or_else(wanted)?;
    let level: usize = level.parse().map_err(|_| wanted())?;
    // A shape with more levels than a size has bits is a typing error, not a tree.
    if level >= 64 {
        return Err(wanted());
    }
    Ok((level, RunId(run.parse().map_err(|_| wanted())?)))
}

impl FromStr for TableInfo {
    type Err = ParseError;

    fn from_str(word: &str) -> Result<Self, ParseError> {
        let wanted = || bad(word, "a table such as '7=a..=f:10MiB'");
        let (id, rest) = word.split_once('=').ok_or_else(wanted)?;
        let (range, rest) = rest.split_once(':').ok_or_else(wanted)?;
        let mut fields = rest.split(',');
        let size = parse_bytes(fields.next().ok_or_else(wanted)?)?;
        let mut table =
            TableInfo::new(id.parse().map_err(|_| wanted())?, parse_range(range)?, size);
        for field in fields {
            let (name, value) = field.split_once('=').ok_or_else(wanted)?;
            set_attribute(&mut table, name, value).ok_or_else(wanted)?;
        }
        Ok(table)
    }
}

fn set_attribute(table: &mut TableInfo, name: &str, value: &str) -> Option<()> {
    match name {
        "entries" => table.entries = value.parse().ok()?,
        "tombstones" => table.tombstones = value.parse().ok()?,
        "range-tombstones" => table.range_tombstones = value.parse().ok()?,
        "created" => table.created_micros = value.parse().ok()?,
        "oldest-tombstone" => table.oldest_tombstone_micros = Some(value.parse().ok()?),
        "seq" => {
            let (smallest, largest) = value.split_once('-')?;
            (table.smallest_seq, table.largest_seq) =
                (smallest.parse().ok()?, largest.parse().ok()?);
            if table.smallest_seq > table.largest_seq {
                return None;
            }
        }
        "values" => table.value_refs = parse_value_refs(value)?,
        "expiring" => table.expiry = Some(parse_expiry(value)?),
        _ => return None,
    }
    Some(())
}

fn parse_expiry(text: &str) -> Option<Expiry> {
    let (entries, times) = text.split_once('@')?;
    let (first, last) = times.split_once('-')?;
    let (first_micros, last_micros) = (first.parse().ok()?, last.parse().ok()?);
    let entries = entries.parse().ok().filter(|_| first_micros <= last_micros)?;
    Some(Expiry { entries, first_micros, last_micros })
}

fn parse_range(text: &str) -> Result<KeyRange, ParseError> {
    let (start, end) = text.split_once("..").ok_or_else(|| bad(text, "a range such as 'a..=f'"))?;
    let start = unescape(start)?;
    Ok(match end.strip_prefix('=') {
        Some(last) => KeyRange::inclusive(&start, &unescape(last)?),
        None if end.is_empty() => KeyRange::new(&start, None),
        None => KeyRange::new(&start, Some(&unescape(end)?)),
    })
}

/// Parses a key as [`escape`] prints it.
pub(crate) fn unescape(text: &str) -> Result<Vec<u8>, ParseError> {
    let mut key = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        key.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('\\') {
            key.push(b'\\');
            rest = after;
            continue;
        }
        let digits = rest.strip_prefix('x').and_then(|hex| hex.get(..2));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        key.push(byte.ok_or_else(|| bad(text, "an escape such as \\x00"))?);
        rest = &rest[3..];
    }
    key.extend_from_slice(rest.as_bytes());
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_print_as_they_parse() {
        let text = "L0 r9: 12=a..=f:10MiB\n\
                    L0 r8: 11=..:5\n\
                    L1 r4: 7=a..c:2MiB,entries=100,tombstones=3,seq=5-90 8=d\\x2e\\\\\\x00..=e:3\n\
                    L3 r1: 1=b..=b:1,range-tombstones=2,created=7,oldest-tombstone=6,values=3:1KiB/9+5:7/1\n\
                    V 3: 2KiB,values=18,created=4,oldest-dead=5\n\
                    V 4: 9,state=open\n\
                    V 5: 7,state=unflushed\n";
        let shape: TreeShape = text.parse().unwrap();
        assert_eq!(shape.to_string(), text);
        assert_eq!(shape.last_level(), 3);
        assert_eq!(shape.level(1).runs[0].tables[1].range.start.as_ref(), b"d.\\\0");
    }

    #[test]
    fn broken_shapes_are_refused() {
        for text in [
            "L0: 1=a..=b:1",
            "L0 r1 1=a..=b:1",
            "L0 r1: 1=a:1",
            "L0 r1: 1=a..=b",
            "L0 r1: 1=a..=b:1,color=3",
            "L0 r1: 1=a..=b:1 1=c..=d:1",
            "L0 r1: 1=a..=c:1 2=c..=d:1",
            "L0 r1: 1=c..=a:1",
            "L999999999999 r1: 1=a..=b:1",
            "L0 r1: 1=\\xz..=b:1",
            "L0 r1: 1=a..=b:1,values=3:1/1",
            "L0 r1: 1=a..=b:1,values=4:1/1+3:1/1\nV 3: 1\nV 4: 1",
            "L0 r1: 1=a..=b:1,values=3\nV 3: 1",
            "V 3: 1,state=lost",
            "V x: 1",
        ] {
            assert!(text.parse::<TreeShape>().is_err(), "{text}");
        }
    }
}

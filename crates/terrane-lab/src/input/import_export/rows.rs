//! Entries from rows of fields.

use super::columns::{Columns, EXPIRY, KEY, Layout, VALUE, ValueColumns, ValueLayout};
use super::entry::{Entry, EntryFormat, parse_expiry};
use super::fields::Fields;
use super::read_options::{Header, NullRule, ReadOptions, Taken};
use crate::output::human;
use crate::output::json::JsonBytes;

/// Turns rows into entries. The first row decides the columns.
#[derive(Debug)]
pub(super) struct Rows {
    columns: Columns,
    header: Header,
    null: NullRule,
    /// Only a header with an expiry time is recognised, because a dump without expiry times has no header.
    is_header_rare: bool,
    layout: Option<Layout>,
    /// The first row's line, which the message about another number of columns names.
    first_line: u64,
    /// The value, if it consists of several columns.
    composed: Vec<u8>,
    expires_at_micros: Option<u64>,
}

impl Rows {
    pub(super) fn new(options: &ReadOptions, format: EntryFormat) -> Self {
        Self {
            columns: options.columns.clone(),
            header: options.header,
            null: options.null,
            is_header_rare: format == EntryFormat::Tsv,
            layout: None,
            first_line: 0,
            composed: Vec::new(),
            expires_at_micros: None,
        }
    }

    /// Takes a row, which began in a line. Its entry is [`Rows::entry`].
    pub(super) fn take(&mut self, fields: &Fields, line: u64) -> Result<Taken, String> {
        let Some(layout) = &self.layout else { return self.begin(fields, line) };
        if fields.len() != layout.columns {
            let (found, expected) = (fields.len() as u64, layout.columns as u64);
            let (found, expected) = (human::counted(found, "column"), human::count(expected));
            return Err(format!("found {found}, but line {} has {expected}", self.first_line));
        }
        self.expires_at_micros = match layout.expiry.and_then(|at| fields.get(at)) {
            None | Some([]) => None,
            Some(text) => Some(parse_expiry(text)?),
        };
        if fields.get(layout.key).is_none() {
            return self.null.key();
        }
        match &layout.value {
            ValueLayout::One(at) if fields.get(*at).is_none() => return self.null.value(),
            ValueLayout::Object(named) => compose_object(&mut self.composed, named, fields),
            ValueLayout::Array(positions) => compose_array(&mut self.composed, positions, fields),
            ValueLayout::One(_) | ValueLayout::Nothing => {}
        }
        Ok(Taken::Entry)
    }

    /// Returns the entry of the row that [`Rows::take`] took last.
    pub(super) fn entry<'a>(&'a self, fields: &'a Fields) -> Entry<&'a [u8]> {
        let (key, value) = match &self.layout {
            None => (&[][..], &[][..]),
            Some(layout) => {
                let value = match layout.value {
                    ValueLayout::Nothing => &[],
                    ValueLayout::One(at) => fields.text(at),
                    ValueLayout::Object(_) | ValueLayout::Array(_) => &self.composed[..],
                };
                (fields.text(layout.key), value)
            }
        };
        Entry { key, value, expires_at_micros: self.expires_at_micros }
    }

    /// Finds the columns in the first row.
    fn begin(&mut self, fields: &Fields, line: u64) -> Result<Taken, String> {
        let names = fields.names();
        let is_header = match self.header {
            Header::Present => true,
            Header::Absent => false,
            Header::Detect => self.columns.need_names() || self.is_header(&names),
        };
        let layout = Layout::new(&self.columns, is_header.then_some(&names[..]), fields.len())?;
        self.layout = Some(layout);
        self.first_line = line;
        if is_header { Ok(Taken::Header) } else { self.take(fields, line) }
    }

    /// Returns true if the names of a dump's columns are among the fields.
    fn is_header(&self, names: &[String]) -> bool {
        let has = |name: &str| names.iter().any(|found| found.eq_ignore_ascii_case(name));
        let has_expiry = EXPIRY.iter().any(|name| has(name));
        if self.is_header_rare && !has_expiry {
            return false;
        }
        match self.columns.value {
            ValueColumns::Nothing => has(KEY) && names.len() == 1 + usize::from(has_expiry),
            _ => has(KEY) && has(VALUE),
        }
    }
}

fn compose_object(out: &mut Vec<u8>, named: &[(String, usize)], fields: &Fields) {
    out.clear();
    out.push(b'{');
    for (index, (name, at)) in named.iter().enumerate() {
        separate(out, index);
        put_json(out, Some(name.as_bytes()));
        out.push(b':');
        put_json(out, fields.get(*at));
    }
    out.push(b'}');
}

fn compose_array(out: &mut Vec<u8>, positions: &[usize], fields: &Fields) {
    out.clear();
    out.push(b'[');
    for (index, at) in positions.iter().enumerate() {
        separate(out, index);
        put_json(out, fields.get(*at));
    }
    out.push(b']');
}

fn separate(out: &mut Vec<u8>, index: usize) {
    if index > 0 {
        out.push(b',');
    }
}

/// Appends bytes as JSON, or null. Writing to memory does not fail.
fn put_json(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    let _ = serde_json::to_writer(out, &bytes.map(JsonBytes));
}

//! The flags of a file: its columns, its text, and the part to read.

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::exit::usage;
use terrane_lab::input::import_export::{
    Columns, EntryFormat, Header, NullRule, ReadOptions, ValueColumns, source,
};

const COLUMNS: &str = "Columns";
const TEXT: &str = "Text";

/// How to read a file.
#[derive(Debug, Clone, Args)]
pub(super) struct ReadFlags {
    /// The column of the key: its name in the header or its number from 1; in jsonl the name of a field
    #[arg(long, value_name = "COLUMN", help_heading = COLUMNS)]
    key: Option<String>,

    /// The column of the value; several with commas, or * for all, become a JSON value. Others are left out
    #[arg(long, value_name = "COLUMNS", help_heading = COLUMNS)]
    value: Option<String>,

    /// The column of the expiry time, in microseconds since the Unix epoch
    #[arg(long, value_name = "COLUMN", help_heading = COLUMNS)]
    expiry: Option<String>,

    /// Read keys without values, such as a list of words
    #[arg(long, conflicts_with = "value", help_heading = COLUMNS)]
    keys_only: bool,

    /// The first row names the columns [default: if it has key and value, or if columns are given by name]
    #[arg(long, help_heading = COLUMNS)]
    header: bool,

    /// The first row is an entry
    #[arg(long, conflicts_with = "header", help_heading = COLUMNS)]
    no_header: bool,

    /// The character between columns, or tab [default: a tab in tsv, a comma in csv]
    #[arg(long, value_name = "CHARACTER", help_heading = TEXT, value_parser = delimiter)]
    delimiter: Option<u8>,

    /// Read backslashes of tsv, and objects {"hex":…} of jsonl, as text
    #[arg(long, help_heading = TEXT)]
    raw: bool,

    /// What to do with null, which is \N in tsv and null in jsonl
    #[arg(long, value_name = "RULE", help_heading = TEXT, default_value = "error")]
    null: NullFlag,

    /// The encoding, such as utf-16le, latin1 or shift_jis [default: by the byte order mark; else none]
    #[arg(long, value_name = "NAME", help_heading = TEXT)]
    encoding: Option<String>,

    /// Leave out the first lines, before the header
    #[arg(long, value_name = "N", help_heading = TEXT, default_value_t = 0)]
    skip_lines: u64,

    /// Load only the entries from this line on; the header is still read
    #[arg(long, value_name = "LINE", help_heading = TEXT, default_value_t = 0)]
    from_line: u64,
}

/// The value of `--null`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum NullFlag {
    /// Stop with an error
    Error,
    /// Store an empty value
    Empty,
    /// Leave out the row
    Skip,
}

impl From<NullFlag> for NullRule {
    fn from(flag: NullFlag) -> Self {
        match flag {
            NullFlag::Error => Self::Refuse,
            NullFlag::Empty => Self::Empty,
            NullFlag::Skip => Self::Skip,
        }
    }
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text {
        "tab" | "\\t" => Ok(b'\t'),
        _ => match text.as_bytes() {
            [b'"' | b'\n' | b'\r' | b'\\'] => {
                Err("a quote, backslash or line end cannot separate".into())
            }
            [one] if one.is_ascii() => Ok(*one),
            _ => Err("expected one ASCII character, or tab".into()),
        },
    }
}

impl ReadFlags {
    /// Returns true if the values are left out.
    pub(super) fn are_keys_only(&self) -> bool {
        self.keys_only
    }

    /// Returns the options of a reader of a format.
    pub(super) fn options(&self, format: EntryFormat) -> Result<ReadOptions> {
        if let Some(flag) = self.inapplicable(format) {
            return Err(usage(format!("{flag} does not apply to the format {}", format.name())));
        }
        let value = match &self.value {
            _ if self.keys_only => ValueColumns::Nothing,
            None => ValueColumns::Unspecified,
            Some(text) => ValueColumns::parse(text),
        };
        let header = match (self.header, self.no_header) {
            (true, _) => Header::Present,
            (_, true) => Header::Absent,
            _ => Header::Detect,
        };
        let columns = Columns { key: self.key.clone(), value, expiry: self.expiry.clone() };
        if header == Header::Absent && columns.need_names() {
            return Err(usage("columns have names only with a header; give their numbers"));
        }
        let encoding = self.encoding.as_deref().map(source::encoding_named).transpose();
        Ok(ReadOptions {
            columns,
            header,
            delimiter: self.delimiter,
            is_raw: self.raw,
            null: self.null.into(),
            encoding: encoding.map_err(usage)?,
            skip_lines: self.skip_lines,
            from_line: self.from_line,
        })
    }

    /// Returns a given flag that has no meaning in a format.
    fn inapplicable(&self, format: EntryFormat) -> Option<&'static str> {
        use EntryFormat::{Csv, Jsonl, Tsv};
        let flags: [(bool, &'static str, &[EntryFormat]); 12] = [
            (self.key.is_some(), "--key", &[Tsv, Csv, Jsonl]),
            (self.value.is_some(), "--value", &[Tsv, Csv, Jsonl]),
            (self.expiry.is_some(), "--expiry", &[Tsv, Csv, Jsonl]),
            (self.keys_only, "--keys-only", &[Tsv, Csv, Jsonl]),
            (self.header, "--header", &[Tsv, Csv]),
            (self.no_header, "--no-header", &[Tsv, Csv]),
            (self.delimiter.is_some(), "--delimiter", &[Tsv, Csv]),
            (self.raw, "--raw", &[Tsv, Jsonl]),
            (self.null != NullFlag::Error, "--null", &[Tsv, Jsonl]),
            (self.encoding.is_some(), "--encoding", &[Tsv, Csv, Jsonl]),
            (self.skip_lines > 0, "--skip-lines", &[Tsv, Csv, Jsonl]),
            (self.from_line > 0, "--from-line", &[Tsv, Csv, Jsonl]),
        ];
        let mut flags = flags.into_iter();
        flags
            .find(|(is_given, _, formats)| *is_given && !formats.contains(&format))
            .map(|found| found.1)
    }
}

//! Keys and values in files: what `load` reads and `dump` writes.
//!
//! | format | an entry |
//! |---|---|
//! | `tsv` | a line: key, tab, value; control characters are escaped |
//! | `csv` | a line, or several with a quoted field: key, comma, value |
//! | [`jsonl`] | a line: `{"key":…,"value":…}` |
//! | [`pairs`] | eight bytes: two numbers of the CS 265 binary files |
//!
//! [`EntryReader`] reads texts of other programs too: with any columns, names, delimiters, encodings and line ends.
//! [`EntryWriter`] writes files that it reads back, byte for byte.
//!
//! | module | one line |
//! |---|---|
//! | `source` | the text of a file: encodings and compression |
//! | `reader`, `writer` | entries from and to text |
//! | `csv`, `tsv`, `jsonl`, `pairs` | the formats |
//! | `columns`, `rows`, `fields` | entries from columns |
//! | `entry`, `read_options` | an entry; how to read a text |
//!
//! An expiry time, in microseconds since the Unix epoch, is the column `expires_at_micros` of `csv` and `tsv`, which
//! a header must name, and the field of that name in [`jsonl`]; [`pairs`] cannot store it.
//!
//! Invariants:
//! 1. A row is returned, counted in [`Skipped`], or an error. No row is left out in silence.
//! 2. A column is part of an entry, unless the caller left it out by selecting others.

mod columns;
mod csv;
mod entry;
mod fields;
pub mod jsonl;
pub mod pairs;
mod read_options;
mod reader;
mod rows;
pub mod source;
#[cfg(test)]
mod tests;
mod tsv;
mod writer;

pub use columns::{Columns, ValueColumns};
pub use entry::{Entry, EntryFormat};
pub use read_options::{Header, NullRule, ReadOptions, RowError, Skipped};
pub use reader::{EntryReader, NumberedEntry};
pub use writer::{EntryWriter, Parts, WriteOptions};

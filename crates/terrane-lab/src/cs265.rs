//! The command language of Harvard's CS 265, on a database.
//!
//! | command | answer |
//! |---|---|
//! | `p KEY VALUE` | none; sets the value of a key |
//! | `g KEY` | a line: the value, or nothing |
//! | `r KEY KEY` | a line: `key:value` separated by blanks, from the first key up to but not including the last |
//! | `d KEY` | none; removes a key |
//! | `l "PATH"` | none; sets all pairs of a binary file |
//! | `s` | statistics, see `statistics` |
//!
//! Keys and values are signed 32-bit numbers; the value -2147483648 is reserved because it is Dent's
//! tombstone. Any other line is reported with its number; the lines before and after it still run.
//!
//! The depth of a tree is unlimited unless a [`FixedDepth`] limits it, as in the paper.

mod command;
mod depth;
mod pending;
mod session;
mod statistics;
mod tree;

pub use depth::FixedDepth;
pub use session::Cs265Session;
pub use tree::DentTree;

use anyhow::{Result, anyhow};

use crate::input::import_export::pairs::decode;
use crate::input::kv_literal;

/// Entries of a page: Dent's pages have 4096 bytes, his entries 8.
pub const PAGE_ENTRIES: u64 = 512;

/// Decodes a number of the database.
fn number(bytes: &[u8]) -> Result<i32> {
    decode(bytes).ok_or_else(|| {
        let literal = kv_literal::print(bytes);
        anyhow!("the database holds {literal}, which is not a CS 265 entry")
    })
}

//! `terrane inspect manifest`: the edits that made a tree what it is.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use serde::Serialize;
use terrane::inspect;

use crate::json::{SCHEMA, write_line};

#[derive(Serialize)]
struct JsonEdit<'a> {
    schema: u32,
    version: u64,
    epoch: u64,
    changes: &'a [String],
}

pub(super) fn run(path: &Path, json: bool) -> Result<()> {
    let edits = inspect::manifest(path)?;
    let mut out = io::stdout().lock();
    for edit in &edits {
        let (version, epoch, changes) = (edit.version, edit.epoch, &edit.changes[..]);
        if json {
            write_line(&mut out, &JsonEdit { schema: SCHEMA, version, epoch, changes })?;
            continue;
        }
        writeln!(out, "edit {version}, opening {epoch}")?;
        for change in changes {
            writeln!(out, "  {change}")?;
        }
    }
    Ok(out.flush()?)
}

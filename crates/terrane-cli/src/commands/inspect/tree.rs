//! `terrane inspect tree`: the trees of a database, as they are on disk and in its log.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use terrane::Db;

use crate::json::write_line;
use crate::open;
use crate::picture::{JsonTree, by_key, by_size};
use crate::terminal::Paint;

pub(super) fn run(path: &Path, json: bool) -> Result<()> {
    let db = Db::open_read_only(path)?;
    let mut out = io::stdout().lock();
    for name in db.keyspaces() {
        let view = open::keyspace(&db, &name)?.tree();
        if json {
            write_line(&mut out, &JsonTree::of(&view))?;
            continue;
        }
        let paint = Paint::stdout();
        writeln!(out, "{}", paint.bold(&format!("{name}: {}", view.design)))?;
        // Whoever only reads has flushed and compacted nothing.
        out.write_all(by_size(&view, None, paint).as_bytes())?;
        if view.shape.run_count() > 0 {
            writeln!(out, "\n{}", by_key(&view, paint))?;
        }
    }
    Ok(out.flush()?)
}

//! `terrane inspect tree`: the levels, runs and tables of a database.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use terrane::Db;

use crate::exit::Exit;
use crate::open;
use crate::picture::{JsonTree, by_key, by_size};
use crate::terminal::Paint;
use terrane_lab::json::write_line;

/// The trees of a database, level by level.
#[derive(Debug, Clone, Args)]
pub(crate) struct TreeArgs {
    /// The directory of the database
    path: PathBuf,

    /// The keyspace [default: all of them]
    #[arg(long, value_name = "NAME")]
    keyspace: Option<String>,

    /// Only this picture [default: both]
    #[arg(long, value_name = "AXIS")]
    by: Option<Axis>,

    /// Write an object a line for programs, with every table
    #[arg(long)]
    json: bool,
}

/// What a picture is drawn along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Axis {
    /// How full the levels are
    Size,
    /// Where the tables lie among the keys
    Key,
}

impl TreeArgs {
    /// Draws them.
    pub(super) fn run(&self) -> Result<Exit> {
        let db = Db::open_read_only(&self.path)?;
        let names = self.keyspace.clone().map_or_else(|| db.keyspaces(), |name| vec![name]);
        let mut out = BufWriter::new(io::stdout().lock());
        let paint = Paint::stdout();
        for (number, name) in names.iter().enumerate() {
            let view = open::keyspace(&db, name)?.tree();
            if self.json {
                write_line(&mut out, &JsonTree::of(&view))?;
                continue;
            }
            let gap = if number > 0 { "\n" } else { "" };
            writeln!(out, "{gap}keyspace {} · {}", paint.bold(name), view.design)?;
            if self.by != Some(Axis::Key) {
                write!(out, "{}", by_size(&view, None, paint))?;
            }
            if self.by == Some(Axis::Key) || self.by.is_none() && view.shape.run_count() > 0 {
                write!(out, "{}", by_key(&view, paint))?;
            }
        }
        out.flush()?;
        Ok(Exit::Done)
    }
}

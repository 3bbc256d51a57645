//! `terrane inspect tree`: the levels, runs and tables of a database.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::exit::Exit;
use crate::open;
use crate::output;
use crate::picture::{JsonTree, by_key, by_size, expiry};
use crate::terminal::{Paint, picture_columns};
use crate::time::now_micros;
use terrane_lab::output::json::write_line;

/// Draw the trees of a database, level by level
#[derive(Debug, Clone, Args)]
pub(crate) struct TreeArgs {
    /// The directory of the database
    path: PathBuf,

    /// The keyspace [default: all of them]
    #[arg(long, value_name = "NAME")]
    keyspace: Option<String>,

    /// Draw only this picture [default: both]
    #[arg(long, value_name = "AXIS")]
    by: Option<Axis>,

    /// Print a JSON object per line, with every table
    #[arg(long)]
    json: bool,
}

/// The axis of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Axis {
    /// Fill of the levels
    Size,
    /// Position of the tables among the keys
    Key,
}

impl TreeArgs {
    /// Draws the trees.
    pub(super) fn run(&self) -> Result<Exit> {
        let db = open::read_only(&self.path)?;
        let names = self.keyspace.clone().map_or_else(|| db.keyspaces(), |name| vec![name]);
        let mut out = BufWriter::new(output::text_or_json(self.json));
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
                write!(out, "{}", by_size(&view, None, picture_columns(), paint))?;
            }
            if self.by == Some(Axis::Key) || self.by.is_none() && view.shape.run_count() > 0 {
                write!(out, "{}", by_key(&view, picture_columns(), paint))?;
            }
            if let Some(expiry) = expiry(&view, now_micros()) {
                writeln!(out, "{expiry}")?;
            }
        }
        out.flush()?;
        Ok(Exit::Done)
    }
}

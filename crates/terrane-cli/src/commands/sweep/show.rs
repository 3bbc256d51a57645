//! Prints the results of a sweep: how one metric depends on one parameter.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use terrane_lab::sweep;
use terrane_lab::sweep::pivot::{Pivot, PivotOptions};

use crate::exit::Exit;
use crate::output;
use crate::table::{Align, lines, table};
use terrane_lab::output::human;

/// Print or plot a metric of a sweep against a parameter
#[derive(Debug, Clone, Args)]
pub(super) struct ShowArgs {
    /// The directory of the results
    dir: PathBuf,

    /// The parameter of the columns
    #[arg(long, value_name = "PARAMETER")]
    x: String,

    /// The metric: a field of the rows of `terrane bench --json`, such as write_amplification,
    /// latency_micros.p99 or, of one workload, readrandom/ops_per_second; without a workload, the
    /// last one that has the field
    #[arg(long, value_name = "METRIC")]
    y: String,

    /// The parameter of the lines
    #[arg(long, value_name = "PARAMETER")]
    by: Option<String>,

    /// Only experiments with this value of a parameter; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    only: Vec<String>,

    /// Write CSV
    #[arg(long)]
    csv: bool,

    /// Write a picture to a file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Use a logarithmic vertical axis in the picture
    #[arg(long, requires = "svg")]
    log: bool,
}

impl ShowArgs {
    /// Prints the metric.
    pub(super) fn run(&self) -> Result<Exit> {
        let (results, others) = sweep::of_last_program(sweep::read(&self.dir)?);
        if others > 0 {
            let _ = writeln!(
                io::stderr(),
                "note: {} of other programs are left out",
                human::counted(others as u64, "result")
            );
        }
        if results.is_empty() {
            let dir = self.dir.display();
            anyhow::bail!("{dir} holds no results; name the directory given to `sweep --out`");
        }
        let options = PivotOptions {
            x: self.x.clone(),
            y: self.y.clone(),
            by: self.by.clone(),
            only: self.only.clone(),
        };
        let pivot = Pivot::new(options, results, &self.dir)?;
        if !pivot.mixed.is_empty() {
            let _ = writeln!(
                io::stderr(),
                "note: medians are over experiments that differ in {}; see --by and --only",
                pivot.mixed.join(", ")
            );
        }
        let mut out = output::text();
        if self.csv {
            pivot.csv(&mut out)?;
        } else {
            write_table(&mut out, &pivot)?;
        }
        if let Some(path) = &self.svg {
            fs::write(path, pivot.plot(self.log).svg())
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(Exit::Done)
    }
}

fn write_table(out: &mut dyn Write, pivot: &Pivot) -> io::Result<()> {
    let PivotOptions { x, y, by, .. } = pivot.options();
    let corner = format!("{} \\ {x}", by.as_deref().unwrap_or(""));
    let mut headers = vec![(corner.as_str(), Align::Left)];
    headers.extend(pivot.columns.iter().map(|column| (column.as_str(), Align::Right)));
    let mut table = table(&headers);
    for (name, values) in &pivot.rows {
        let cell = |column: &String| {
            values.get(column).map_or("-".to_owned(), |value| human::number(*value))
        };
        table.add_row(std::iter::once(name.clone()).chain(pivot.columns.iter().map(cell)));
    }
    writeln!(out, "{y}")?;
    for line in lines(&table) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

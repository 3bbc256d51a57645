//! `terrane-papers list`: the experiments and their costs.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, write_line};

use crate::experiments::{self, Experiment, ExperimentCost};

/// List the experiments with their papers, figures, claims and costs
#[derive(Debug, Clone, Args)]
pub(super) struct ListArgs {
    /// Print a JSON object per experiment
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct JsonExperiment<'a> {
    schema: u32,
    experiment: &'a str,
    paper: &'a str,
    about: &'a str,
    figures: &'a [&'a str],
    claims: usize,
    minutes: u32,
    disk_mib: u32,
    default_scale: f64,
    scale_of: &'a str,
}

impl ListArgs {
    /// Prints the list.
    pub(super) fn run(&self) -> Result<()> {
        let mut out = io::stdout().lock();
        for experiment in experiments::ALL {
            let claims = experiment.claims()?.claims.len();
            if self.json {
                write_line(&mut out, &JsonExperiment::of(experiment, claims))?;
            } else {
                print(&mut out, experiment, claims)?;
            }
        }
        Ok(())
    }
}

impl<'a> JsonExperiment<'a> {
    fn of(experiment: &Experiment, claims: usize) -> JsonExperiment<'a> {
        let Experiment { name, paper, about, cost, figures, default_scale, scale_of, .. } =
            *experiment;
        let ExperimentCost { minutes, disk_mib } = cost;
        JsonExperiment {
            schema: SCHEMA,
            experiment: name,
            paper,
            about,
            figures,
            claims,
            minutes,
            disk_mib,
            default_scale,
            scale_of,
        }
    }
}

fn print(out: &mut dyn Write, experiment: &Experiment, claims: usize) -> io::Result<()> {
    let Experiment { name, paper, about, cost, figures, default_scale, scale_of, .. } = experiment;
    writeln!(out, "{}: {about}", name)?;
    writeln!(out, "  {paper}")?;
    writeln!(out, "  {}; {}", figures.join(", "), human::counted(claims as u64, "claim"))?;
    let scale = match *default_scale {
        scale if scale < 1.0 => format!("{scale:.4} (1/{:.0})", 1.0 / scale),
        scale => scale.to_string(),
    };
    writeln!(out, "  default scale {scale}, a share of {scale_of}")?;
    let disk = match cost.disk_mib {
        0 => "no disk space".to_owned(),
        mib => format!("{} of disk space", human::bytes(u64::from(mib) << 20)),
    };
    let minutes = human::counted(cost.minutes.into(), "minute");
    writeln!(out, "  about {minutes} on two cores at the default options, {disk}")
}

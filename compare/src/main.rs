//! Runs the same key-value workloads on several storage engines and compares them.
//!
//! The process that the user starts is the parent: it plans the measurements, starts a child
//! process for each ([`parent`]) and shows the results ([`table`]). A child measures one engine on
//! one row ([`child`]) and answers on its standard output ([`job`]).
//!
//! | module | one line |
//! |---|---|
//! | [`cli`] | the command line |
//! | [`rows`] | the rows: workloads and their sizes |
//! | [`settings`] | the settings with which every engine is opened |
//! | [`engines`] | the engines: one line and one file each |
//! | [`job`], [`record`] | messages between parent and child, and stored results |
//! | [`child`], [`process`] | runs a measurement; resource usage of the process |
//! | [`parent`], [`machine`] | runs the comparison; describes the machine |
//! | [`memory_limit`] | limits the memory of a measurement |
//! | [`statistics`], [`table`] | medians and ratios; Markdown |
//! | [`recording`] | records the decisions of other systems |
//! | [`stability`] | the two-phase evaluation of write stalls |

mod child;
mod cli;
mod engines;
mod job;
mod machine;
mod memory_limit;
mod parent;
mod process;
mod record;
mod recording;
mod rows;
mod settings;
mod stability;
mod statistics;
mod table;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use terrane_workload::Progress;

use cli::{Arguments, Command};
use parent::{Ending, Interrupt};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ended = match arguments.command {
        None => Interrupt::listen()
            .and_then(|interrupt| parent::compare(&arguments.compare, &interrupt))
            .map(exit_code),
        Some(Command::List) => list().map(|()| ExitCode::SUCCESS),
        Some(Command::Stability(arguments)) => Interrupt::listen()
            .and_then(|interrupt| stability::compare(&arguments, &interrupt))
            .map(exit_code),
        Some(Command::Record(arguments)) => {
            recording::record(&arguments).map(|()| ExitCode::SUCCESS)
        }
        Some(Command::Child { job }) => child(&job).map(|()| ExitCode::SUCCESS),
        Some(Command::StabilityChild { job }) => stability::child(&job).map(|()| ExitCode::SUCCESS),
    };
    ended.unwrap_or_else(|error| {
        let _ = writeln!(std::io::stderr(), "terrane-compare: {error:#}");
        ExitCode::FAILURE
    })
}

/// The exit status that a shell reports for a process killed by SIGINT.
const EXIT_INTERRUPTED: u8 = 130;

fn exit_code(ending: Ending) -> ExitCode {
    match ending {
        Ending::Complete => ExitCode::SUCCESS,
        Ending::WithFailures => ExitCode::FAILURE,
        Ending::Interrupted => ExitCode::from(EXIT_INTERRUPTED),
    }
}

/// Prints the names of the engines and the rows.
fn list() -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "engines:")?;
    for engine in engines::ALL {
        writeln!(stdout, "  {:<16} {}; {}", engine.name, (engine.version)(), engine.promise)?;
    }
    writeln!(stdout, "workloads:")?;
    for row in &rows::ALL {
        writeln!(stdout, "  {:<16} {}", row.name, row.description())?;
    }
    Ok(())
}

/// Runs the measurement `job` and prints the result as JSON.
fn child(job: &str) -> Result<()> {
    let job = serde_json::from_str(job).context("the job")?;
    let measurement = child::measure(&job, &Bar)?;
    serde_json::to_writer(std::io::stdout().lock(), &measurement)?;
    Ok(())
}

/// Shows the progress of a measurement on the parent's current line, on a terminal only.
struct Bar;

impl Progress for Bar {
    fn update(&self, done: u64, total: u64, _elapsed: Duration) {
        let mut stderr = std::io::stderr();
        if stderr.is_terminal() {
            let percent = done * 100 / total.max(1);
            // Print five columns, then move the cursor back.
            let _ = write!(stderr, "{percent:>3} %\x1b[5D");
        }
    }
}

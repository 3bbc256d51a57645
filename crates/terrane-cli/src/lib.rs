//! The `terrane` command: benchmark, inspect and operate LSM databases.
//!
//! A subcommand is a module of `commands` with its arguments and a `run`; what several of them
//! need lies beside it.
//!
//! | module | one line |
//! |---|---|
//! | `cli` | the command line as a whole |
//! | `commands` | the subcommands |
//! | `engine_flags` | a flag for every option of the engine |
//! | `format_flag` | the flag `--format` of `load` and `dump` |
//! | `open` | opens databases and keyspaces for commands |
//! | `output` | documents, to a file or to standard output |
//! | `picture` | a tree as people see it |
//! | `table`, `terminal` | tables, colours |
//! | `time` | moments as people read them |
//! | `exit` | exit codes |
//!
//! Manners: standard output carries data only, progress and messages go to standard error. Output
//! is for people on a terminal, plain when piped, and JSON with `--json`. Exit codes: 0 done,
//! 1 error, 2 usage, 4 corruption found, 5 database in use, 130 interrupted. A reader that goes
//! away, as `head` does, ends a command quietly.
#![forbid(unsafe_code)]

mod cli;
mod commands;
mod engine_flags;
mod events;
mod exit;
mod format_flag;
mod open;
mod output;
mod picture;
mod problems;
mod table;
mod terminal;
mod time;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use terrane_lab::interrupt;

/// Runs the command that the arguments of the process ask for.
pub fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let exit = match cli.command.run() {
        Ok(exit) => exit,
        Err(error) => {
            interrupt::wait_if_ending();
            if !exit::is_broken_pipe(&error) {
                complain(&error);
            }
            exit::exit_of(&error)
        }
    };
    exit.into()
}

/// Says on standard error what went wrong. That no one listens there is no error.
fn complain(error: &anyhow::Error) {
    let label = terminal::Paint::stderr().red("error:");
    let _ = writeln!(std::io::stderr(), "{label} {}", exit::sentence(error));
}

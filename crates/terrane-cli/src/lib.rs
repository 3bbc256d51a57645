//! The `terrane` command: benchmark, inspect and operate LSM databases.
//!
//! A subcommand is a module of `commands` with its arguments and a `run`, which prints the results
//! of a library.
//!
//! | module | one line |
//! |---|---|
//! | `cli`, `help` | the command line and its help |
//! | `commands` | the subcommands |
//! | `engine_flags` | a flag for every option of the engine |
//! | `format_flag` | the flag `--format` of `load` and `dump` |
//! | `open` | opens databases and keyspaces for commands |
//! | `database` | a database that this process or another one has open |
//! | `control` | the control socket of a database that a command has open |
//! | `output` | standard output for data, people and documents |
//! | `picture` | pictures of a tree |
//! | `table`, `wrap`, `terminal` | tables, long lines, colours and width |
//! | `time` | timestamps as people read them |
//! | `web` | pages for browsers on this machine |
//! | `exit` | exit codes |
//!
//! Standard output carries only data; progress and messages go to standard error. Output is
//! formatted on a terminal, plain when piped, and JSON with `--json`. Text for people fits the
//! terminal, or the columns that `COLUMNS` names. Exit codes: 0 done, 1 error, 2 usage, 4
//! corruption found, 5 database in use, 130 interrupted. A closed pipe, as from `head`, ends a
//! command quietly.
#![forbid(unsafe_code)]

mod cli;
mod commands;
mod control;
mod database;
mod engine_flags;
mod events;
mod exit;
mod format_flag;
mod help;
mod open;
mod output;
mod picture;
mod problems;
mod statistics;
mod table;
mod terminal;
mod time;
mod web;
mod wrap;

use std::process::ExitCode;

use terrane_lab::host::interrupt;

/// Runs the command that the arguments of the process describe.
pub fn main() -> ExitCode {
    block_size_signal();
    let cli = cli::parse();
    let exit = match cli.command.run() {
        Ok(exit) => exit,
        Err(error) => {
            interrupt::wait_if_ending();
            if !exit::is_broken_pipe(&error) {
                exit::print_error(&error);
            }
            exit::exit_of(&error)
        }
    };
    exit.into()
}

/// Makes a write behind the limit for the size of a file (`ulimit -f`) fail with an error, where SIGXFSZ
/// would end the process without a word. All threads inherit the blocked signal.
#[cfg(unix)]
fn block_size_signal() {
    use nix::sys::signal::{SigSet, Signal};
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGXFSZ);
    // If that fails, the signal has its usual effect.
    let _ = signals.thread_block();
}

#[cfg(not(unix))]
fn block_size_signal() {}

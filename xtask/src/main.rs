//! Project automation: `cargo xtask COMMAND`.
//!
//! | module | one line |
//! |---|---|
//! | `ci` | what every change must pass |
//! | `soak` | the random tests of the engine at length, with fresh seeds |
//! | `checkers` | loom, Miri and fuzzing: slow, thorough, and partly in need of nightly |
//! | `step` | runs a command, and says how long it took |
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

mod checkers;
mod ci;
mod soak;
mod step;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask COMMAND

  ci                           format, clippy, tests and documentation, as CI runs them
  soak [--minutes N] [--seed S]  random tests of the engine in rounds; N is 10, S is the time
  loom                         all orders of the threads of small tests of the lock-free parts
  miri [PART]                  the tests of the unsafe code in an interpreter (nightly); of
                               PART, a file of tests, such as flodb, or a part of their names,
                               such as hash_vector:: for one memtable
  fuzz [TARGET] [--seconds N]  every decoder, or one, with bytes that a fuzzer makes up (nightly)";

/// What a command says when it cannot go on.
type Outcome = Result<(), String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["ci"] => ci::run(),
        ["soak", ref rest @ ..] => match soak::Plan::parse(rest) {
            Some(plan) => soak::run(&plan),
            None => return usage(),
        },
        ["loom"] => checkers::loom(),
        ["miri"] => checkers::miri(None),
        ["miri", part] if !part.starts_with('-') => checkers::miri(Some(part)),
        ["fuzz", ref rest @ ..] => match checkers::Fuzz::parse(rest) {
            Some(fuzz) => checkers::fuzz(&fuzz),
            None => return usage(),
        },
        _ => return usage(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

/// The number after a flag such as `--seed`, or `default`; `None` if it is not a number.
fn number_after(words: &[&str], flag: &str, default: u64) -> Option<u64> {
    match words.iter().position(|word| *word == flag) {
        Some(at) => words.get(at + 1)?.parse().ok(),
        None => Some(default),
    }
}

/// Whether every word is one of the flags, or the value of one.
fn are_flags(words: &[&str], flags: &[&str]) -> bool {
    words.chunks(2).all(|pair| pair.len() == 2 && flags.contains(&pair[0]))
}

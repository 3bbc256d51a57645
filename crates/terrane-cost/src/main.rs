//! Runs operations of the engine, of the C interface and of the server on small databases, always the same, so
//! that their costs can be counted. `cargo xtask cost` runs this program under callgrind.
//!
//! Each operation is a function that repeats it; the callgrind costs of that function, with all that it calls,
//! are those of its repetitions. For each, this program prints a line of tab-separated numbers: the name of the
//! function, the repetitions, the allocations and the allocated bytes of the calling thread, and the bytes that
//! the database read and wrote.
//!
//! With the feature `interfaces`, `terrane-cost capi` does the same for the C interface. A server works in threads of
//! its own: `terrane-cost server COMMAND COUNT` sends it a command COUNT times, so that the difference of two runs is
//! the cost of the command.
//!
//! | module | one line |
//! |---|---|
//! | `operation` | an operation, and its measurement |
//! | `data` | keys and values |
//! | `engine` | puts, batches, transactions, lookups and scans |
//! | `capi` | puts and lookups through the C interface; unsafe code |
//! | `server` | commands over a socket |
//! | `allocations` | counts the allocations of a thread; unsafe code |
#![allow(clippy::print_stdout, reason = "a program for the terminal")]

mod allocations;
#[cfg(feature = "interfaces")]
mod capi;
mod data;
mod engine;
mod operation;
#[cfg(feature = "interfaces")]
mod server;

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

fn main() -> operation::Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [] => engine::measure(),
        #[cfg(feature = "interfaces")]
        ["capi"] => capi::measure(),
        #[cfg(feature = "interfaces")]
        ["server", command, count] => server::run(command, count.parse()?),
        _ => Err("usage: terrane-cost [capi | server COMMAND COUNT]".into()),
    }
}

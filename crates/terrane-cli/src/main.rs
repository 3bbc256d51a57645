//! The `terrane` command; the library holds its code, so that unit tests can call it.

use std::process::ExitCode;

fn main() -> ExitCode {
    terrane_cli::main()
}

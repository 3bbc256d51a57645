//! The program `terrane-papers`; the library holds its code, so that tests can call it.

use std::process::ExitCode;

fn main() -> ExitCode {
    terrane_papers::commands::main()
}

//! Project automation: `cargo xtask COMMAND`.
//!
//! | module | one line |
//! |---|---|
//! | `ci` | the checks that every change must pass |
//! | `beside` | runs a command concurrently with others |
//! | `house` | sizes, import cycles and the voice of the prose, against committed limits |
//! | `cost` | instructions, allocations and system calls of operations, against a committed table |
//! | `clients` | interfaces of the engine other than Rust, with the clients of their users |
//! | `pair` | this commit against an earlier one, in turns |
//! | `platforms` | the engine checked for the platforms that it supports |
//! | `page` | the page of the explorer, built and compared with the committed one |
//! | `package` | the published crates, packaged and built as their users get them |
//! | `release` | a release, its checks and its rehearsal; rules and lists of dependencies |
//! | `dist` | the files of a release: makes each, installs it and uses it |
//! | `figures` | the age of the figures in documents |
//! | `report` | the table of the steps of a release |
//! | `site` | the documents as a site, and their links |
//! | `soak` | the random tests of the engine at length, with fresh seeds |
//! | `checkers` | loom and fuzzing: slow and thorough; fuzzing needs nightly |
//! | `mutants` | changes of the source that named tests must notice |
//! | `miri` | the tests of unsafe code in an interpreter; needs nightly |
//! | `flags` | flags of commands |
//! | `step` | runs a command and reports its time |
//! | `tool` | tools that a machine may lack; programs without an environment |
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

mod beside;
mod checkers;
mod ci;
mod clients;
mod cost;
mod dist;
mod figures;
mod flags;
mod house;
mod miri;
mod mutants;
mod package;
mod page;
mod pair;
mod platforms;
mod release;
mod report;
mod site;
mod soak;
mod step;
mod tool;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask COMMAND

  ci [CLIENT...]               the checks that CI runs: format, house rules, lints, tests, ..., and the
                               named tests of 'clients'
  checks                       the steps of ci that run alongside the tests: the minimum Rust,
                               platforms, loom, packages, costs, some mutants, documentation
  house [--list | --lower]     sizes, import cycles and voice, against xtask/house.toml; --list
                               prints every finding, --lower writes the values that fell
  cost [--write]               instructions, atomic operations, system calls, allocations and bytes of
                               operations, against docs/cost.md; needs Valgrind; --write writes them
  pair [COMMIT] [--rounds N]   'terrane bench' of this commit against that of an earlier one, by default
                               the last release, in N rounds (5); fails if a workload became slower
  clients [NAME...]            test interfaces other than Rust, or all of them, concurrently, with real
                               clients; installs missing packages (clients/README.md)
  page [--check]               build the page of the explorer (Node 20) into crates/terrane-cli/page;
                               --check: compare it with the committed one
  site [--out DIR]             the documents with search and the explorer as a site, by default in
                               target/book/site; checks every link (mdBook, installed if missing)
  platforms                    check the engine for the platforms that it supports
  package                      package every published crate in order, and build each package
  release [--execute | --dry-run]  check versions, changelog, formats and packages; --execute runs CI,
                               publishes the crates and sets the tag; --dry-run also makes and uses
                               every file of dist, and prints what was done, skipped or is to do
  dist [PART...] [--strict]    make the files of a release for this machine in target/dist/files,
                               install and use each; PART is command, library, deb, wheel, sbom,
                               image or sums; --strict: a part that is skipped is a failure
  deny                         licences, sources and advisories of all dependencies (cargo-deny)
  sbom                         a bill of materials for each crate (cargo-cyclonedx)
  soak [--minutes N] [--seed S]  random tests of the engine in rounds; N defaults to 10, S to the
                               time
  loom                         all thread interleavings of small tests of the lock-free parts
  mutants [NAME...]            tests that must fail: each runs with a change of the source that
                               xtask/mutants lists; NAME is the beginning of names
  miri [PART] [--seeds N]      the tests of the unsafe code in an interpreter (nightly), and those with
                               several threads N times; PART is memtable, buffer, maps, ownership, a
                               test file of the memtables, such as flodb, or a text in test names
  fuzz [TARGET] [--seconds N]  every decoder, or one, with generated input (nightly)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["ci", ref clients @ ..] if !clients.iter().any(|name| name.starts_with('-')) => {
            ci::run(clients)
        }
        ["checks"] => ci::checks(),
        ["house", ref rest @ ..] => match house::Mode::parse(rest) {
            Some(mode) => house::run(mode),
            None => return usage(),
        },
        ["clients", ref names @ ..] if !names.iter().any(|name| name.starts_with('-')) => {
            clients::run(names, None)
        }
        ["cost", ref rest @ ..] => match cost::Mode::parse(rest) {
            Some(mode) => cost::run(mode),
            None => return usage(),
        },
        ["pair", ref rest @ ..] => match pair::PairArguments::parse(rest) {
            Some(pair) => pair::run(&pair),
            None => return usage(),
        },
        ["page"] => page::run(page::PageMode::Write),
        ["page", "--check"] => page::run(page::PageMode::Check),
        ["site", ref rest @ ..] => match site::SiteArguments::parse(rest) {
            Some(site) => site::run(&site),
            None => return usage(),
        },
        ["platforms"] => platforms::check_all(),
        ["package"] => package::run(),
        ["release"] => release::run(false),
        ["release", "--execute"] => release::run(true),
        ["release", "--dry-run"] => release::rehearse(),
        ["dist", ref rest @ ..] => match dist::DistArguments::parse(rest) {
            Some(dist) => dist::run(&dist),
            None => return usage(),
        },
        ["deny"] => release::deny(),
        ["sbom"] => release::sbom(),
        ["soak", ref rest @ ..] => match soak::SoakArguments::parse(rest) {
            Some(soak) => soak::run(&soak),
            None => return usage(),
        },
        ["loom"] => checkers::loom(),
        ["mutants", ref names @ ..] if !names.iter().any(|name| name.starts_with('-')) => {
            mutants::run(names)
        }
        ["miri", ref rest @ ..] => match miri::MiriArguments::parse(rest) {
            Some(miri) => miri::run(&miri),
            None => return usage(),
        },
        ["fuzz", ref rest @ ..] => match checkers::FuzzArguments::parse(rest) {
            Some(fuzz) => checkers::fuzz(&fuzz),
            None => return usage(),
        },
        _ => return usage(),
    };
    match result {
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

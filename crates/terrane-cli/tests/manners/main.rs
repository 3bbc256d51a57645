//! The command and pipes, other processes, bad input and signals.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod backups;
#[cfg(unix)]
mod control;
mod cs265;
mod databases;
mod designs;
mod ends;
mod files;
mod imports;
#[cfg(unix)]
mod live;
mod numbers;
#[cfg(unix)]
mod odd_paths;
mod readers;
mod related_files;
mod reports;
mod serve;
mod shell;
mod stats;
mod support;
mod widths;

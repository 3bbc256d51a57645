//! Arguments and progress that the subcommands of `terrane backup` share.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::ops::ControlFlow;

use anyhow::Result;
use clap::Args;
use indicatif::ProgressBar;
use terrane_backup::{Notice, Progress, Repository, parse_utc};

use terrane_lab::host::interrupt::{Cancellable, is_cancelled};
use terrane_lab::host::progress;

/// The location of a repository.
#[derive(Debug, Clone, Args)]
pub(super) struct RepositoryArg {
    /// The directory of the repository, or its URL: file:///mnt/backups, or s3://bucket/prefix if the command was
    /// built with object stores
    repository: OsString,
}

impl RepositoryArg {
    pub(super) fn open(&self) -> Result<Box<dyn Repository>> {
        Ok(terrane_backup::open(OsStr::new(&self.repository))?)
    }
}

/// A bar for the progress of an operation that Ctrl-C cancels.
pub(super) struct Bar {
    bar: ProgressBar,
    _cancellable: Cancellable,
}

impl Bar {
    pub(super) fn begin(what: &'static str) -> Self {
        Self { bar: progress::bytes(0, what), _cancellable: Cancellable::begin() }
    }

    /// Returns the callback of the operation.
    pub(super) fn callback(&self) -> impl Fn(Progress) -> ControlFlow<()> + Send + Sync + use<> {
        let bar = self.bar.clone();
        move |progress| {
            bar.set_length(progress.total_bytes);
            bar.set_position(progress.done_bytes);
            if is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Prints notices as warnings.
pub(super) fn warn(notices: &[Notice]) {
    for notice in notices {
        let _ = writeln!(io::stderr(), "warning: {notice}");
    }
}

/// Parses a time, and returns it in microseconds since 1970.
pub(super) fn time(text: &str) -> Result<u64, String> {
    let wrong = || "expected a time in UTC such as 2026-11-21T10:00:00Z".to_owned();
    parse_utc(text).ok_or_else(wrong)
}

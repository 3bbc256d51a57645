//! `terrane backup`: creates, lists, verifies, prunes and restores backups, and removes locks.

mod checkpoint;
mod common;
mod create;
mod list;
mod prune;
mod restore;
mod unlock;
mod verify;

use anyhow::Result;
use clap::{Args, Subcommand};

use self::create::CreateArgs;
use self::list::ListArgs;
use self::prune::PruneArgs;
use self::restore::RestoreArgs;
use self::unlock::UnlockArgs;
use self::verify::VerifyArgs;
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  terrane backup create ./db /mnt/backups
  terrane backup list /mnt/backups
  terrane backup verify /mnt/backups
  terrane backup prune /mnt/backups --keep-daily 7 --keep-weekly 5 --yes
  terrane backup restore /mnt/backups ./restored --at 2026-11-21T10:00:00Z
  terrane backup unlock /mnt/backups";

/// Create, list, verify, prune and restore incremental backups
///
/// A repository is a directory, or a bucket of an object store, with backups of any number of
/// databases. It stores each table once, named by the hash of its contents, so a backup adds only
/// new tables. An interrupted backup does not count; the next one continues it.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BackupArgs {
    #[command(subcommand)]
    command: BackupCommand,
}

#[derive(Debug, Clone, Subcommand)]
enum BackupCommand {
    Create(CreateArgs),
    List(ListArgs),
    Verify(VerifyArgs),
    Prune(PruneArgs),
    Restore(RestoreArgs),
    Unlock(UnlockArgs),
}

impl BackupArgs {
    /// Runs the subcommand.
    pub(crate) fn run(&self) -> Result<Exit> {
        match &self.command {
            BackupCommand::Create(args) => args.run(),
            BackupCommand::List(args) => args.run(),
            BackupCommand::Verify(args) => args.run(),
            BackupCommand::Prune(args) => args.run(),
            BackupCommand::Restore(args) => args.run(),
            BackupCommand::Unlock(args) => args.run(),
        }
    }
}

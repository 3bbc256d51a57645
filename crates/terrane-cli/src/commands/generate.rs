//! `terrane completions` and `terrane man`: files generated from the definition of the command line.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Command};
use clap_complete::Shell;

use crate::exit::{Exit, usage};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  terrane completions bash > ~/.local/share/bash-completion/completions/terrane
  terrane completions zsh > ~/.zfunc/_terrane
  terrane completions fish > ~/.config/fish/completions/terrane.fish";

/// Print the completions of a shell
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

impl CompletionsArgs {
    /// Prints the completions of `command`, the whole command line.
    pub(crate) fn run(&self, mut command: Command) -> Result<Exit> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut command, "terrane", &mut text);
        output::stdout().write_all(&text)?;
        Ok(Exit::Done)
    }
}

const MAN_EXAMPLES: &str = "\
Examples:
  terrane man bench | man -l -
  terrane man --out ~/.local/share/man/man1   (all pages, for man terrane-bench)";

/// Print the manual page of the command or of a subcommand, or write all pages
#[derive(Debug, Clone, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub(crate) struct ManArgs {
    /// The subcommand, such as `bench` or `inspect table`
    subcommand: Vec<String>,

    /// Write the pages of all subcommands into a directory, which is created if it does not exist
    #[arg(long, value_name = "DIR", conflicts_with = "subcommand")]
    out: Option<PathBuf>,
}

impl ManArgs {
    /// Prints the page of `command`, the whole command line, or of a subcommand.
    pub(crate) fn run(&self, mut command: Command) -> Result<Exit> {
        if let Some(dir) = &self.out {
            std::fs::create_dir_all(dir)
                .and_then(|()| clap_mangen::generate_to(command, dir))
                .with_context(|| format!("cannot write manual pages into {}", dir.display()))?;
            return Ok(Exit::Done);
        }
        command.build();
        for name in &self.subcommand {
            let found = command.find_subcommand(name).cloned();
            command = found.ok_or_else(|| {
                usage(format!("unknown subcommand '{name}'; run 'terrane --help'"))
            })?;
        }
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        output::stdout().write_all(&page)?;
        Ok(Exit::Done)
    }
}

//! `terrane options`: the options of the engine.

use std::io::{self, Write};

use anyhow::Result;
use clap::{Args, Subcommand};
use serde::Serialize;
use terrane::{OptionInfo, Options};

use crate::engine_flags::plain;
use crate::exit::{Exit, usage};
use crate::output;
use crate::terminal::Paint;
use terrane_lab::json::{SCHEMA, write_line};
use terrane_policy::near::did_you_mean;

/// Document the options of the engine
#[derive(Debug, Clone, Args)]
pub(crate) struct OptionsArgs {
    #[command(subcommand)]
    command: Option<OptionsCommand>,

    /// Print a JSON object per line
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Clone, Subcommand)]
enum OptionsCommand {
    /// List all options, or some: purpose, default, accepted values, cost
    List {
        /// The options, such as memory_budget
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
}

#[derive(Serialize)]
struct JsonOption<'a> {
    schema: u32,
    name: &'a str,
    flag: String,
    about: String,
    default: &'a str,
    accepts: String,
    trade_off: String,
    takes_effect: String,
}

impl OptionsArgs {
    /// Prints the options.
    pub(crate) fn run(&self) -> Result<Exit> {
        let mut out = output::text_or_json(self.json);
        // `list` is the only subcommand, so it may be omitted.
        let OptionsCommand::List { names } =
            self.command.clone().unwrap_or(OptionsCommand::List { names: Vec::new() });
        for (number, info) in chosen(&names)?.iter().enumerate() {
            if self.json {
                write_line(&mut out, &JsonOption::of(info))?;
            } else {
                if number > 0 {
                    writeln!(out)?;
                }
                write_option(&mut out, info)?;
            }
        }
        Ok(Exit::Done)
    }
}

/// Returns the options of these names, or all of them.
fn chosen(names: &[String]) -> Result<Vec<OptionInfo>> {
    let all = Options::table();
    if names.is_empty() {
        return Ok(all.into_iter().collect());
    }
    let find = |name: &String| {
        let wanted = name.trim_start_matches('-').replace('-', "_");
        let found = Options::table().into_iter().find(|info| info.name == wanted);
        found.ok_or_else(|| {
            let meant = did_you_mean(&wanted, all.iter().map(|info| info.name));
            usage(format!("unknown option '{name}'{meant}"))
        })
    };
    names.iter().map(find).collect()
}

fn flag(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

fn write_option(out: &mut impl Write, info: &OptionInfo) -> io::Result<()> {
    let paint = Paint::stdout();
    writeln!(
        out,
        "{}  {}",
        paint.bold(&flag(info.name)),
        paint.dim(&format!("[{}]", info.default))
    )?;
    writeln!(out, "  {}", plain(info.about))?;
    writeln!(out, "  accepts {}", plain(info.accepted))?;
    writeln!(out, "  {}", plain(info.trade_off))?;
    writeln!(out, "  takes effect {}", plain(info.takes_effect))
}

impl<'a> JsonOption<'a> {
    fn of(info: &'a OptionInfo) -> Self {
        Self {
            schema: SCHEMA,
            name: info.name,
            flag: flag(info.name),
            about: plain(info.about),
            default: &info.default,
            accepts: plain(info.accepted),
            trade_off: plain(info.trade_off),
            takes_effect: plain(info.takes_effect),
        }
    }
}

//! `terrane design enumerate`: counts and lists the valid strategies.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};

use anyhow::Result;
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Serialize;
use terrane_policy::{Strategy, space};

use terrane_lab::input::quantity::count_in;
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, write_line};

use crate::output;

/// Selects strategies.
#[derive(Debug, Clone, Args)]
pub(crate) struct EnumerateArgs {
    /// Only strategies of this eagerness
    #[arg(long, value_name = "NAME")]
    #[arg(value_parser = PossibleValuesParser::new(space::eagerness_names()))]
    eagerness: Option<String>,

    /// Only strategies with all of these values of primitives, such as `tombstone-ttl` or `file`
    #[arg(value_name = "WORD", value_parser = PossibleValuesParser::new(space::words()))]
    #[arg(hide_possible_values = true)]
    words: Vec<String>,

    /// List the strategies as design texts, one per line, instead of counting them
    #[arg(long)]
    list: bool,

    /// The most strategies to list; implies --list
    #[arg(long, value_name = "COUNT", value_parser = count_in::<usize>(0..=u64::MAX))]
    limit: Option<usize>,
}

#[derive(Serialize)]
struct JsonStrategy<'a> {
    schema: u32,
    design: &'a str,
    eagerness: &'a str,
    trigger: &'a str,
    granularity: &'a str,
    movement: &'a str,
}

#[derive(Serialize)]
struct JsonCounts<'a> {
    schema: u32,
    strategies: u64,
    by_eagerness: &'a BTreeMap<String, u64>,
}

impl EnumerateArgs {
    /// Counts or lists the strategies.
    pub(super) fn run(&self, json: bool) -> Result<()> {
        let mut out = BufWriter::new(output::text());
        let chosen = space::strategies().filter(|strategy| self.is_chosen(strategy));
        if !self.list && self.limit.is_none() {
            let mut counts: BTreeMap<String, u64> = BTreeMap::new();
            for [eagerness, ..] in chosen.map(|strategy| strategy.words()) {
                *counts.entry(eagerness).or_default() += 1;
            }
            let total: u64 = counts.values().sum();
            if json {
                let line = JsonCounts { schema: SCHEMA, strategies: total, by_eagerness: &counts };
                write_line(&mut out, &line)?;
                return Ok(out.flush()?);
            }
            writeln!(out, "{} valid strategies", human::count(total))?;
            for name in space::eagerness_names() {
                let count = counts.get(name).copied().unwrap_or(0);
                writeln!(out, "{:>10} {name}", human::count(count))?;
            }
            writeln!(
                out,
                "settings of the primitives are not counted; --list prints the strategies"
            )?;
            return Ok(out.flush()?);
        }
        for strategy in chosen.take(self.limit.unwrap_or(usize::MAX)) {
            let design = &space::text_of(&strategy);
            if json {
                let [eagerness, trigger, granularity, movement] = &strategy.words();
                let schema = SCHEMA;
                let line =
                    JsonStrategy { schema, design, eagerness, trigger, granularity, movement };
                write_line(&mut out, &line)?;
            } else {
                writeln!(out, "{design}")?;
            }
        }
        Ok(out.flush()?)
    }

    fn is_chosen(&self, strategy: &Strategy) -> bool {
        self.eagerness.as_ref().is_none_or(|name| space::has_word(strategy, name))
            && self.words.iter().all(|word| space::has_word(strategy, word))
    }
}

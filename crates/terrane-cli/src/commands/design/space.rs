//! `terrane design enumerate`: counts and lists the valid strategies.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use terrane_policy::{Strategy, space};

use terrane_lab::human;
use terrane_lab::json::{SCHEMA, write_line};
use terrane_lab::quantity::count_in;

use crate::output;

/// Selects strategies.
#[derive(Debug, Clone, Args)]
pub(crate) struct EnumerateArgs {
    /// Only strategies of this eagerness
    #[arg(long, value_name = "NAME")]
    eagerness: Option<String>,

    /// Only strategies whose four primitives contain all of these words
    #[arg(value_name = "WORD")]
    words: Vec<String>,

    /// List the strategies, one per line, instead of counting them
    #[arg(long)]
    list: bool,

    /// The most strategies to list
    #[arg(long, value_name = "COUNT", value_parser = count_in::<usize>(0..=u64::MAX))]
    limit: Option<usize>,
}

#[derive(Serialize)]
struct JsonStrategy<'a> {
    schema: u32,
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
        let mut out = BufWriter::new(output::stdout());
        let chosen = space::strategies().map(|strategy: Strategy| strategy.words());
        let chosen = chosen.filter(|words| self.is_chosen(words));
        if !self.list {
            let mut counts: BTreeMap<String, u64> = BTreeMap::new();
            for [eagerness, ..] in chosen {
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
        for words in chosen.take(self.limit.unwrap_or(usize::MAX)) {
            let [eagerness, trigger, granularity, movement] = &words;
            if json {
                let schema = SCHEMA;
                let line = JsonStrategy { schema, eagerness, trigger, granularity, movement };
                write_line(&mut out, &line)?;
            } else {
                writeln!(out, "{eagerness} {trigger} {granularity} {movement}")?;
            }
        }
        Ok(out.flush()?)
    }

    fn is_chosen(&self, words: &[String; 4]) -> bool {
        let text = words.join(" ");
        self.eagerness.as_ref().is_none_or(|name| *name == words[0])
            && self.words.iter().all(|word| text.contains(word.as_str()))
    }
}

//! Expands a plan into experiments: a list is an axis, and experiments are the product of all axes.

use std::path::Path;

use anyhow::Result;
use toml::{Table, Value};

use super::experiment::{Parameters, Player, SweepExperiment};
use crate::error::usage;
use crate::input::toml_file;

/// A larger sweep is most likely a mistake.
const EXPERIMENTS_MAX: usize = 100_000;

/// Returns the tables of parameters of a plan: one for each of its `[[experiments]]`, with the
/// common parameters and with `set`, whose `NAME=VALUE|VALUE` override those of the plan.
///
/// # Errors
///
/// If the file cannot be read or is not a plan, or neither a plan nor parameters are given.
pub fn tables(plan: Option<&Path>, set: &[String]) -> Result<Vec<Table>> {
    let mut common = Table::new();
    if let Some(path) = plan {
        common = toml_file::read(path)?;
    } else if set.is_empty() {
        return Err(usage("expected a plan or --set; see 'terrane sweep --help'"));
    }
    tables_of(common, set)
}

/// Returns the tables of parameters of a plan that was read, as [`tables`] does.
///
/// # Errors
///
/// If it is not a plan.
pub fn tables_of(mut common: Table, set: &[String]) -> Result<Vec<Table>> {
    let given = common.remove("experiments");
    let listed = match given {
        None => vec![Table::new()],
        Some(Value::Array(listed)) if !listed.is_empty() => {
            let tables = listed.into_iter().map(|one| match one {
                Value::Table(table) => Ok(table),
                _ => Err(usage("'experiments' must be an array of tables: [[experiments]]")),
            });
            tables.collect::<Result<_>>()?
        }
        Some(_) => return Err(usage("'experiments' must be an array of tables: [[experiments]]")),
    };
    let set = set.iter().map(|word| {
        let (name, values) = word
            .split_once('=')
            .ok_or_else(|| usage(format!("--set {word}: expected NAME=VALUE")))?;
        let values = values.split('|').map(|value| Value::String(value.trim().to_owned()));
        Ok((name.trim().to_owned(), Value::Array(values.collect())))
    });
    let set = set.collect::<Result<Vec<_>>>()?;
    let whole = |own: Table| {
        let mut all = common.clone();
        all.extend(own);
        all.extend(set.iter().cloned());
        all
    };
    Ok(listed.into_iter().map(whole).collect())
}

/// Returns the experiments of all tables in order, without duplicates.
///
/// # Errors
/// Fails if a parameter is unknown or an experiment is invalid, before any experiment runs.
pub fn experiments(tables: &[Table], player: Player) -> Result<Vec<SweepExperiment>> {
    let mut found: Vec<SweepExperiment> = Vec::new();
    let mut keys = std::collections::BTreeSet::new();
    for table in tables {
        for parameters in combinations(table)? {
            let experiment = SweepExperiment::of(parameters, player)?;
            if keys.insert(experiment.key(1)) {
                found.push(experiment);
            }
        }
    }
    Ok(found)
}

/// Returns the Cartesian product of all lists of a table.
fn combinations(table: &Table) -> Result<Vec<Parameters>> {
    let mut all = vec![Parameters::new()];
    for (name, value) in table {
        let values = match value {
            Value::Array(values) => values.clone(),
            value => vec![value.clone()],
        };
        let values = values.iter().map(|value| text_of(name, value)).collect::<Result<Vec<_>>>()?;
        if values.is_empty() {
            return Err(usage(format!("parameter '{name}' has an empty list of values")));
        }
        if all.len() * values.len() > EXPERIMENTS_MAX {
            return Err(usage(format!("the plan has more than {EXPERIMENTS_MAX} experiments")));
        }
        let with = |parameters: &Parameters, value: &String| {
            let mut combined = parameters.clone();
            combined.insert(name.clone(), value.clone());
            combined
        };
        all = all.iter().flat_map(|one| values.iter().map(move |value| with(one, value))).collect();
    }
    Ok(all)
}

fn text_of(name: &str, value: &Value) -> Result<String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => Ok(value.to_string()),
        _ => Err(usage(format!("parameter '{name}' must be a value or a list of values"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &str, player: Player) -> Result<Vec<SweepExperiment>> {
        experiments(&[text.parse().unwrap()], player)
    }

    #[test]
    fn lists_form_a_cartesian_product() {
        let text = "design = ['leveling', 'tiering']\nT = [2, 4, 8]\nnum = 1000";
        let all = made(text, Player::Engine).unwrap();
        assert_eq!(all.len(), 6);
        let keys: std::collections::BTreeSet<String> = all.iter().map(|one| one.key(1)).collect();
        assert_eq!(keys.len(), 6);
        assert_ne!(all[0].key(1), all[0].key(2));
        assert_eq!(all[0].key(1), made(text, Player::Engine).unwrap()[0].key(1));
        assert_ne!(all[0].key(1), made(text, Player::Simulator).unwrap()[0].key(1));
    }

    #[test]
    fn parameters_build_the_same_experiment() {
        for one in made("design = 'tiering'\nT = [2, 4]\nnum = 1000", Player::Engine).unwrap() {
            let again = SweepExperiment::of(one.parameters().clone(), Player::Engine).unwrap();
            assert_eq!(again.key(3), one.key(3));
        }
    }

    #[test]
    fn tables_that_were_read_are_those_of_a_file() {
        let text = "num = 10\n[[experiments]]\ndesign = 'leveling'\n[[experiments]]\nT = 4";
        let read = tables_of(text.parse().unwrap(), &["seed=1|2".to_owned()]).unwrap();
        assert_eq!(read.len(), 2);
        assert!(read.iter().all(|table| table.contains_key("num") && table.contains_key("seed")));
        assert!(tables_of("experiments = 3".parse().unwrap(), &[]).is_err());
    }

    #[test]
    fn the_same_experiment_twice_is_run_once() {
        let table: Table = "design = ['leveling', 'leveling']".parse().unwrap();
        assert_eq!(experiments(&[table.clone(), table], Player::Engine).unwrap().len(), 1);
    }

    #[test]
    fn invalid_experiments_are_rejected_before_any_runs() {
        for text in [
            "speed = 3",
            "design = 'round'",
            "design = 'leveling'\nT = 1",
            "design = []",
            "num = 'many'",
            "threads = 0",
            "mix = 'get'",
            "workload = 'settle'",
            "workload = 'fillrandom'\nmix = 'get=1'",
            "durability = 'maybe'",
            "num = { a = 1 }",
        ] {
            assert!(made(text, Player::Engine).is_err(), "{text}");
        }
        assert!(made("workload = 'fillrandom'", Player::Simulator).is_err());
        let axis: Vec<String> = (0..400).map(|number| number.to_string()).collect();
        let axis = axis.join(",");
        assert!(made(&format!("seed = [{axis}]\nnum = [{axis}]"), Player::Engine).is_err());
    }
}

//! The space of valid strategies.
//!
//! It combines every eagerness with every set of triggers, every granularity and every effective
//! list of movement rules: any of the rules that rank only some tables, in any order, followed by
//! one that ranks all. Strategies that [`Strategy::validate`] rejects are not counted. The
//! compaction paper estimates the space at more than 10^4 (§3.2). Numeric settings would multiply
//! the number of strategies without bound, so each setting has one value here.

use crate::design::Design;
use crate::strategy::{Eagerness, Granularity, Movement, Scope, Strategy, Trigger, TriggerKind};

/// Each eagerness, as the text of a design with it.
const EAGERNESS: [&str; 5] =
    ["leveling", "1-leveling", "tiering", "lazy-leveling", "hybrid runs=T-1,4,last:2"];

/// Enumerates all valid strategies by their four primitives.
pub fn strategies() -> impl Iterator<Item = Strategy> {
    let bases = EAGERNESS.iter().filter_map(|text| text.parse::<Design>().ok());
    let (sets, rules) = (trigger_sets(), movements());
    bases.flat_map(move |base| {
        let (sets, rules) = (sets.clone(), rules.clone());
        sets.into_iter().flat_map(move |triggers| with_triggers(&base.strategy, &triggers, &rules))
    })
}

/// Returns every set of triggers, with at most one size-tiered policy: two of them are never valid
/// together, nor is one together with a fullness trigger.
fn trigger_sets() -> Vec<Vec<Trigger>> {
    let (policies, others): (Vec<Trigger>, Vec<Trigger>) =
        triggers().into_iter().partition(|trigger| trigger.kind().is_size_tiered());
    let sets = (0..1usize << others.len()).flat_map(|set| {
        let chosen = others.iter().enumerate().filter(move |(at, _)| set & (1 << at) != 0);
        let chosen: Vec<Trigger> = chosen.map(|(_, trigger)| trigger.clone()).collect();
        let with_policies: Vec<Vec<Trigger>> = policies
            .iter()
            .map(|policy| [&chosen[..], std::slice::from_ref(policy)].concat())
            .collect();
        [chosen].into_iter().chain(with_policies)
    });
    sets.filter(|set| !set.is_empty()).collect()
}

/// Returns true if the strategy bounds the size of levels: some trigger considers the fullness of
/// levels.
pub fn bounds_levels(strategy: &Strategy) -> bool {
    strategy
        .triggers
        .values()
        .iter()
        .flatten()
        .any(|trigger| trigger.kind().is_load() || trigger.kind().is_size_tiered())
}

fn with_triggers(base: &Strategy, triggers: &[Trigger], rules: &[Vec<Movement>]) -> Vec<Strategy> {
    let granularities =
        [Granularity::Level, Granularity::Run, Granularity::File, Granularity::Files(4)];
    let mut found = Vec::new();
    for granularity in granularities {
        let none = [Vec::new()];
        let rules = if granularity.tables().is_some() { rules } else { &none[..] };
        for movement in rules {
            let strategy = Strategy {
                triggers: triggers.to_vec().into(),
                granularity: granularity.into(),
                movement: movement.clone().into(),
                ..base.clone()
            };
            if bounds_levels(&strategy) && strategy.validate().is_ok() {
                found.push(strategy);
            }
        }
    }
    found
}

/// Returns every trigger that can fire, with its usual settings, in the order in which strategies
/// rank them.
fn triggers() -> Vec<Trigger> {
    let kinds = TriggerKind::ALL.iter().map(|kind| kind.info());
    let firing = kinds.filter(|info| info.scope != Scope::Nothing);
    firing.filter_map(|info| info.usual.parse().ok()).collect()
}

/// Returns every list of rules: any of those that rank only some tables, in any order, followed by
/// one that ranks all.
fn movements() -> Vec<Vec<Movement>> {
    let (last, partial): (Vec<Movement>, Vec<Movement>) =
        Movement::ALL.iter().partition(|rule| rule.ranks_all());
    let mut before: Vec<Vec<Movement>> = vec![Vec::new()];
    let mut at = 0;
    while let Some(rules) = before.get(at).cloned() {
        let unused = partial.iter().filter(|rule| !rules.contains(rule));
        before.extend(unused.map(|rule| [&rules[..], &[*rule]].concat()));
        at += 1;
    }
    let with =
        |last: &Movement| before.iter().map(|rules| [&rules[..], &[*last]].concat()).collect();
    last.iter().flat_map(|last| -> Vec<Vec<Movement>> { with(last) }).collect()
}

/// Returns the text of a design with this strategy, and defaults otherwise.
pub fn text_of(strategy: &Strategy) -> String {
    let runs = match &strategy.eagerness {
        Eagerness::Hybrid(runs) => format!(" runs={runs}"),
        _ => String::new(),
    };
    let or_none =
        |words: Vec<String>| if words.is_empty() { "none".into() } else { words.join("+") };
    let triggers = strategy.triggers.at(0).iter().map(ToString::to_string).collect();
    let movement = strategy.movement.at(0).iter().map(ToString::to_string).collect();
    format!(
        "{}{runs}; trigger={}; granularity={}; movement={}",
        strategy.eagerness,
        or_none(triggers),
        strategy.granularity,
        or_none(movement)
    )
}

/// Returns the names of all values of the four primitives, without their settings.
pub fn words() -> Vec<&'static str> {
    let triggers = TriggerKind::ALL.iter().map(|kind| kind.name());
    let movement = Movement::ALL.iter().map(|rule| rule.info().name);
    let granularity = ["level", "run", "file", "files", "none"];
    eagerness_names().chain(triggers).chain(granularity).chain(movement).collect()
}

/// Returns true if a primitive of the strategy has this name.
pub fn has_word(strategy: &Strategy, word: &str) -> bool {
    strategy.words().iter().flat_map(|list| list.split('+')).any(|value| {
        let name = value.split('(').next().unwrap_or(value);
        value == word || name == word
    })
}

/// Returns the names of all eagerness values.
pub fn eagerness_names() -> impl Iterator<Item = &'static str> {
    Eagerness::NAMED.iter().map(|(_, name)| *name).chain(["hybrid"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_space_is_larger_than_the_paper_estimates() {
        let mut count = 0;
        for strategy in strategies() {
            count += 1;
            assert_eq!(strategy.validate(), Ok(()));
        }
        assert!(count > 10_000, "{count}");
    }

    #[test]
    fn strategies_of_the_papers_table_are_in_the_space() {
        let words = |strategy: &Strategy| strategy.words();
        let all: std::collections::BTreeSet<[String; 4]> =
            strategies().map(|strategy| words(&strategy)).collect();
        for name in ["full", "lo+1", "lo+2", "rr", "cold", "old", "tsd", "tsa", "tier"] {
            let strategy = name.parse::<Design>().unwrap().strategy;
            assert!(all.contains(&words(&strategy)), "{name}: {:?}", words(&strategy));
        }
    }

    #[test]
    fn texts_of_strategies_are_designs() {
        for strategy in strategies().step_by(53) {
            let text = text_of(&strategy);
            let design: Design = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(design.strategy, strategy, "{text}");
        }
    }

    #[test]
    fn words_are_those_of_strategies() {
        let known = words();
        for strategy in strategies().step_by(997) {
            assert!(known.iter().filter(|word| has_word(&strategy, word)).count() >= 4);
        }
        let lazy: Strategy = "lazy-leveling".parse::<Design>().unwrap().strategy;
        assert!(has_word(&lazy, "lazy-leveling") && !has_word(&lazy, "leveling"));
        let four = "leveling granularity=files(4); movement=random(7)".parse::<Design>().unwrap();
        assert!(has_word(&four.strategy, "files") && has_word(&four.strategy, "random"));
    }
}

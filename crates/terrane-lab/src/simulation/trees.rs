//! Several trees of a simulation, from text.

use anyhow::Result;
use terrane::Design;
use terrane_sim::{OtherTree, SimulationSetup};

use crate::error::usage;
use crate::input::spec;

/// A tree with its name and its share of the writes, as text `NAME: DESIGN @ SHARE`.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedTree {
    /// Its name in the results.
    pub name: String,
    /// The design.
    pub design: Design,
    /// The share of the writes, relative to the shares of the other trees.
    pub share: f64,
}

impl NamedTree {
    /// Parses a tree. The share is a number or a percentage.
    ///
    /// # Errors
    /// If the text is malformed, or the design is unknown.
    pub fn parse(text: &str) -> Result<Self> {
        let bad = || usage(format!("expected NAME: DESIGN @ SHARE for a tree, found '{text}'"));
        let (name, rest) = text.split_once(':').ok_or_else(bad)?;
        let (design, share) = rest.rsplit_once('@').ok_or_else(bad)?;
        let share = share.trim();
        let number: f64 = share.trim_end_matches('%').trim().parse().map_err(|_| bad())?;
        if name.trim().is_empty() || !number.is_finite() || number <= 0.0 {
            return Err(bad());
        }
        let design = spec::parse(design.trim())?;
        Ok(Self { name: name.trim().to_owned(), design, share: number })
    }

    /// Returns the setup with these trees; the first one replaces the setup's own tree.
    pub fn setup_of(trees: &[Self], setup: SimulationSetup) -> SimulationSetup {
        let Some((first, others)) = trees.split_first() else { return setup };
        let other = |tree: &Self| OtherTree { design: tree.design.clone(), share: tree.share };
        SimulationSetup {
            design: first.design.clone(),
            share: first.share,
            others: others.iter().map(other).collect(),
            ..setup
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_a_name_a_design_and_a_share() {
        let tree = NamedTree::parse("orders: hybrid T=4; runs=3,last:1 @ 80%").unwrap();
        assert_eq!((tree.name.as_str(), tree.share), ("orders", 80.0));
        assert_eq!(tree.design, "hybrid T=4; runs=3,last:1".parse().unwrap());
        assert_eq!(NamedTree::parse("a:tiering@0.5").unwrap().share, 0.5);
        for text in ["", "tiering", "a: tiering", "tiering @ 1", ": tiering @ 1", "a: tiering @ 0"]
        {
            assert!(NamedTree::parse(text).is_err(), "{text}");
        }
        for text in ["a: tiering @ much", "a: nosuch @ 1", "a: tiering @ -1", "a: tiering @ inf"] {
            assert!(NamedTree::parse(text).is_err(), "{text}");
        }
    }
}

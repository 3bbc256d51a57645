//! The measurements that one figure needs: those that its panel draws and that its claims mention.
//!
//! An experiment whose only figure is requested asks before it measures, so that one figure does not
//! cost as much as all of them.

use std::collections::BTreeMap;

use crate::citation;
use crate::figures::PaperFigure;
use crate::judge::ClaimFile;
use crate::judge::expression::{Expression, Selector};

/// The depth to which definitions are followed.
const DEPTH_MAX: usize = 16;

/// The keys that an expression selects in one dimension of a metric; `None` for all of them.
type Selected = Option<Vec<String>>;

/// The measurements that a figure needs.
#[derive(Debug, Clone, Default)]
pub(crate) struct FigureNeeds {
    /// For each metric the selections, each with an entry for every dimension.
    metrics: BTreeMap<String, Vec<Vec<Selected>>>,
}

impl FigureNeeds {
    /// Collects the needs of a figure, such as `4e`, from the panels and claims of an experiment.
    pub(crate) fn of(claims: &ClaimFile, panels: &[PaperFigure], figure: &str) -> Self {
        let mut needs = Self::default();
        for panel in panels.iter().filter(|panel| citation::includes(&panel.place(), figure)) {
            for expression in panel.expressions() {
                needs.add(claims, expression, 0);
            }
        }
        let wanted = claims.claims.iter();
        for claim in wanted.filter(|claim| citation::includes(&claim.figure, figure)) {
            claim.names(&mut |name, selectors| needs.add_name(claims, name, selectors, 0));
        }
        needs
    }

    /// Returns true if the figure needs a measurement of `metric` whose first keys are `keys`.
    pub(crate) fn include(&self, metric: &str, keys: &[&str]) -> bool {
        let selects = |selected: &Selected, key: &str| {
            selected.as_ref().is_none_or(|keys| keys.iter().any(|one| one == key))
        };
        let matches = |selection: &Vec<Selected>| {
            selection.iter().zip(keys).all(|(selected, key)| selects(selected, key))
        };
        self.metrics.get(metric).is_some_and(|selections| selections.iter().any(matches))
    }

    fn add(&mut self, claims: &ClaimFile, expression: &Expression, depth: usize) {
        expression.names(&mut |name, selectors| self.add_name(claims, name, selectors, depth));
    }

    fn add_name(&mut self, claims: &ClaimFile, name: &str, selectors: &[Selector], depth: usize) {
        if let Some(definition) = claims.define.get(name).filter(|_| depth < DEPTH_MAX) {
            return self.add(claims, definition, depth + 1);
        }
        let selected = |selector: &Selector| match selector {
            Selector::All => None,
            Selector::Keys(keys) => Some(keys.clone()),
            Selector::Set(set) => Some(claims.sets.get(set).cloned().unwrap_or_default()),
        };
        let selection = selectors.iter().map(selected).collect();
        self.metrics.entry(name.to_owned()).or_default().push(selection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments;
    use crate::figures::PaperFile;

    #[test]
    fn a_figure_needs_what_its_panel_draws_and_its_claims_mention() {
        let claims = experiments::find("compaction").unwrap().claims().unwrap();
        let panels = PaperFile::of("compaction").unwrap().figures;
        let needs = FigureNeeds::of(&claims, &panels, "4e");
        for (metric, keys) in [
            ("disk_lookup", &["0", "full"][..]),
            ("disk_lookup", &["100"]),
            ("lookup_pages", &["uniform", "40", "tier"]),
            ("lookup_pages", &["uniform", "0", "cold"]),
        ] {
            assert!(needs.include(metric, keys), "{metric} {keys:?}");
        }
        for (metric, keys) in [
            ("lookup_pages", &["zipf"][..]),
            ("drawn_pages", &[]),
            ("disk_range", &[]),
            ("disk_ingested", &[]),
            ("disk_between", &[]),
            ("moved", &["load"]),
        ] {
            assert!(!needs.include(metric, keys), "{metric} {keys:?}");
        }
        assert!(FigureNeeds::of(&claims, &panels, "6d").include("lookup_pages", &["zipf"]));
    }
}

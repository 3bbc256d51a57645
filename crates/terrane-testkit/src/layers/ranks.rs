//! The table of ranks in a document, and the imports that break it.

use std::collections::BTreeMap;

use super::graph::{ModuleGraph, ModulePath};

/// The rank of a module, then its position within the rank. Modules share a position only if they
/// have the same name or are joined by `+`.
type RankPosition = (usize, usize);

/// The rank table of one crate.
#[derive(Debug, Default)]
pub struct RankTable {
    places: BTreeMap<ModulePath, RankPosition>,
    errors: Vec<String>,
}

impl RankTable {
    /// Reads the tables under the heading `### `NAME`` of the section "Modules and ranks". A row is
    /// `| rank | modules | .. |` with the modules between backquotes, such as `engine/read`, or
    /// `a + b` for modules that import each other.
    ///
    /// # Errors
    /// When the document has no such section.
    pub fn parse(document: &str, crate_name: &str) -> Result<Self, String> {
        let missing = || format!("no table of ranks for {crate_name}");
        let (_, section) = document.split_once("\n## Modules and ranks\n").ok_or_else(missing)?;
        let section = section.split("\n## ").next().unwrap_or_default();
        let heading = format!("\n### `{crate_name}`\n");
        let (_, tables) = section.split_once(&heading).ok_or_else(missing)?;
        let tables = tables.split("\n### ").next().unwrap_or_default();
        let mut table = Self::default();
        for line in tables.lines().filter(|line| line.starts_with('|')) {
            let mut cells = line.split('|').skip(1).map(str::trim);
            let Some(Ok(rank)) = cells.next().map(str::parse::<usize>) else { continue };
            let names = cells.next().unwrap_or_default().split('`').skip(1).step_by(2);
            for (index, name) in names.enumerate() {
                for module in name.split(" + ") {
                    let path = module.split('/').map(str::to_owned).collect();
                    if table.places.insert(path, (rank, index)).is_some() {
                        table.errors.push(format!("{module} has two ranks"));
                    }
                }
            }
        }
        Ok(table)
    }

    /// Returns the imports of a crate that break the ranks, and the modules without a rank.
    ///
    /// A module imports only from lower ranks, and within a rank only from modules named before it.
    /// A module that the table does not name takes the place of its closest ancestor in the table.
    /// Imports between a module and its own ancestors or descendants are not checked.
    pub fn violations(&self, graph: &ModuleGraph) -> Vec<String> {
        let mut wrong = self.errors.clone();
        for module in self.places.keys().filter(|module| !graph.has_module(module)) {
            wrong.push(format!("{} has a rank, but is not a module", module.join("/")));
        }
        for module in graph.top_modules().filter(|module| self.place(module).is_none()) {
            wrong.push(format!("{} has no rank", module.join("/")));
        }
        for place in graph.globs_of_root() {
            wrong.push(format!("{place} imports all of the crate"));
        }
        for (at, from, to) in graph.imports() {
            let is_family = from.starts_with(to) || to.starts_with(from);
            let (Some(mine), Some(theirs)) = (self.place(from), self.place(to)) else { continue };
            if !is_family && theirs.1 > mine.1 {
                wrong.push(format!(
                    "{at} ({}, rank {}) imports {} (rank {})",
                    mine.0.join("/"),
                    mine.1.0,
                    theirs.0.join("/"),
                    theirs.1.0
                ));
            }
        }
        wrong.sort();
        wrong
    }

    /// Returns the module of the table that `module` belongs to, and its place.
    fn place(&self, module: &[String]) -> Option<(&[String], RankPosition)> {
        (1..=module.len()).rev().find_map(|len| {
            let (name, place) = self.places.get_key_value(&module[..len])?;
            Some((&name[..], *place))
        })
    }
}

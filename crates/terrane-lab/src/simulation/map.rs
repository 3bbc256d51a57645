//! The map of stability: for which ratio, depth, scheduler and limit a share of the maximum rate
//! holds, from many simulated runs.
//!
//! A cell is a design and a number of levels. Its maximum is measured as in the two-phase test, with
//! the fair scheduler and exact intake. Then the design itself runs at shares of it, from trees whose
//! levels have random fill, and each run yields a verdict on every phase, a short and a long one. The
//! threshold of a tree is the share up to which its runs hold.
//!
//! A search finds the threshold: it simulates the shares around the previous tree's threshold, and
//! assumes that lower shares hold and higher ones fail. For the first trees of each cell all shares
//! are simulated, which shows how often this assumption is wrong.
//!
//! | module | one line |
//! |---|---|
//! | `axes` | the values of each axis, and the options |
//! | `cell` | the designs, and the runs of a cell |
//! | `search` | the threshold of a tree |
//! | `summary` | what the thresholds say about schedulers and limits |
//! | `markdown` | the document |
//! | `page` | the page with heat maps, and the thresholds as CSV |

mod axes;
mod cell;
mod markdown;
mod page;
mod search;
mod summary;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;

use crate::host::Environment;

use cell::{CellRuns, MapCell};

pub use axes::MapOptions;
pub use cell::StabilityMap;

impl StabilityMap {
    /// Simulates the map. `progress` receives the number of finished cells and the number of all
    /// cells.
    ///
    /// # Errors
    /// If a design is invalid.
    pub fn simulate(
        options: &MapOptions,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Self> {
        let cells: Vec<MapCell> = MapCell::all().into_iter().step_by(options.step.max(1)).collect();
        let next = AtomicUsize::new(0);
        let results: Mutex<Vec<Option<Result<CellRuns>>>> =
            Mutex::new(cells.iter().map(|_| None).collect());
        let lock = || results.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        std::thread::scope(|scope| {
            for _ in 0..options.threads.max(1) {
                scope.spawn(|| {
                    loop {
                        // Relaxed: the counter only hands out each cell once.
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(cell) = cells.get(at) else { return };
                        let result = cell.run(options);
                        lock()[at] = Some(result);
                        progress(at + 1, cells.len());
                    }
                });
            }
        });
        let results = std::mem::take(&mut *lock());
        let mut found = Vec::new();
        for (cell, result) in cells.into_iter().zip(results) {
            if let Some(result) = result {
                found.push((cell, result?));
            }
        }
        Ok(Self { options: options.clone(), cells: found })
    }

    /// Returns the document in Markdown, with its setting.
    #[must_use]
    pub fn markdown(&self, environment: &Environment) -> String {
        markdown::document(self, environment)
    }

    /// Writes `report.html` and `map.csv` into a directory, and returns the path of the page.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, dir: &Path, environment: &Environment) -> Result<PathBuf> {
        page::write(self, dir, environment)
    }
}

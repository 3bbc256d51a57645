//! The map of stability: for which ratio, depth, scheduler and limit a share of the maximum rate
//! holds, from many simulated runs.
//!
//! A cell is a design and a number of levels. Its maximum is measured as in the two-phase test, with
//! the fair scheduler and exact intake. Then the design itself runs at shares of it, from trees whose
//! levels have random fill, and each run yields a verdict on every phase, a short and a long one. The
//! threshold of a tree is the share up to which its runs hold.
//!
//! A search finds the threshold: it simulates the shares around the threshold of the tree before, and
//! takes for granted that lower shares hold and higher ones fail. For the first trees of each cell all
//! shares are simulated, which shows how often that is wrong.
//!
//! | module | one line |
//! |---|---|
//! | `cell` | the designs, and the runs of a cell |
//! | `search` | the threshold of a tree |
//! | `summary` | what the thresholds say about schedulers and limits |
//! | `markdown` | the document |
//! | `page` | the page with heat maps, and the thresholds as CSV |

mod cell;
mod markdown;
mod page;
mod search;
mod summary;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;

use cell::{CellRuns, MapCell};

/// The eagerness of the designs; whole levels, as in the stability paper.
const EAGERNESS: [&str; 2] = ["tiering", "leveling; granularity=level"];
const RATIOS: [u32; 6] = [2, 3, 4, 6, 8, 10];
const LEVELS: [usize; 3] = [2, 3, 4];
const SCHEDULERS: [&str; 4] = ["single", "fair", "greedy", "gear"];
const LIMITS: [&str; 3] = ["level0", "local(2x)", "global(2x)"];

/// The shares of the maximum, ascending. A threshold is a number of them, from 0 to all 15. Some are
/// above 1, because the maximum is that of the fair scheduler while writers stall.
const SHARES: [f64; 15] =
    [0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 1.0, 1.025, 1.05, 1.1, 1.2];

/// The options of a map.
#[derive(Debug, Clone)]
pub struct MapOptions {
    /// The lengths of the phases, in hours of virtual time, ascending.
    pub hours: Vec<f64>,
    /// The number of trees with random fill of each cell.
    pub trees: u64,
    /// For this number of them, all shares are simulated.
    pub complete: u64,
    /// Only every `step`-th cell is simulated.
    pub step: usize,
    /// Threads.
    pub threads: usize,
}

/// The cells with their runs.
#[derive(Debug, Clone)]
pub struct StabilityMap {
    options: MapOptions,
    cells: Vec<(MapCell, CellRuns)>,
}

impl StabilityMap {
    /// Simulates the map. `progress` gets the number of finished cells and of all.
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

    /// Returns the document in Markdown; `command` made it.
    #[must_use]
    pub fn markdown(&self, command: &str) -> String {
        markdown::document(self, command)
    }

    /// Writes `report.html` and `map.csv` into a directory, and returns the path of the page.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, dir: &Path, command: &str) -> Result<PathBuf> {
        page::write(self, dir, command)
    }

    fn find(&self, wanted: MapCell) -> Option<&CellRuns> {
        self.cells.iter().find(|(cell, _)| *cell == wanted).map(|(_, runs)| runs)
    }
}

/// Formats hours: `16`, `0.5`.
fn hours(hours: f64) -> String {
    format!("{hours} h")
}

/// Formats a share that holds; a dash if not even the lowest one does.
fn percent(share: f64) -> String {
    // Rounded, because 1.1 * 100.0 prints as 110.00000000000001.
    if share <= 0.0 { "–".to_owned() } else { format!("{} %", (share * 1000.0).round() / 10.0) }
}

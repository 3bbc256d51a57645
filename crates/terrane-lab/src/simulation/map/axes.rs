//! The axes of the map, and the options of a simulation.

/// The eagerness of the designs; whole levels, as in the stability paper.
pub(super) const EAGERNESS: [&str; 2] = ["tiering", "leveling; granularity=level"];
pub(super) const RATIOS: [u32; 6] = [2, 3, 4, 6, 8, 10];
pub(super) const LEVELS: [usize; 3] = [2, 3, 4];
pub(super) const SCHEDULERS: [&str; 4] = ["single", "fair", "greedy", "gear"];
pub(super) const LIMITS: [&str; 3] = ["level0", "local(2x)", "global(2x)"];

/// The shares of the maximum, ascending. A threshold is the number of shares that hold, from 0 to
/// 15. Some are above 1, because the maximum is that of the fair scheduler while writers stall.
pub(super) const SHARES: [f64; 15] =
    [0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 1.0, 1.025, 1.05, 1.1, 1.2];

/// The options of a map.
#[derive(Debug, Clone)]
pub struct MapOptions {
    /// The lengths of the phases, in hours of virtual time, ascending.
    pub hours: Vec<f64>,
    /// The number of trees with random fill of each cell.
    pub trees: u64,
    /// The number of these trees for which every share is simulated.
    pub complete: u64,
    /// Only every `step`-th cell is simulated.
    pub step: usize,
    /// Threads.
    pub threads: usize,
}

/// Formats hours: `16`, `0.5`.
pub(super) fn hours(hours: f64) -> String {
    format!("{hours} h")
}

/// Formats a share that holds; a dash if not even the lowest one does.
pub(super) fn percent(share: f64) -> String {
    // Rounded, because 1.1 * 100.0 prints as 110.00000000000001.
    if share <= 0.0 { "–".to_owned() } else { format!("{} %", (share * 1000.0).round() / 10.0) }
}

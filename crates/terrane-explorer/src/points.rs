//! Costs of many designs, by formulas.

use serde::Serialize;
use terrane_policy::Design;
use terrane_policy::cost::{DataProfile, costs};

use crate::design;

/// The layouts of levels, with a place for the size ratio.
const LAYOUTS: [&str; 9] = [
    "leveling T=%",
    "1-leveling T=%",
    "tiering T=%",
    "lazy-leveling T=%",
    "hybrid T=%; runs=2,last:1",
    "hybrid T=%; runs=4,last:1",
    "hybrid T=%; runs=T-1,last:2",
    "hybrid T=%; runs=T-1,2,last:1",
    "hybrid T=%; runs=T-1,4,2,last:1",
];

/// The size ratios.
const RATIOS: std::ops::RangeInclusive<u32> = 2..=32;

/// Bits of filters per key.
const FILTERS: [&str; 6] = ["0", "5", "8", "10", "14", "monkey(8)"];

/// Sizes of memtables, as multiples of the one that is asked about.
const BUFFERS: [f64; 3] = [0.25, 1.0, 4.0];

/// The costs of a design.
#[derive(Debug, Serialize)]
pub(crate) struct Point {
    text: String,
    /// The name by which it was asked for, if it was.
    name: Option<String>,
    write: f64,
    /// Blocks that lookups of missing and of existing keys read.
    missing: f64,
    found: f64,
    space: f64,
    runs: f64,
}

impl Point {
    fn of(design: &Design, data: &DataProfile, name: Option<String>) -> Self {
        let costs = costs(design, data);
        Self {
            text: design.to_string(),
            name,
            write: costs.write_amplification,
            missing: costs.absent_lookup_blocks,
            found: costs.present_lookup_blocks,
            space: costs.space_amplification_max,
            runs: costs.runs,
        }
    }
}

/// Returns the costs of designs of many layouts, size ratios, filters and memtables around the size
/// `buffer`, and then those of the `marked` designs; texts that do not parse are ignored.
pub(crate) fn points(
    records: f64,
    record_bytes: f64,
    buffer: &str,
    marked: &[String],
) -> Result<Vec<Point>, String> {
    if !(1.0..=1e15).contains(&records) || !(1.0..=1e9).contains(&record_bytes) {
        return Err("records and their size must be positive".to_owned());
    }
    let data = DataProfile::new(records, record_bytes);
    let base = design::parse(&format!("leveling; buffer={buffer}"))?;
    let mut points = Vec::new();
    for (layout, ratio) in
        LAYOUTS.iter().flat_map(|layout| RATIOS.map(move |ratio| (layout, ratio)))
    {
        for (filter, size) in FILTERS.iter().flat_map(|one| BUFFERS.map(move |size| (one, size))) {
            let text = format!("{}; filter={filter}", layout.replace('%', &ratio.to_string()));
            if let Ok(mut design) = text.parse::<Design>() {
                design.buffer_bytes = (base.buffer_bytes as f64 * size) as u64;
                design.table_bytes = design.table_bytes.min(design.buffer_bytes.max(1 << 16));
                points.push(Point::of(&design, &data, None));
            }
        }
    }
    for text in marked {
        if let Ok(design) = text.parse::<Design>() {
            points.push(Point::of(&design, &data, Some(text.clone())));
        }
    }
    Ok(points)
}

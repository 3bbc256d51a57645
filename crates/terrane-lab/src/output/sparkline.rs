//! A curve in a line of text.

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws one character per value, from a blank bar for zero to a full block for `highest`. Unknown
/// values are blanks.
pub fn sparkline(values: &[Option<f64>], highest: f64) -> String {
    let character = |value: &Option<f64>| match value {
        None => ' ',
        Some(value) if *value <= 0.0 || highest <= 0.0 => '_',
        Some(value) => {
            let step = (value / highest * BLOCKS.len() as f64).ceil() as usize;
            BLOCKS[step.clamp(1, BLOCKS.len()) - 1]
        }
    };
    values.iter().map(character).collect()
}

/// Returns the mean of each of at most `columns` consecutive groups, whose lengths differ by at
/// most one.
pub fn squeezed(values: &[f64], columns: usize) -> Vec<Option<f64>> {
    let columns = columns.min(values.len());
    let bound = |column: usize| column * values.len() / columns.max(1);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    (0..columns).map(|column| Some(mean(&values[bound(column)..bound(column + 1)]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_follow_values_and_zero_differs_from_little() {
        let values = [Some(0.0), Some(0.1), Some(4.0), Some(8.0), None, Some(9.0)];
        assert_eq!(sparkline(&values, 8.0), "_▁▄█ █");
        assert_eq!(sparkline(&[Some(1.0)], 0.0), "_");
        assert_eq!(sparkline(&[], 1.0), "");
    }

    #[test]
    fn many_values_are_averaged_into_the_columns() {
        let values: Vec<f64> = (0..10).map(f64::from).collect();
        assert_eq!(squeezed(&values, 5), [0.5, 2.5, 4.5, 6.5, 8.5].map(Some));
        assert_eq!(squeezed(&values, 3).len(), 3);
        assert_eq!(squeezed(&values, 100).len(), 10);
        assert_eq!(squeezed(&[], 3), []);
    }
}

//! Rows below a plot that mark intervals of its horizontal axis, such as stalls.

/// A row below the horizontal axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Strip {
    /// The name, left of the row.
    pub name: String,
    /// Its parts, from left to right; between them the row is empty.
    pub spans: Vec<Span>,
}

/// A part of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// The start on the horizontal axis.
    pub from: f64,
    /// The end.
    pub to: f64,
    /// How strong its colour is, above 0 and up to 1.
    pub strength: f64,
    /// The name of the interval, shown if the part is wide enough, and under the pointer.
    pub label: String,
}

impl Strip {
    /// Returns the row of a count over time, given at the start of each interval; the last interval
    /// ends at `end`. Adjacent intervals with equal counts form one part.
    pub fn of_counts(name: &str, counts: &[(f64, u64)], end: f64) -> Self {
        let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
        let mut spans: Vec<Span> = Vec::new();
        let mut last = None;
        let ends = counts.iter().skip(1).map(|(seconds, _)| *seconds).chain([end]);
        for ((from, count), to) in counts.iter().zip(ends) {
            let is_same = last.replace(*count) == Some(*count);
            match spans.last_mut() {
                _ if *count == 0 => {}
                Some(span) if is_same => span.to = to,
                _ => spans.push(Span {
                    from: *from,
                    to,
                    strength: *count as f64 / most as f64,
                    label: count.to_string(),
                }),
            }
        }
        Self { name: format!("{name}, up to {most}"), spans }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_counts_are_one_span_and_zeros_are_gaps() {
        let counts = [(0.0, 1), (1.0, 1), (2.0, 0), (3.0, 4), (4.0, 1)];
        let strip = Strip::of_counts("merges", &counts, 5.0);
        let spans: Vec<_> = strip.spans.iter().map(|one| (one.from, one.to, &*one.label)).collect();
        assert_eq!(spans, [(0.0, 2.0, "1"), (3.0, 4.0, "4"), (4.0, 5.0, "1")]);
        assert_eq!(strip.name, "merges, up to 4");
        assert_eq!(strip.spans[1].strength, 1.0);
        assert_eq!(Strip::of_counts("merges", &[], 5.0).spans, []);
    }
}

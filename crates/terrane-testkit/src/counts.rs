//! Counts of the work of random tests, which `cargo xtask soak` adds up.

/// Prints one line such as `counts: images=300 recovery_images=120`. The keys are free-form; counts
/// with the same key are added up over all tests, suites and rounds of a soak. The line is captured
/// like any output of a test, unless the test runs with `--nocapture`.
#[allow(clippy::print_stdout, reason = "the output of a test")]
pub fn print_counts(counts: &[(&str, u64)]) {
    println!("{}", line(counts));
}

fn line(counts: &[(&str, u64)]) -> String {
    let counts: Vec<String> =
        counts.iter().map(|(name, count)| format!("{name}={count}")).collect();
    format!("counts: {}", counts.join(" "))
}

/// Returns the counts of a line that [`print_counts`] printed, even if other text precedes them,
/// because the test harness prints the name of a test on the same line.
pub fn parse_counts(line: &str) -> Option<Vec<(&str, u64)>> {
    let (_, counts) = line.split_once("counts: ")?;
    let parse = |word| {
        let (name, count) = str::split_once(word, '=')?;
        Some((name, count.parse().ok()?))
    };
    counts.split_whitespace().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_were_printed_are_parsed_after_the_name_of_a_test() {
        let counts = [("images", 3), ("recovery_images", 0)];
        assert_eq!(parse_counts(&line(&counts)).unwrap(), counts);
        assert_eq!(parse_counts(&format!("test a::b ... {}", line(&counts))).unwrap(), counts);
        for other in ["test a ... ok", "counts: images", "counts: images=x", "images=3"] {
            assert_eq!(parse_counts(other), None, "{other}");
        }
    }
}

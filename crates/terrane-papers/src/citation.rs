//! Places in papers: `Fig. 4a to 4d`, `Fig. 5, 7`, `Table 1`.

/// Returns true if a place in the paper, such as `Fig. 4a to 4d` or `Fig. 5, 7`, includes a figure.
#[must_use]
pub fn includes(place: &str, figure: &str) -> bool {
    let Some((kind, figure)) = kind_and_number(figure) else { return false };
    let place = place.replace(" to ", "-");
    let mut words = place.split([' ', ',', ';']).filter(|word| !word.is_empty());
    let mut now = String::new();
    words.any(|word| match word {
        "Fig." | "Table" | "App." => {
            word.clone_into(&mut now);
            false
        }
        number => {
            let starts = number.starts_with(|first: char| first.is_ascii_digit());
            starts && now == kind && spans(number, figure)
        }
    })
}

/// Splits `Table 1` and `4a` into the word before the number and the number.
fn kind_and_number(figure: &str) -> Option<(&str, &str)> {
    match figure.split_once(' ') {
        Some((kind, number)) => Some((kind, number)),
        None => (!figure.is_empty()).then_some(("Fig.", figure)),
    }
}

/// Returns true if a number, or a span such as `4a-4d` or `9-14`, includes a figure. A number
/// without a letter includes its parts, and a part belongs to the figure without a letter.
fn spans(span: &str, figure: &str) -> bool {
    let split = |one: &str| -> Option<(u32, Option<char>)> {
        let digits = one.trim_end_matches(|last: char| last.is_ascii_alphabetic());
        Some((digits.parse().ok()?, one[digits.len()..].chars().next()))
    };
    let (first, last) = span.split_once('-').unwrap_or((span, span));
    let (Some(first), Some(last), Some(figure)) = (split(first), split(last), split(figure)) else {
        return false;
    };
    let letters = first.1.unwrap_or('a')..=last.1.unwrap_or('z');
    (first.0..=last.0).contains(&figure.0)
        && figure.1.is_none_or(|letter| first.0 != last.0 || letters.contains(&letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_claims_include_figures() {
        for (place, figure) in [
            ("Fig. 4a", "4a"),
            ("Fig. 4a to 4d", "4c"),
            ("Fig. 5, 7", "7"),
            ("Fig. 6", "6b"),
            ("Fig. 9 to 14", "12"),
            ("Fig. 10a, authors", "10a"),
            ("Fig. 13, 14", "13a"),
            ("Table 1", "Table 1"),
        ] {
            assert!(includes(place, figure), "{place}, {figure}");
        }
        for (place, figure) in [
            ("Fig. 4a", "4b"),
            ("Fig. 4a to 4d", "4e"),
            ("§5.2", "5"),
            ("Table 1", "1"),
            ("Fig. 1", "Table 1"),
            ("", "1"),
        ] {
            assert!(!includes(place, figure), "{place}, {figure}");
        }
    }
}

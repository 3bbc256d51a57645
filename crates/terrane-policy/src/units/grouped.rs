//! Whole numbers for display.

/// Formats a number with commas between thousands: `12,345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_separate_thousands() {
        let texts = [0, 999, 1000, 12_345, 1_000_000].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "12,345", "1,000,000"]);
    }
}

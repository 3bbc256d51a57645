//! Flags of commands, such as `--seed 7`.

/// Returns the number after `flag`, or `default` without the flag; `None` if the next word is not a
/// number.
pub(crate) fn number_after(words: &[&str], flag: &str, default: u64) -> Option<u64> {
    match words.iter().position(|word| *word == flag) {
        Some(at) => words.get(at + 1)?.parse().ok(),
        None => Some(default),
    }
}

/// Returns true if `words` are pairs of one of the flags and a value.
pub(crate) fn are_flags(words: &[&str], flags: &[&str]) -> bool {
    words.chunks(2).all(|pair| pair.len() == 2 && flags.contains(&pair[0]))
}

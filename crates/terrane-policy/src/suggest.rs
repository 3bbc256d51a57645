//! Suggestions for misspelt words.

/// Returns the name most similar to `name`, if one is similar enough.
pub fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.into_iter().map(|known| (distance(name, known), known)).min()?;
    let is_near = near.0 <= (name.len() / 3).max(1) || abbreviates(name, near.1);
    is_near.then_some(near.1)
}

/// Returns true if `name` consists of at least half of the letters of `known`, in the same order.
fn abbreviates(name: &str, known: &str) -> bool {
    let mut letters = known.chars();
    name.len() * 2 >= known.len() && name.chars().all(|one| letters.any(|letter| letter == one))
}

/// Returns `; did you mean 'get'?`, or an empty string.
pub fn did_you_mean<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, names).map_or(String::new(), |near| format!("; did you mean '{near}'?"))
}

/// Returns a hint for an unknown name: the likely intended name, if one is similar, or all names.
/// `expected` is a list such as `one of a, b or c`.
pub fn hint(name: &str, expected: &str) -> String {
    let list = expected.strip_prefix("one of ").unwrap_or_default();
    let list = list.strip_prefix("the keys ").unwrap_or(list);
    let names = list.split([',', ' ']).filter(|word| !matches!(*word, "" | "or" | "and"));
    let meant = did_you_mean(name, names);
    if meant.is_empty() { format!(", expected {expected}") } else { meant }
}

/// Returns the number of insertions, deletions, substitutions and transpositions of adjacent
/// letters that turn one word into the other (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut last: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut next = vec![i];
        for j in 1..=b.len() {
            let change = row[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = change.min(row[j] + 1).min(next[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(last[j - 2] + 1);
            }
            next.push(least);
        }
        last = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_words_are_recognised() {
        let names = ["get", "put", "keyspaces", "delete"];
        assert_eq!(nearest("gat", names), Some("get"));
        assert_eq!(nearest("pu", names), Some("put"));
        assert_eq!(nearest("kespaces", names), Some("keyspaces"));
        assert_eq!(nearest("select", names), None);
        assert_eq!(nearest("fillrnd", ["fillseq", "fillrandom"]), Some("fillrandom"));
        assert_eq!(nearest("xyz", ["get"]), None);
        assert_eq!(did_you_mean("gat", names), "; did you mean 'get'?");
        assert_eq!(did_you_mean("select", names), "");
        assert_eq!(hint("gat", "one of get, put or delete"), "; did you mean 'get'?");
        assert_eq!(hint("select", "one of get or put"), ", expected one of get or put");
        assert_eq!((distance("kitten", "sitting"), distance("", "abc")), (3, 3));
        assert_eq!((distance("nmu", "num"), distance("abc", "")), (1, 3));
    }
}

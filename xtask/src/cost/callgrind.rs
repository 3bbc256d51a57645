//! The output of callgrind: its format is in the manual of Valgrind, "Callgrind Format Specification".

use std::collections::{BTreeMap, HashMap};

/// The counts of a function or of a run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) instructions: u64,
    /// Instructions that lock the bus: atomic operations other than loads and stores.
    pub(super) atomics: u64,
    pub(super) system_calls: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.instructions += other.instructions;
        self.atomics += other.atomics;
        self.system_calls += other.system_calls;
    }
}

/// The counts of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Output {
    pub(super) total: Counts,
    /// The counts of the functions that were called, each with those of the functions that it called.
    pub(super) functions: BTreeMap<String, Counts>,
}

/// Parses a file.
pub(super) fn parse(text: &str) -> Result<Output, String> {
    let mut output = Output::default();
    let mut columns = None;
    let mut names = HashMap::new();
    let mut called = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(events) = line.strip_prefix("events: ") {
            columns = Some(Columns::parse(events)?);
        } else if let Some(costs) = line.strip_prefix("totals: ") {
            output.total = counts(costs.split_whitespace(), columns)?;
        } else if let Some(name) = line.strip_prefix("fn=") {
            full_name(name, &mut names);
        } else if let Some(name) = line.strip_prefix("cfn=") {
            called = full_name(name, &mut names);
        } else if line.starts_with("calls=") {
            // The position, and then the counts of the calls.
            let costs = lines.next().unwrap_or_default().split_whitespace().skip(1);
            let counts = counts(costs, columns)?;
            output.functions.entry(std::mem::take(&mut called)).or_default().add(counts);
        }
    }
    Ok(output)
}

/// The columns of the events.
#[derive(Debug, Clone, Copy)]
struct Columns {
    instructions: usize,
    atomics: usize,
    system_calls: usize,
}

impl Columns {
    fn parse(events: &str) -> Result<Self, String> {
        let column = |name: &str| {
            let found = events.split_whitespace().position(|event| event == name);
            found.ok_or_else(|| format!("callgrind did not count {name}"))
        };
        let (instructions, atomics) = (column("Ir")?, column("Ge")?);
        Ok(Self { instructions, atomics, system_calls: column("sysCount")? })
    }
}

/// Reads a line of counts, which ends at the last one that is not zero.
fn counts<'a>(
    words: impl Iterator<Item = &'a str>,
    columns: Option<Columns>,
) -> Result<Counts, String> {
    let columns = columns.ok_or("the output of callgrind has no line 'events:'")?;
    let words: Vec<u64> = words
        .map(|word| word.parse().map_err(|_| format!("callgrind counted '{word}'")))
        .collect::<Result<_, String>>()?;
    let at = |column: usize| words.get(column).copied().unwrap_or(0);
    Ok(Counts {
        instructions: at(columns.instructions),
        atomics: at(columns.atomics),
        system_calls: at(columns.system_calls),
    })
}

/// Returns a function's name, which is given with its number where it occurs first: `(7) main`, later `(7)`.
fn full_name(text: &str, names: &mut HashMap<String, String>) -> String {
    let (number, name) = text.split_once(' ').unwrap_or((text, ""));
    if name.is_empty() {
        return names.get(number).cloned().unwrap_or_default();
    }
    // Older manglings end with a hash: `terrane_cost::engine::put::h0123456789abcdef`.
    let name = match name.rsplit_once("::h") {
        Some((path, hash)) if hash.len() == 16 => path,
        _ => name,
    };
    names.insert(number.to_owned(), name.to_owned());
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_a_function_are_added_with_what_it_called() {
        let text = "events: Ir Ge sysCount sysTime\n\
                    fn=(1) main\n16 400\ncfn=(2) a::put::h0123456789abcdef\ncalls=1 0\n16 5000 3 2 1\n\
                    cfn=(2)\ncalls=2 0\n17 700\n\
                    fn=(2)\n1 5600 3\ntotals: 6100 3 2 1\n";
        let output = parse(text).unwrap();
        let total = Counts { instructions: 6100, atomics: 3, system_calls: 2 };
        assert_eq!(output.total, total);
        let put = Counts { instructions: 5700, atomics: 3, system_calls: 2 };
        assert_eq!(output.functions, BTreeMap::from([("a::put".to_owned(), put)]));
        assert!(parse("events: Ir\n").unwrap_err().contains("Ge"));
        assert!(parse("totals: 1\n").unwrap_err().contains("events"));
    }
}

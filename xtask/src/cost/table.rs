//! The table of costs: its text in a document, and the differences between two tables.

use std::fmt;

use super::callgrind::Counts;
use crate::step::StepResult;

/// The number of instructions may differ from the table by this share.
const INSTRUCTIONS_TOLERANCE: f64 = 0.01;

/// The same, for operations in which the order of threads or of evictions decides some steps.
const VARYING_TOLERANCE: f64 = 0.03;
const VARYING: [&str; 2] = ["engine get cold", "server "];

/// Other counts may differ by this share, or by as little as what happens seldom: [`SMALL`], or [`SMALL_BYTES`].
const TOLERANCE: f64 = 0.05;
const SMALL: f64 = 0.1;
const SMALL_BYTES: f64 = 1.0;

const COLUMNS: [&str; 7] = [
    "instructions",
    "atomic operations",
    "system calls",
    "allocations",
    "allocated bytes",
    "bytes read",
    "bytes written",
];

/// The words before the name of the compiler.
const COMPILER: &str = "Counted with ";

/// The counts of an operation, for each repetition; `None` where they were not counted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    name: String,
    counts: [Option<f64>; 7],
}

impl Row {
    /// Returns the row of a line that the program printed, and of its function.
    pub(super) fn of_operation(line: &str, counts: &Counts) -> Result<Self, String> {
        let bad = || format!("the program printed '{line}'");
        let words: Vec<&str> = line.split('\t').collect();
        let [name, numbers @ ..] = &words[..] else { return Err(bad()) };
        let numbers: Option<Vec<u64>> = numbers.iter().map(|word| word.parse().ok()).collect();
        let Some(&[count, allocations, bytes, read, written]) = numbers.as_deref() else {
            return Err(bad());
        };
        let all = [
            counts.instructions,
            counts.atomics,
            counts.system_calls,
            allocations,
            bytes,
            read,
            written,
        ];
        let mut counts = all.map(|total| Some(total as f64 / count as f64));
        if name.contains("::capi::") {
            // The database behind the C interface counts the bytes.
            counts[5..].fill(None);
        }
        let name = name.strip_prefix("terrane_cost::").unwrap_or(name).replace("::", " ");
        Ok(Self { name: name.replace('_', " "), counts })
    }

    /// Returns the row of a command from two runs, of which the longer one has `count` more of it.
    pub(super) fn of_server(command: &str, few: &Counts, many: &Counts, count: u64) -> Self {
        let each = |few: u64, many: u64| Some(many.saturating_sub(few) as f64 / count as f64);
        let mut counts = [None; 7];
        counts[0] = each(few.instructions, many.instructions);
        counts[1] = each(few.atomics, many.atomics);
        // Each batch of commands has its calls, and how many depends on the order of the threads.
        Self { name: format!("server {command}"), counts }
    }

    fn parse(line: &str) -> Result<Self, String> {
        let bad = || format!("the table of costs has the line '{line}'");
        let cells = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |"));
        let cells: Vec<&str> = cells.ok_or_else(bad)?.split(" | ").collect();
        let [name, numbers @ ..] = &cells[..] else { return Err(bad()) };
        let number = |cell: &&str| match *cell {
            "-" => Some(None),
            text => text.replace(',', "").parse().ok().map(Some),
        };
        let numbers: Option<Vec<Option<f64>>> = numbers.iter().map(number).collect();
        let counts = numbers.and_then(|numbers| numbers.try_into().ok()).ok_or_else(bad)?;
        Ok(Self { name: (*name).to_owned(), counts })
    }

    /// Returns a line for each count that differs from `new` by more than the tolerance.
    fn differences(&self, new: &Self) -> Vec<String> {
        let varies = VARYING.iter().any(|prefix| self.name.starts_with(prefix));
        let pairs = COLUMNS.iter().zip(self.counts.iter().zip(&new.counts));
        let difference = |(column, (old, new)): (&&str, (&Option<f64>, &Option<f64>))| {
            let (old, new) = (old.unwrap_or(0.0), new.unwrap_or(0.0));
            let (share, small) = match *column {
                "instructions" if varies => (VARYING_TOLERANCE, SMALL),
                "instructions" => (INSTRUCTIONS_TOLERANCE, SMALL),
                bytes if bytes.contains("bytes") => (TOLERANCE, SMALL_BYTES),
                _ => (TOLERANCE, SMALL),
            };
            let is_same = (new - old).abs() <= (old * share).max(small);
            let verb = if new > old { "rose" } else { "fell" };
            let (old, new) = (number(old), number(new));
            (!is_same).then(|| format!("{}: {column} {verb} from {old} to {new}", self.name))
        };
        pairs.filter_map(difference).collect()
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "| {}", self.name)?;
        for count in self.counts {
            write!(f, " | {}", count.map_or("-".to_owned(), number))?;
        }
        f.write_str(" |")
    }
}

/// Writes a count with as many digits as matter.
fn number(count: f64) -> String {
    let text = format!("{count:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if count < 100.0 { text.to_owned() } else { format!("{count:.0}") }
}

/// The costs of all operations, and the compiler that made their code.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    pub(super) compiler: String,
    pub(super) rows: Vec<Row>,
}

impl Table {
    /// Finds the table in a document: a line with the compiler, an empty line, the heads and the rows.
    pub(super) fn parse(document: &str) -> Result<Self, String> {
        let mut lines = document.lines().skip_while(|line| !line.starts_with(COMPILER));
        let compiler = lines.next().and_then(|line| line.strip_prefix(COMPILER));
        let compiler = compiler.and_then(|text| text.strip_suffix(':'));
        let compiler = compiler.ok_or_else(|| format!("no line '{COMPILER}RUST:'"))?.to_owned();
        let rows = lines.skip(3).take_while(|line| line.starts_with("| "));
        Ok(Self { compiler, rows: rows.map(Row::parse).collect::<Result<_, _>>()? })
    }

    /// Returns the document with `new` in the place of this table.
    pub(super) fn replaced_in(&self, document: &str, new: &Self) -> Result<String, String> {
        let start = document.find(&format!("{COMPILER}{}", self.compiler));
        let start = start.ok_or("the document has no table")?;
        let (before, rest) = document.split_at(start);
        let end = rest.rfind("|\n").map_or(rest.find('\n').map_or(0, |end| end + 1), |end| end + 2);
        Ok(format!("{before}{new}\n{}", rest.get(end..).unwrap_or_default()))
    }

    /// Fails if a count rose or fell by more than the tolerance, or the first operations of this table are others.
    pub(super) fn compare(&self, new: &Self) -> StepResult {
        let mut differences = Vec::new();
        for (at, counted) in new.rows.iter().enumerate() {
            match self.rows.get(at) {
                Some(row) if row.name == counted.name => {
                    differences.extend(row.differences(counted));
                }
                _ => differences.push(format!("{}: not in this place of the table", counted.name)),
            }
        }
        if differences.is_empty() {
            return Ok(());
        }
        Err(format!(
            "{}\n'cargo xtask cost --write' writes the table; the commit says why a count rose",
            differences.join("\n")
        ))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{COMPILER}{}:\n", self.compiler)?;
        writeln!(f, "| operation | {} |", COLUMNS.join(" | "))?;
        write!(f, "|---|{}", "---:|".repeat(COLUMNS.len()))?;
        self.rows.iter().try_for_each(|row| write!(f, "\n{row}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(instructions: u64) -> Table {
        let counts = Counts { instructions, atomics: 4000, system_calls: 0 };
        let row = Row::of_operation("terrane_cost::engine::get_hit\t2000\t0\t0\t10\t0", &counts);
        let few = Counts { instructions: 1000, ..counts };
        let many = Counts { instructions: 6000, ..counts };
        let rows = vec![row.unwrap(), Row::of_server("SET", &few, &many, 10)];
        Table { compiler: "Rust 1.90.0".into(), rows }
    }

    #[test]
    fn a_table_is_read_from_the_document_that_it_was_written_to() {
        let empty = "Text.\n\nCounted with Rust 1.80.0:\n";
        let old = Table::parse(empty).unwrap();
        let document = old.replaced_in(empty, &table(4_000_000)).unwrap();
        assert!(
            document.contains("| engine get hit | 2000 | 2 | 0 | 0 | 0 | 0.01 | 0 |\n"),
            "{document}"
        );
        let stored = Table::parse(&document).unwrap();
        assert_eq!(stored.compare(&table(4_000_000)), Ok(()));
        let again = stored.replaced_in(&document, &table(5_000_000)).unwrap();
        assert_eq!(Table::parse(&again).unwrap().compare(&table(5_000_000)), Ok(()));
        assert!(
            again.starts_with("Text.\n\nCounted with Rust 1.90.0:\n\n| operation |"),
            "{again}"
        );
    }

    #[test]
    fn one_per_cent_more_or_less_is_a_difference() {
        let stored = table(4_000_000);
        assert_eq!(stored.compare(&table(4_030_000)), Ok(()));
        let rose = stored.compare(&table(4_050_000)).unwrap_err();
        assert!(
            rose.starts_with("engine get hit: instructions rose from 2000 to 2025\n"),
            "{rose}"
        );
        let locks = Row {
            counts: [Some(2000.0), Some(3.0), None, None, None, None, None],
            ..stored.rows[0].clone()
        };
        let rose = stored.rows[0].differences(&locks);
        assert_eq!(rose, ["engine get hit: atomic operations rose from 2 to 3"]);
        let fell = stored.compare(&table(3_900_000)).unwrap_err();
        assert!(
            fell.starts_with("engine get hit: instructions fell from 2000 to 1950\n"),
            "{fell}"
        );
        let other = Table { rows: stored.rows[1..].to_vec(), ..stored.clone() };
        assert!(other.compare(&stored).unwrap_err().contains("not in this place"));
        assert!(
            Row::parse("| put | x |").is_err()
                && Row::of_operation("put\t1", &Counts::default()).is_err()
        );
    }
}

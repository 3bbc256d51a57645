//! Which columns of a file hold the key, the value and the expiry time, and how a row becomes an entry.

use terrane_policy::suggest::did_you_mean;

use crate::output::human;

/// The names of the columns of a dump.
pub(super) const KEY: &str = "key";
pub(super) const VALUE: &str = "value";
/// The names of the column of the expiry time: that of dumps, and that of earlier dumps.
pub(super) const EXPIRY: [&str; 2] = ["expires_at_micros", "ends_micros"];

/// The columns of a file that a caller selects, each by its name in the header or by its number from 1. In JSON lines
/// they are fields, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns {
    /// The key; without it, the column `key` or the first one.
    pub key: Option<String>,
    /// The value.
    pub value: ValueColumns,
    /// The expiry time in microseconds since the Unix epoch; without it, the column `expires_at_micros` if the header
    /// has one.
    pub expiry: Option<String>,
}

impl Columns {
    /// Returns true if the caller selected the key or the value, so that other columns are left out on purpose.
    pub(super) fn are_selected(&self) -> bool {
        self.key.is_some()
            || !matches!(self.value, ValueColumns::Unspecified | ValueColumns::Nothing)
    }

    /// Returns true if a column is selected by a name that is not a number.
    pub fn need_names(&self) -> bool {
        let several = match &self.value {
            ValueColumns::One(one) => std::slice::from_ref(one),
            ValueColumns::Several(several) => several,
            _ => &[],
        };
        let mut all = self.key.iter().chain(&self.expiry).chain(several);
        all.any(|column| column.parse::<usize>().is_err())
    }
}

/// The columns of the value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ValueColumns {
    /// The column `value`, or the only one beside the key and the expiry time.
    #[default]
    Unspecified,
    /// None: a file of keys, whose values are empty.
    Nothing,
    /// One column.
    One(String),
    /// Several columns, as a JSON object, or as an array if the columns have no names.
    Several(Vec<String>),
    /// All columns, as a JSON object or array; in JSON lines, the text of the whole object.
    All,
}

impl ValueColumns {
    /// Parses an argument: a column, several with commas, or `*`.
    pub fn parse(text: &str) -> Self {
        match text {
            "*" => Self::All,
            one if !one.contains(',') => Self::One(one.to_owned()),
            several => Self::Several(several.split(',').map(|one| one.trim().to_owned()).collect()),
        }
    }
}

/// The positions of the selected columns in a row.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The number of columns of every row.
    pub(super) columns: usize,
    pub(super) key: usize,
    pub(super) value: ValueLayout,
    pub(super) expiry: Option<usize>,
}

/// The positions of a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ValueLayout {
    Nothing,
    One(usize),
    /// A JSON object.
    Object(Vec<(String, usize)>),
    /// A JSON array.
    Array(Vec<usize>),
}

impl Layout {
    /// Finds the columns in rows of `count` columns, whose header has `names`.
    ///
    /// # Errors
    ///
    /// A sentence, if a column does not exist, or if a column would be left out that the caller did not leave out.
    pub(super) fn new(
        columns: &Columns,
        names: Option<&[String]>,
        count: usize,
    ) -> Result<Self, String> {
        let header = Header { names, count };
        if let Some(names) = names {
            reject_repeated(names)?;
        }
        let key = match &columns.key {
            Some(key) => header.position(key)?,
            None => header.named(&[KEY]).unwrap_or(0),
        };
        let expiry = match &columns.expiry {
            Some(expiry) => Some(header.position(expiry)?),
            None => header.named(&EXPIRY),
        };
        let value = match &columns.value {
            ValueColumns::Nothing => ValueLayout::Nothing,
            ValueColumns::One(one) => ValueLayout::One(header.position(one)?),
            ValueColumns::Several(several) => {
                let positions: Result<Vec<_>, _> =
                    several.iter().map(|one| header.position(one)).collect();
                header.composite(positions?)
            }
            ValueColumns::All => header.composite((0..count).collect()),
            ValueColumns::Unspecified => {
                let is_left = |at: &usize| *at != key && Some(*at) != expiry;
                let mut left = (0..count).filter(is_left);
                match (header.named(&[VALUE]), left.next(), left.next()) {
                    (Some(value), ..) | (None, Some(value), None) => ValueLayout::One(value),
                    (None, None, _) if columns.are_selected() => {
                        return Err("no column is left for the value; for keys without values, add --keys-only".into());
                    }
                    (None, None, _) => return Err(header.too_few()),
                    (None, ..) if columns.are_selected() => {
                        return Err(format!(
                            "found {}; name those of the value with --value, such as --value {}",
                            human::counted(count as u64, "column"),
                            if key == 0 { "2" } else { "1" }
                        ));
                    }
                    (None, ..) => return Err(header.too_many()),
                }
            }
        };
        let layout = Self { columns: count, key, value, expiry };
        if !columns.are_selected() && layout.used() < count {
            return Err(match layout.value {
                ValueLayout::Nothing => header.too_many_for_keys(),
                _ => header.too_many(),
            });
        }
        Ok(layout)
    }

    /// The columns that a selection by default uses.
    fn used(&self) -> usize {
        let value = usize::from(self.value != ValueLayout::Nothing);
        1 + value + usize::from(self.expiry.is_some())
    }
}

/// The first row of a file.
struct Header<'a> {
    names: Option<&'a [String]>,
    count: usize,
}

impl Header<'_> {
    /// Finds a column by its name, or else by its number.
    fn position(&self, column: &str) -> Result<usize, String> {
        if let Some(at) = self.named(&[column]) {
            return Ok(at);
        }
        let number = column.parse::<usize>().ok();
        match (number, self.names) {
            (Some(number), _) if (1..=self.count).contains(&number) => Ok(number - 1),
            (None, Some(names)) => {
                let meant = did_you_mean(column, names.iter().map(String::as_str));
                let known = names.join(", ");
                Err(format!("no column '{column}' in the header: {known}{meant}"))
            }
            _ => {
                let count = human::counted(self.count as u64, "column");
                Err(format!("no column {column} in a row of {count}"))
            }
        }
    }

    /// Finds a column by its name; only if no name matches exactly, in any case.
    fn named(&self, wanted: &[&str]) -> Option<usize> {
        let names = self.names?;
        let find = |is: fn(&str, &str) -> bool| {
            names.iter().position(|name| wanted.iter().any(|wanted| is(name, wanted)))
        };
        find(|a, b| a == b).or_else(|| find(str::eq_ignore_ascii_case))
    }

    fn composite(&self, positions: Vec<usize>) -> ValueLayout {
        match self.names {
            None => ValueLayout::Array(positions),
            Some(names) => {
                let named = |at: usize| (names[at].clone(), at);
                ValueLayout::Object(positions.into_iter().map(named).collect())
            }
        }
    }

    fn too_few(&self) -> String {
        format!(
            "found {}, expected a key and a value; for keys without values, add --keys-only",
            human::counted(self.count as u64, "column")
        )
    }

    fn too_many(&self) -> String {
        let found = human::counted(self.count as u64, "column");
        let expiry = match self.count {
            3 => "; if the third is an expiry time in microseconds, add --expiry 3",
            _ => "",
        };
        format!(
            "found {found}, expected a key and a value; choose columns, such as --key 1 --value 2, or --value 2,3 for \
             a JSON value{expiry}"
        )
    }

    fn too_many_for_keys(&self) -> String {
        let found = human::counted(self.count as u64, "column");
        format!("found {found}, expected only keys; choose the column of the keys, such as --key 1")
    }
}

fn reject_repeated(names: &[String]) -> Result<(), String> {
    for (at, name) in names.iter().enumerate() {
        if let Some(first) = names[..at].iter().position(|earlier| earlier == name) {
            let (first, second) = (first + 1, at + 1);
            return Err(format!(
                "the header names columns {first} and {second} '{name}'; rename one, or skip the header with \
                 --skip-lines 1 --no-header and choose columns by number"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(key: &str, value: &str) -> Columns {
        let value = match value {
            "" => ValueColumns::Unspecified,
            text => ValueColumns::parse(text),
        };
        Columns { key: (!key.is_empty()).then(|| key.to_owned()), value, expiry: None }
    }

    fn names(text: &str) -> Vec<String> {
        text.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn columns_are_found_by_name_and_by_number() {
        let header = names("city,2,country");
        let layout = |key, value| Layout::new(&columns(key, value), Some(&header), 3).unwrap();
        assert_eq!(layout("country", "city").key, 2);
        // A name takes precedence over a number.
        assert_eq!(layout("3", "2").value, ValueLayout::One(1));
        assert_eq!(
            layout("1", "3,city").value,
            ValueLayout::Object(vec![("country".into(), 2), ("city".into(), 0)])
        );
        let unnamed = Layout::new(&columns("2", "*"), None, 3).unwrap();
        assert_eq!(unnamed.value, ValueLayout::Array(vec![0, 1, 2]));
        let error = Layout::new(&columns("citi", "2"), Some(&header), 3).unwrap_err();
        assert!(error.contains("did you mean 'city'"), "{error}");
        let error = Layout::new(&columns("4", "2"), None, 3).unwrap_err();
        assert_eq!(error, "no column 4 in a row of 3 columns");
    }

    #[test]
    fn no_column_is_left_out_unless_the_caller_says_so() {
        let error = Layout::new(&Columns::default(), None, 3).unwrap_err();
        assert!(error.contains("found 3 columns") && error.contains("--expiry 3"), "{error}");
        assert!(Layout::new(&columns("1", "2"), None, 3).is_ok());
        let error = Layout::new(&columns("1", ""), None, 3).unwrap_err();
        assert!(error.contains("--value 2"), "{error}");
        let with = |text: &str| {
            let names = names(text);
            Layout::new(&Columns::default(), Some(&names), names.len())
        };
        assert_eq!(with("value,key,ends_micros").unwrap().expiry, Some(2));
        assert!(with("key,value,count").unwrap_err().contains("found 3 columns"));
        let twice = with("a,b,a").unwrap_err();
        assert!(twice.contains("columns 1 and 3 'a'"), "{twice}");
        let keys = Columns { value: ValueColumns::Nothing, ..Columns::default() };
        assert!(Layout::new(&keys, None, 2).unwrap_err().contains("--key 1"));
        assert!(Layout::new(&Columns { key: Some("2".into()), ..keys }, None, 2).is_ok());
    }
}

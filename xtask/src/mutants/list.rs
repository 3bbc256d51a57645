//! The list of mutants: `xtask/mutants/*.txt`.
//!
//! An entry is a paragraph of lines that begin with a word or a sign:
//!
//! ```text
//! mutant NAME
//! items S0-06 S0-07
//! file PATH
//! - the original text
//! + the text that replaces it
//! test PACKAGE TARGET PATH::OF::TEST
//! ```
//!
//! The original occurs once in the file; runs of white space compare equal. If a part of it stands between `«` and
//! `»`, only that part is replaced. Both texts are whole expressions of one type, or whole statements without `let`.
//! TARGET is `lib` or the name of a test in `tests`. The items, which are optional, are those of the papers that name
//! the test as evidence.

use std::path::Path;

/// A change of the source that a test must notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mutant {
    pub(super) name: String,
    /// The numbers of the papers' items.
    pub(super) items: Vec<String>,
    pub(super) file: String,
    pub(super) original: String,
    pub(super) changed: String,
    pub(super) test: TestName,
}

/// A test function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TestName {
    pub(super) package: String,
    /// `lib`, or the name of a test target.
    pub(super) target: String,
    /// The path of the function in the target.
    pub(super) path: String,
}

impl TestName {
    /// The name of the function.
    fn function(&self) -> &str {
        self.path.rsplit("::").next().unwrap_or(&self.path)
    }
}

/// Reads all files of a directory in the order of their names.
pub(super) fn read(dir: &Path) -> Result<Vec<Mutant>, String> {
    let failed = |error| format!("{}: {error}", dir.display());
    let entries: Result<Vec<_>, _> = std::fs::read_dir(dir).map_err(failed)?.collect();
    let mut paths: Vec<_> =
        entries.map_err(failed)?.into_iter().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    let mut mutants: Vec<Mutant> = Vec::new();
    for path in paths {
        let name = path.display();
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))?;
        mutants.extend(parse(&text).map_err(|error| format!("{name}: {error}"))?);
    }
    let mut names: Vec<&str> = mutants.iter().map(|mutant| mutant.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("two mutants are named {}", pair[0])),
        None => Ok(mutants),
    }
}

/// Reads the text of a list. Lines that begin with `#` are comments.
fn parse(text: &str) -> Result<Vec<Mutant>, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let text = lines.collect::<Vec<_>>().join("\n");
    let paragraphs = text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty());
    paragraphs.map(parse_entry).collect()
}

fn parse_entry(paragraph: &str) -> Result<Mutant, String> {
    let fail = |what: &str| format!("{what} in:\n{paragraph}");
    let lines_of = |word: &str| -> Vec<&str> {
        paragraph.lines().filter_map(|line| line.strip_prefix(word)).collect()
    };
    let text_of = |word: &str| match lines_of(word)[..] {
        [] => Err(fail(&format!("no line '{}'", word.trim()))),
        ref lines => Ok(lines.join("\n")),
    };
    let known = ["mutant ", "items ", "file ", "- ", "+ ", "test "];
    let is_known = |line: &str| known.iter().any(|word| line.starts_with(word));
    if let Some(line) = paragraph.lines().find(|line| !is_known(line)) {
        return Err(fail(&format!("unknown line '{line}'")));
    }
    let test = text_of("test ")?;
    let words: Vec<&str> = test.split_whitespace().collect();
    let [package, target, path] = words[..] else {
        return Err(fail("expected 'test PACKAGE TARGET PATH'"));
    };
    Ok(Mutant {
        name: text_of("mutant ")?,
        items: lines_of("items ").iter().flat_map(|line| line.split(' ')).map(Into::into).collect(),
        file: text_of("file ")?,
        original: text_of("- ")?,
        changed: text_of("+ ")?,
        test: TestName { package: package.into(), target: target.into(), path: path.into() },
    })
}

/// Fails unless each item that a mutant names has its test as evidence, by the text of `items.toml`.
pub(super) fn check_items(mutants: &[Mutant], items: &str) -> Result<(), String> {
    for mutant in mutants {
        for item in &mutant.items {
            let function = mutant.test.function();
            let line = items.lines().find(|line| line.contains(&format!("[\"{item}\"")));
            let line = line.ok_or_else(|| format!("{}: there is no item {item}", mutant.name))?;
            let is_evidence = line.split(['"', ';']).any(|part| {
                part.trim().strip_prefix("test ").is_some_and(|test| test.trim() == function)
            });
            if !is_evidence {
                return Err(format!("{}: {item} does not name the test {function}", mutant.name));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str =
        "mutant a\nitems S0-01 S0-02\nfile x.rs\n- b(\n-     c)\n+ d\ntest p lib m::t";

    #[test]
    fn entries_are_paragraphs() {
        let mutants = parse(&format!("# comment\n{ENTRY}\n\n# comment\n{ENTRY}\n")).unwrap();
        assert_eq!(mutants.len(), 2);
        let Mutant { name, items, file, original, changed, test } = &mutants[1];
        assert_eq!((&name[..], &file[..], &changed[..]), ("a", "x.rs", "d"));
        assert_eq!(
            (&items[..], &original[..]),
            (&["S0-01".into(), "S0-02".into()][..], "b(\n    c)")
        );
        assert_eq!((&test.package[..], &test.target[..], test.function()), ("p", "lib", "t"));
        for word in ["mutant a", "- b(", "test p lib m::t"] {
            let other = ENTRY.replace(word, "and so on");
            assert!(parse(&other).unwrap_err().contains("and so on"));
        }
        assert!(parse(&ENTRY.replace("p lib", "lib")).unwrap_err().contains("PACKAGE TARGET PATH"));
    }

    #[test]
    fn items_name_the_test() {
        let mutants = parse(ENTRY).unwrap();
        let check = |evidence: &str| {
            let items =
                format!("[\"S0-01\", \"whole\", \"x\", \"test t\"],\n[\"S0-02\", {evidence}],");
            check_items(&mutants, &items)
        };
        check("\"whole\", \"y\", \"figure f 1; test t\"").unwrap();
        assert!(check("\"whole\", \"y\", \"test tt\"").unwrap_err().contains("S0-02"));
        assert!(check_items(&mutants, "").unwrap_err().contains("no item S0-01"));
    }
}

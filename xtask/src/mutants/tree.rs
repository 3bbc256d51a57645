//! A copy of the sources that contains all mutants, each behind a condition that a variable decides at run time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::list::Mutant;
use crate::step::{root, target_dir};

/// The variable that names the mutant of a process.
pub(super) const VARIABLE: &str = "TERRANE_MUTANT";

/// Directories that are not sources, wherever they are.
const OUTPUTS: [&str; 4] = ["target", ".git", ".venv", "node_modules"];

/// Makes `dir` a copy of the sources of the workspace with all mutants. Files that stay the same keep their times, so
/// that cargo compiles only what changed.
pub(super) fn copy_with(mutants: &[Mutant], dir: &Path) -> Result<(), String> {
    let mut by_file = by_file(mutants);
    let mut kept = BTreeSet::new();
    let root = root();
    let mut paths = Vec::new();
    collect(&root, &mut paths).map_err(|error| format!("{}: {error}", root.display()))?;
    for source in paths {
        let relative = source.strip_prefix(&root).unwrap_or(&source);
        let name = relative.display().to_string().replace('\\', "/");
        let failed = |error: std::io::Error| format!("{name}: {error}");
        // Tests that run meanwhile remove files.
        let Ok(mut contents) = std::fs::read(&source) else { continue };
        if let Some(mutants) = by_file.remove(name.as_str()) {
            let text = String::from_utf8(contents).map_err(|error| format!("{name}: {error}"))?;
            contents = with_all(&text, &mutants)?.into_bytes();
        }
        let path = dir.join(relative);
        if std::fs::read(&path).ok().as_ref() != Some(&contents) {
            std::fs::create_dir_all(path.parent().unwrap_or(dir)).map_err(failed)?;
            std::fs::write(&path, contents).map_err(failed)?;
        }
        kept.insert(path);
    }
    if let Some(file) = by_file.keys().next() {
        return Err(format!("{file}: no such file"));
    }
    remove_others(dir, &kept).map_err(|error| format!("{}: {error}", dir.display()))
}

fn by_file(mutants: &[Mutant]) -> BTreeMap<&str, Vec<&Mutant>> {
    let mut by_file: BTreeMap<&str, Vec<&Mutant>> = BTreeMap::new();
    for mutant in mutants {
        by_file.entry(&mutant.file).or_default().push(mutant);
    }
    by_file
}

/// Fails if a file does not contain the text of a mutant of it.
#[cfg(test)]
pub(super) fn check(mutants: &[Mutant]) -> Result<(), String> {
    for (name, mutants) in by_file(mutants) {
        let text = std::fs::read_to_string(root().join(name));
        with_all(&text.map_err(|error| format!("{name}: {error}"))?, &mutants)?;
    }
    Ok(())
}

/// Lists the files of the sources.
fn collect(dir: &Path, paths: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        let is_output = name.to_str().is_some_and(|name| OUTPUTS.contains(&name));
        if kind.is_file() {
            paths.push(entry.path());
        } else if kind.is_dir() && !is_output && !is_target(&entry.path()) {
            collect(&entry.path(), paths)?;
        }
    }
    Ok(())
}

/// Returns true if this is the directory of build outputs, which a variable names.
fn is_target(dir: &Path) -> bool {
    match (dir.canonicalize(), target_dir().canonicalize()) {
        (Ok(dir), Ok(target)) => dir == target,
        _ => false,
    }
}

/// Removes the files that are no longer part of the sources.
fn remove_others(dir: &Path, kept: &BTreeSet<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, kept)?;
        } else if !kept.contains(&path) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Returns a source with all mutants of its file.
fn with_all(source: &str, mutants: &[&Mutant]) -> Result<String, String> {
    let mut places = Vec::new();
    for mutant in mutants {
        let Mutant { name, file, original, .. } = mutant;
        match find_all(source, original)[..] {
            [(begin, end)] => places.push((begin, end, *mutant)),
            [] => return Err(format!("{name}: {file} has no\n{original}")),
            _ => return Err(format!("{name}: {file} has several\n{original}")),
        }
    }
    places.sort_by_key(|(begin, end, _)| (*begin, *end));
    let (mut text, mut at) = (String::new(), 0);
    for place in places.chunk_by(|one, other| one.0 == other.0 && one.1 == other.1) {
        let (begin, end, first) = place[0];
        if begin < at {
            return Err(format!("{}: overlaps another mutant", first.name));
        }
        text.push_str(&source[at..begin]);
        let mutants = place.iter().map(|(.., mutant)| *mutant);
        text.push_str(&switch(mutants, &source[begin..end]));
        at = end;
    }
    text.push_str(&source[at..]);
    Ok(text)
}

/// Returns the expression or statement that is the original unless the process runs one of the mutants.
fn switch<'a>(mutants: impl Iterator<Item = &'a Mutant>, original: &str) -> String {
    let changes = mutants.map(|Mutant { name, changed, .. }| {
        format!(
            "if {{ static MUTANT: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| \
             std::env::var({VARIABLE:?}).is_ok_and(|name| name == {name:?})); *MUTANT }} \
             {{ {changed} }} else "
        )
    });
    let block = format!("{{ {}{{ {original} }} }}", changes.collect::<String>());
    let is_statement = original.ends_with([';', '}']);
    if is_statement { block } else { format!("({block})") }
}

/// Returns where the part of a text between `«` and `»` occurs in that text, or else the whole text. Runs of white
/// space compare equal.
fn find_all(source: &str, text: &str) -> Vec<(usize, usize)> {
    let whole = text.replace(['«', '»'], "");
    let length = |text: &str| text.chars().filter(|char| !char.is_whitespace()).count();
    let (before, rest) = text.split_once('«').unwrap_or(("", text));
    let (part, _) = rest.split_once('»').unwrap_or((rest, ""));
    let part_of = |(begin, end): (usize, usize)| {
        let visible = source[begin..end].char_indices().filter(|(_, char)| !char.is_whitespace());
        let mut visible = visible.skip(length(before)).take(length(part));
        let (first, _) = visible.next()?;
        let (last, char) = visible.last().unwrap_or((first, ' '));
        Some((begin + first, begin + last + char.len_utf8()))
    };
    find_whole(source, &whole).into_iter().filter_map(part_of).collect()
}

fn find_whole(source: &str, text: &str) -> Vec<(usize, usize)> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let Some(first) = words.first() else { return Vec::new() };
    let end_at = |begin: usize| {
        let mut at = begin;
        for (index, word) in words.iter().enumerate() {
            let rest = &source[at..];
            let trimmed = rest.trim_start();
            let is_apart = index == 0 || trimmed.len() < rest.len();
            if !is_apart || !trimmed.starts_with(word) {
                return None;
            }
            at = source.len() - trimmed.len() + word.len();
        }
        Some((begin, at))
    };
    source.match_indices(first).filter_map(|(begin, _)| end_at(begin)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::list::TestName;
    use super::*;

    fn mutant(name: &str, original: &str) -> Mutant {
        let test = TestName { package: "p".into(), target: "lib".into(), path: "t".into() };
        let [name, file, original, changed] = [name, "x.rs", original, "other()"].map(Into::into);
        Mutant { name, items: Vec::new(), file, original, changed, test }
    }

    #[test]
    fn texts_are_found_in_any_layout() {
        let source = "a(b,\n    c);\na(b, c)";
        assert_eq!(find_all(source, "a(b, c)"), [(0, 11), (13, 20)]);
        assert_eq!(find_all(source, "a(b,\nc);"), [(0, 12)]);
        assert!(find_all(source, "a(b,c)").is_empty());
        assert!(find_all("µ a", "b").is_empty() && find_all("a", "").is_empty());
        assert_eq!(find_all("c, a =>\n b, d, b", "a => «b»,"), [(9, 10)]);
        assert_eq!(find_all("x: (1, 2), 3", "x: «(1, 2)», 3"), [(3, 9)]);
    }

    #[test]
    fn all_mutants_of_a_file_are_switched_apart() {
        let (one, two) = (mutant("one", "b + 1"), mutant("two", "a(c)"));
        let text = with_all("let x = a(c) * 2;\nb + 1", &[&one, &two]).unwrap();
        let first = text.find("{ a(c) } }) * 2;").unwrap();
        assert!(first < text.find("else { b + 1 } })").unwrap(), "{text}");
        assert!(text.contains("name == \"two\"") && text.starts_with("let x = ({ if {"));
        let both = with_all("b + 1", &[&one, &mutant("other", "b + 1")]).unwrap();
        assert_eq!((both.matches("other() } else").count(), both.matches("b + 1").count()), (2, 1));
        let fails = |source: &str, part: &str| {
            let message = with_all(source, &[&one, &mutant("three", "1 + 2")]).unwrap_err();
            assert!(message.contains(part), "{message}");
        };
        fails("a", "one: x.rs has no");
        fails("b + 1, b + 1", "one: x.rs has several");
        fails("b + 1 + 2", "three: overlaps");
    }
}

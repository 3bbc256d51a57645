//! Breaks lines at blanks so that they fit the terminal, with a hanging indent.
//!
//! A continuation is indented to the text after a label, as in `label   text`, or else by two more
//! columns than its line. A word that is longer than a line, such as a path, is not broken, so that
//! it can be copied. Escape sequences take no columns.

use std::fmt::Write;

/// Labels are narrower; a wider gap separates the columns of a table.
const LABEL_COLUMNS_MAX: usize = 24;

/// Returns text whose lines have at most `columns` columns.
pub(crate) fn wrapped(text: &str, columns: usize) -> String {
    let mut wrapped = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (content, end) = match line.strip_suffix('\n') {
            Some(content) => (content, "\n"),
            None => (line, ""),
        };
        push_line(&mut wrapped, content, columns);
        wrapped.push_str(end);
    }
    wrapped
}

/// Returns the number of columns of a line, without its escape sequences.
pub(crate) fn width(line: &str) -> usize {
    let mut letters = line.chars();
    let mut width = 0;
    while let Some(letter) = letters.next() {
        if letter == '\x1b' {
            // A colour ends with the letter m.
            let _ = letters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            width += 1;
        }
    }
    width
}

fn push_line(wrapped: &mut String, line: &str, columns: usize) {
    if width(line) <= columns {
        wrapped.push_str(line);
        return;
    }
    let indent = hanging_indent(line, columns);
    let mut used = 0;
    // The blanks before a word belong to it; those at a break are dropped.
    let mut rest = line;
    while !rest.is_empty() {
        let blanks = rest.len() - rest.trim_start_matches(' ').len();
        let end = rest[blanks..].find(' ').map_or(rest.len(), |at| blanks + at);
        let (blanks, word) = (&rest[..blanks], &rest[blanks..end]);
        let taken = blanks.len() + width(word);
        if used + taken > columns && used > indent {
            let _ = write!(wrapped, "\n{:indent$}{word}", "");
            used = indent + width(word);
        } else {
            wrapped.push_str(blanks);
            wrapped.push_str(word);
            used += taken;
        }
        rest = &rest[end..];
    }
}

/// Returns the column at which the continuations of a line begin.
fn hanging_indent(line: &str, columns: usize) -> usize {
    let leading = line.len() - line.trim_start_matches(' ').len();
    let label = line[leading..].find("  ").map(|at| {
        let gap = &line[leading + at..];
        let blanks = gap.len() - gap.trim_start_matches(' ').len();
        width(&line[..leading + at]) + blanks
    });
    match label {
        Some(label) if label <= LABEL_COLUMNS_MAX.min(columns / 2) => label,
        _ => leading + 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_blanks_with_a_hanging_indent() {
        assert_eq!(wrapped("short\n\n", 10), "short\n\n");
        assert_eq!(wrapped("one two three four", 10), "one two\n  three\n  four");
        assert_eq!(wrapped("  one two three\nx", 11), "  one two\n    three\nx");
        assert_eq!(wrapped("why   one two three four", 16), "why   one two\n      three four");
    }

    #[test]
    fn words_longer_than_a_line_are_whole() {
        assert_eq!(wrapped("see /a/very/long/path now", 12), "see\n  /a/very/long/path\n  now");
        assert_eq!(wrapped("/a/very/long/path", 5), "/a/very/long/path");
    }

    #[test]
    fn colours_take_no_columns() {
        let painted = "\x1b[1mone\x1b[0m two";
        assert_eq!(width(painted), 7);
        assert_eq!(wrapped(painted, 7), painted);
        assert_eq!(wrapped(painted, 6), "\x1b[1mone\x1b[0m\n  two");
    }
}

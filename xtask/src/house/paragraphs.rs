//! Prose as paragraphs: comments, strings and Markdown, without code.

use terrane_testkit::source::{Token, TokenKind};

/// A paragraph as pieces of text, each with its line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Paragraph {
    /// Lines of text with their numbers.
    pub lines: Vec<(usize, String)>,
}

/// Collects lines into paragraphs.
#[derive(Default)]
struct Collector {
    paragraphs: Vec<Paragraph>,
    open: Paragraph,
    is_fenced: bool,
}

impl Collector {
    fn line(&mut self, number: usize, text: &str) {
        let trimmed = text.trim();
        if trimmed.starts_with("```") {
            self.end();
            self.is_fenced = !self.is_fenced;
        } else if self.is_fenced || trimmed.is_empty() {
            self.end();
        } else {
            if trimmed.starts_with(['#', '|', '-', '*', '>']) {
                self.end();
            }
            self.open.lines.push((number, trimmed.to_owned()));
        }
    }

    fn end(&mut self) {
        if !self.open.lines.is_empty() {
            self.paragraphs.push(std::mem::take(&mut self.open));
        }
    }

    fn finish(mut self) -> Vec<Paragraph> {
        self.end();
        self.paragraphs
    }
}

/// Returns the paragraphs of a Markdown document.
pub(super) fn of_markdown(text: &str) -> Vec<Paragraph> {
    let mut collector = Collector::default();
    text.lines().enumerate().for_each(|(index, line)| collector.line(index + 1, line));
    collector.finish()
}

/// Returns the paragraphs of comments. Comments on consecutive lines form one paragraph.
pub(super) fn of_comments(tokens: &[Token<'_>]) -> Vec<Paragraph> {
    let mut collector = Collector::default();
    let mut expected = 0;
    for token in tokens.iter().filter(|token| token.kind == TokenKind::Comment) {
        if token.line != expected {
            collector.end();
            collector.is_fenced = false;
        }
        for (index, line) in token.text.lines().enumerate() {
            let text = line.trim_start().trim_start_matches(['/', '!', '*']);
            let text = text.strip_suffix("*/").unwrap_or(text);
            collector.line(token.line + index, text);
        }
        expected = token.line + token.text.lines().count();
    }
    collector.finish()
}

/// String literals of three words or more.
pub(super) fn of_strings(code: &[Token<'_>]) -> Vec<Paragraph> {
    let texts = code.iter().filter(|token| token.kind == TokenKind::Text);
    let mut paragraphs = Vec::new();
    for token in texts.filter(|token| token.text.split_whitespace().count() > 2) {
        let mut collector = Collector::default();
        for (index, line) in token.text.lines().enumerate() {
            let line = line.trim_end_matches('\\').trim_matches('"').replace("\\n", " ");
            collector.line(token.line + index, &line);
        }
        paragraphs.extend(collector.finish());
    }
    paragraphs
}

#[cfg(test)]
mod tests {
    use terrane_testkit::source::tokens;

    use super::*;

    fn texts(paragraphs: &[Paragraph]) -> Vec<String> {
        let join = |paragraph: &Paragraph| {
            paragraph.lines.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(" ")
        };
        paragraphs.iter().map(join).collect()
    }

    #[test]
    fn comments_on_consecutive_lines_are_one_paragraph() {
        let source = "//! a\n//! b\n//!\n//! c\n//! ```\n//! code\n//! ```\nfn f() {} // d\n/// e\n\
            // f\n\n/* g\n * h */";
        let paragraphs = of_comments(&tokens(source));
        assert_eq!(texts(&paragraphs), ["a b", "c", "d e f", "g h"]);
        assert_eq!(paragraphs[3].lines[1].0, 13);
    }

    #[test]
    fn tables_lists_and_fences_split_markdown() {
        let text = "a\nb\n\n| c |\n| d |\n```\ncode\n```\n- e\n  f\n";
        assert_eq!(texts(&of_markdown(text)), ["a b", "| c |", "| d |", "- e f"]);
    }

    #[test]
    fn strings_of_words_are_prose() {
        let source = "f(\"one two\"); g(\"a b c\\\n   d\"); h(b\"x\")";
        assert_eq!(texts(&of_strings(&tokens(source))), ["a b c d"]);
    }
}

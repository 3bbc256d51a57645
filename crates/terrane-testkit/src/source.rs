//! Rust source as tokens with line numbers, for checks of the source tree.
//!
//! The lexer knows comments, literals and lifetimes, which is enough to find imports, functions and
//! prose without a parser.

#[cfg(test)]
mod tests;

/// The class of a [`Token`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// An identifier, a keyword or a number.
    Word,
    /// `::`, or any other single character.
    Sign,
    /// A string literal with its quotes.
    Text,
    /// A character literal.
    Character,
    /// A lifetime or a label.
    Lifetime,
    /// A comment with its slashes; a line comment ends before the newline.
    Comment,
}

/// A piece of source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// The class of the token.
    pub kind: TokenKind,
    /// The text as written.
    pub text: &'a str,
    /// The line on which it begins, from 1.
    pub line: usize,
}

impl Token<'_> {
    /// Returns true if the token is the given word or sign, and not a literal or comment with the
    /// same text.
    pub fn is(&self, text: &str) -> bool {
        matches!(self.kind, TokenKind::Word | TokenKind::Sign) && self.text == text
    }
}

/// Splits source text into tokens.
pub fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = source;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let (kind, len) = match first {
            _ if first.is_whitespace() => (None, first.len_utf8()),
            '/' if rest.starts_with("//") => {
                (Some(TokenKind::Comment), rest.find('\n').unwrap_or(rest.len()))
            }
            '/' if rest.starts_with("/*") => (Some(TokenKind::Comment), block_comment_len(rest)),
            '\'' => quote(rest),
            _ => match text_len(rest) {
                Some(len) => (Some(TokenKind::Text), len),
                None if is_word(first) => {
                    (Some(TokenKind::Word), rest.find(|c| !is_word(c)).unwrap_or(rest.len()))
                }
                None if rest.starts_with("::") => (Some(TokenKind::Sign), 2),
                None => (Some(TokenKind::Sign), first.len_utf8()),
            },
        };
        let (text, behind) = rest.split_at(len);
        if let Some(kind) = kind {
            tokens.push(Token { kind, text, line });
        }
        line += text.matches('\n').count();
        rest = behind;
    }
    tokens
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn block_comment_len(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let step = &text.as_bytes()[at..];
        if step.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if step.starts_with(b"*/") {
            depth -= 1;
            at += 2;
        } else {
            at += 1;
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// Returns the kind and the length of the token that begins at a `'`: a character literal or a
/// lifetime.
fn quote(text: &str) -> (Option<TokenKind>, usize) {
    let mut characters = text.char_indices().skip(1);
    match characters.next() {
        Some((_, '\\')) => {
            let end = text.char_indices().skip(3).find(|(_, c)| *c == '\'');
            (Some(TokenKind::Character), end.map_or(text.len(), |(at, _)| at + 1))
        }
        Some((_, _)) if characters.next().is_some_and(|(_, c)| c == '\'') => {
            let len = text.char_indices().nth(3).map_or(text.len(), |(at, _)| at);
            (Some(TokenKind::Character), len)
        }
        _ => {
            let len = text[1..].find(|c| !is_word(c)).map_or(text.len(), |at| at + 1);
            (Some(TokenKind::Lifetime), len)
        }
    }
}

/// Returns the length of the string literal that `text` begins with: a plain, raw, byte or C
/// string.
fn text_len(text: &str) -> Option<usize> {
    let prefix = text.find(|c: char| !"bcr".contains(c))?;
    let (prefix, rest) = text.split_at(prefix);
    if !["", "b", "c", "r", "br", "cr"].contains(&prefix) {
        return None;
    }
    if prefix.ends_with('r') {
        let hashes = rest.find(|c| c != '#')?;
        let body = rest[hashes..].strip_prefix('"')?;
        let close = format!("\"{}", "#".repeat(hashes));
        let len = body.find(&close).map_or(body.len(), |at| at + close.len());
        return Some(prefix.len() + hashes + 1 + len);
    }
    let body = rest.strip_prefix('"')?;
    let mut is_escaped = false;
    for (at, c) in body.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return Some(prefix.len() + 1 + at + 1),
            _ => {}
        }
    }
    Some(text.len())
}

/// Returns the tokens without comments, and without every item, field or statement under
/// `#[cfg(test)]` or `#[cfg(all(test, ..))]`.
pub fn production_code<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let code = without_comments(tokens);
    let mut kept = Vec::new();
    let mut at = 0;
    for (from, to) in test_items(&code) {
        kept.extend_from_slice(&code[at..from]);
        at = to;
    }
    kept.extend_from_slice(&code[at..]);
    kept
}

/// Returns the number of lines of a source, without the lines of items under `#[cfg(test)]`.
pub fn production_lines(source: &str) -> usize {
    let code = without_comments(&tokens(source));
    let of_tests = test_items(&code).into_iter().map(|(from, to)| {
        let first = code[from].line;
        code[from..to].last().map_or(0, |last| last.line - first + 1)
    });
    source.lines().count() - of_tests.sum::<usize>()
}

fn without_comments<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    tokens.iter().copied().filter(|token| token.kind != TokenKind::Comment).collect()
}

/// Returns the ranges of tokens that are compiled only for tests.
fn test_items(code: &[Token<'_>]) -> Vec<(usize, usize)> {
    let starts = |at: usize, words: &[&str]| {
        code[at..].len() >= words.len()
            && code[at..].iter().zip(words).all(|(token, word)| token.is(word))
    };
    let mut items = Vec::new();
    let mut at = 0;
    while at < code.len() {
        if starts(at, &["#", "[", "cfg", "(", "test", ")", "]"])
            || starts(at, &["#", "[", "cfg", "(", "all", "(", "test"])
        {
            let end = end_of_item(code, end_of_group(code, at + 1));
            items.push((at, end));
            at = end;
        } else {
            at += 1;
        }
    }
    items
}

/// Returns the position after the bracket that closes the bracket at `at`.
pub fn end_of_group(code: &[Token<'_>], at: usize) -> usize {
    let mut depth = 0;
    for (index, token) in code.iter().enumerate().skip(at) {
        depth += depth_change(token);
        if depth == 0 {
            return index + 1;
        }
    }
    code.len()
}

fn depth_change(token: &Token<'_>) -> isize {
    match token.text {
        _ if token.kind != TokenKind::Sign => 0,
        "(" | "[" | "{" => 1,
        ")" | "]" | "}" => -1,
        _ => 0,
    }
}

/// Returns the position after the item, field, match arm or statement that begins at `at`.
fn end_of_item(code: &[Token<'_>], mut at: usize) -> usize {
    while code.get(at).is_some_and(|token| token.is("#")) {
        at = end_of_group(code, at + 1);
    }
    let is_item = is_item(code, at);
    while let Some(token) = code.get(at) {
        if token.is("{") {
            return end_of_group(code, at);
        }
        if token.is(";") || (token.is(",") && !is_item) {
            return at + 1;
        }
        match depth_change(token) {
            1 => at = end_of_group(code, at),
            // The last field of a group may lack its comma.
            -1 => return at,
            _ => at += 1,
        }
    }
    at
}

/// Returns true if an item begins at `at`. Otherwise a field, a match arm or an expression begins
/// there, which, unlike an item, may end with a comma.
fn is_item(code: &[Token<'_>], at: usize) -> bool {
    const KEYWORDS: &[&str] = &[
        "async",
        "const",
        "enum",
        "extern",
        "fn",
        "impl",
        "let",
        "macro_rules",
        "mod",
        "static",
        "struct",
        "trait",
        "type",
        "union",
        "unsafe",
        "use",
    ];
    let mut at = at;
    if code.get(at).is_some_and(|token| token.is("pub")) {
        at += 1;
        if code.get(at).is_some_and(|token| token.is("(")) {
            at = end_of_group(code, at);
        }
    }
    code.get(at).is_some_and(|token| KEYWORDS.contains(&token.text))
}

//! The modules that a source file declares, and the paths that it names.

use crate::source::{Token, TokenKind, end_of_group, production_code, tokens};

/// A `use` declaration of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Import {
    pub path: Vec<String>,
    /// The name by which this module knows the path; `*` for a glob.
    pub name: String,
    pub is_reexport: bool,
    pub line: usize,
}

/// The scope of a file or of an inline module.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// Inline modules from the file down to this one.
    pub inline: Vec<String>,
    /// The modules that are declared with `mod NAME;`.
    pub children: Vec<String>,
    pub imports: Vec<Import>,
    /// Paths outside of `use`, of two segments or more, with their lines.
    pub mentions: Vec<(Vec<String>, usize)>,
    /// All words outside of `use`.
    pub words: Vec<String>,
}

/// Returns the scopes of a source file; the first is the scope of the file itself.
pub(super) fn scopes(source: &str) -> Vec<Scope> {
    let tokens = tokens(source);
    let code = production_code(&tokens);
    let mut scopes = vec![Scope::default()];
    // The open scopes: the index of each, and the position of the brace that closes it.
    let mut open: Vec<(usize, usize)> = vec![(0, code.len())];
    let mut at = 0;
    while at < code.len() {
        while open.len() > 1 && open.last().is_some_and(|(_, end)| at >= *end) {
            open.pop();
        }
        let scope = open.last().map_or(0, |(scope, _)| *scope);
        let is_named = |index: usize| code.get(index).is_some_and(|t| t.kind == TokenKind::Word);
        let follows = |index: usize, sign: &str| code.get(index).is_some_and(|t| t.is(sign));
        if code[at].is("mod") && is_named(at + 1) && follows(at + 2, ";") {
            scopes[scope].children.push(code[at + 1].text.to_owned());
            at += 3;
        } else if code[at].is("mod") && is_named(at + 1) && follows(at + 2, "{") {
            let mut inline = scopes[scope].inline.clone();
            inline.push(code[at + 1].text.to_owned());
            open.push((scopes.len(), end_of_group(&code, at + 2)));
            scopes.push(Scope { inline, ..Scope::default() });
            at += 3;
        } else if code[at].is("use") {
            let end = (at..code.len()).find(|&end| code[end].is(";")).unwrap_or(code.len());
            let is_reexport = is_public(&code[..at]);
            let mut tree = UseTree { code: &code[at + 1..end], at: 0, is_reexport };
            tree.expand(&[], &mut scopes[scope].imports);
            at = end + 1;
        } else {
            at = mention(&code, at, &mut scopes[scope]);
        }
    }
    scopes
}

/// Returns true if the tokens end with `pub` or `pub(..)`.
fn is_public(before: &[Token<'_>]) -> bool {
    let end = match before.last() {
        Some(token) if token.is(")") => before.iter().rposition(|token| token.is("(")),
        _ => Some(before.len()),
    };
    end.is_some_and(|end| before[..end].last().is_some_and(|token| token.is("pub")))
}

/// Records the word or path at `at`, and returns the position after it.
fn mention(code: &[Token<'_>], at: usize, scope: &mut Scope) -> usize {
    if code[at].kind != TokenKind::Word {
        return at + 1;
    }
    let mut path = vec![code[at].text.to_owned()];
    let mut end = at + 1;
    while code.get(end).is_some_and(|token| token.is("::"))
        && code.get(end + 1).is_some_and(|token| token.kind == TokenKind::Word)
    {
        path.push(code[end + 1].text.to_owned());
        end += 2;
    }
    scope.words.extend(path.iter().cloned());
    let is_start = at == 0 || !(code[at - 1].is("::") || code[at - 1].is("."));
    // The path of `pub(in path)` limits visibility, and is not an import.
    let is_visibility = at > 2 && code[at - 3].is("pub") && code[at - 1].is("in");
    if is_start && !is_visibility && path.len() > 1 {
        scope.mentions.push((path, code[at].line));
    }
    end
}

/// A parser of the tree after `use`.
struct UseTree<'a> {
    code: &'a [Token<'a>],
    at: usize,
    is_reexport: bool,
}

impl UseTree<'_> {
    fn take(&mut self, sign: &str) -> bool {
        let is_next = self.code.get(self.at).is_some_and(|token| token.is(sign));
        self.at += usize::from(is_next);
        is_next
    }

    /// Adds one import for each leaf of the tree.
    fn expand(&mut self, prefix: &[String], imports: &mut Vec<Import>) {
        let mut path = prefix.to_vec();
        while let Some(token) = self.code.get(self.at) {
            let (text, line) = (token.text, token.line);
            if self.take("{") {
                while !self.take("}") && self.at < self.code.len() {
                    self.expand(&path, imports);
                    self.take(",");
                }
                return;
            }
            self.at += 1;
            match text {
                "::" => continue,
                // A group's `self` is the path before the group.
                "self" if !path.is_empty() => {}
                _ => path.push(text.to_owned()),
            }
            if self.code.get(self.at).is_some_and(|token| token.is("::")) {
                continue;
            }
            let mut name = path.last().cloned().unwrap_or_default();
            if self.take("as") {
                name = self.code.get(self.at).map_or(name, |token| token.text.to_owned());
                self.at += 1;
            }
            imports.push(Import { path, name, is_reexport: self.is_reexport, line });
            return;
        }
    }
}

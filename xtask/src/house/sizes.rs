//! Counts the lines of files and functions, the methods of types, and the files in import cycles.

use std::collections::BTreeMap;

use terrane_testkit::source::{
    Token, TokenKind, end_of_group, production_code, production_lines, tokens,
};

use super::measurement::{Measurement, Rule};
use super::workspace::{CrateSources, Workspace};

/// Measures the production code of every crate.
pub(super) fn measure(workspace: &Workspace) -> Vec<Measurement> {
    let mut measurements = Vec::new();
    for each in &workspace.crates {
        let mut methods = BTreeMap::new();
        for file in each.graph.files() {
            let path = format!("{}/{file}", each.dir);
            let Some(source) = workspace.source(&path) else { continue };
            measurements.push(Measurement {
                rule: Rule::FileLines,
                subject: path.clone(),
                value: number(production_lines(&source.text)),
                place: path.clone(),
                details: Vec::new(),
            });
            let tokens = tokens(&source.text);
            let code = production_code(&tokens);
            measurements.extend(longest_functions(&code, &path));
            for (name, count) in inherent_methods(&code) {
                let origin = format!("{}/{}", each.dir, each.graph.origin(file, &name));
                let of_type: &mut Vec<String> = methods.entry((origin, name)).or_default();
                of_type.extend(std::iter::repeat_n(path.clone(), count));
            }
        }
        measurements.extend(
            methods
                .into_iter()
                .map(|((origin, name), places)| type_methods(&origin, &name, &places)),
        );
        measurements.extend(longest_cycle(each));
    }
    measurements
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn type_methods(origin: &str, name: &str, places: &[String]) -> Measurement {
    let mut files: Vec<&String> = places.iter().collect();
    files.dedup();
    let count = |file: &&String| places.iter().filter(|place| place == file).count();
    Measurement {
        rule: Rule::TypeMethods,
        subject: format!("{origin}::{name}"),
        value: number(places.len()),
        place: origin.to_owned(),
        details: files.iter().map(|file| format!("{file}: {} methods", count(file))).collect(),
    }
}

fn longest_cycle(each: &CrateSources) -> Option<Measurement> {
    let cycle = each.graph.cycles().into_iter().next()?;
    Some(Measurement {
        rule: Rule::CycleFiles,
        subject: each.dir.clone(),
        value: number(cycle.files.len()),
        place: each.dir.clone(),
        details: cycle.imports,
    })
}

/// Returns the longest function of each name in a file.
fn longest_functions(code: &[Token<'_>], path: &str) -> Vec<Measurement> {
    let mut longest: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (name, line, lines) in functions(code) {
        let known = longest.entry(name).or_insert((line, lines));
        if lines > known.1 {
            *known = (line, lines);
        }
    }
    let measurement = |(name, (line, lines)): (&str, (usize, usize))| Measurement {
        rule: Rule::FunctionLines,
        subject: format!("{path}::{name}"),
        value: number(lines),
        place: format!("{path}:{line}"),
        details: Vec::new(),
    };
    longest.into_iter().map(measurement).collect()
}

/// Returns every function with a body: its name, its first line and its number of lines.
fn functions<'a>(code: &[Token<'a>]) -> Vec<(&'a str, usize, usize)> {
    let mut functions = Vec::new();
    for (at, pair) in code.windows(2).enumerate() {
        if !pair[0].is("fn") || pair[1].kind != TokenKind::Word {
            continue;
        }
        let Some(body) = body(code, at + 2) else { continue };
        let end = end_of_group(code, body);
        let lines = code[end - 1].line - pair[0].line + 1;
        functions.push((pair[1].text, pair[0].line, lines));
    }
    functions
}

/// Returns the position of the brace that opens an item's body; `at` is within the item's head.
fn body(code: &[Token<'_>], mut at: usize) -> Option<usize> {
    while let Some(token) = code.get(at) {
        if token.is("{") {
            return Some(at);
        }
        if token.is(";") {
            return None;
        }
        at = if token.is("(") || token.is("[") { end_of_group(code, at) } else { at + 1 };
    }
    None
}

/// Returns the types that have `impl` blocks without a trait, each with its number of methods.
fn inherent_methods(code: &[Token<'_>]) -> Vec<(String, usize)> {
    let mut methods = Vec::new();
    for (at, token) in code.iter().enumerate() {
        // Elsewhere `impl` is part of a type.
        let begins_item =
            at == 0 || ["}", ";", "]", "{", "unsafe"].iter().any(|before| code[at - 1].is(before));
        if !token.is("impl") || !begins_item {
            continue;
        }
        let Some(open) = body(code, at + 1) else { continue };
        let Some(name) = type_name(&code[at + 1..open]) else { continue };
        let end = end_of_group(code, open);
        let mut count = 0;
        let mut inner = open + 1;
        while inner + 1 < end {
            if code[inner].is("{") || code[inner].is("(") || code[inner].is("[") {
                inner = end_of_group(code, inner);
                continue;
            }
            let is_method = code[inner].is("fn") && code[inner + 1].kind == TokenKind::Word;
            count += usize::from(is_method);
            inner += 1;
        }
        methods.push((name, count));
    }
    methods
}

/// Returns the type that an `impl` head names; `None` if the head has a trait.
fn type_name(head: &[Token<'_>]) -> Option<String> {
    let mut depth = 0;
    let mut name = None;
    for (at, token) in head.iter().enumerate() {
        // The `>` of `->` closes no bracket.
        let is_arrow = at > 0 && head[at - 1].is("-");
        if token.is("<") {
            depth += 1;
        } else if token.is(">") && !is_arrow {
            depth -= 1;
        } else if depth == 0 && token.is("for") {
            return None;
        } else if depth == 0 && token.is("where") {
            break;
        } else if depth == 0 && token.kind == TokenKind::Word {
            name = Some(token.text.to_owned());
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(source: &str) -> Vec<Token<'_>> {
        production_code(&tokens(source))
    }

    #[test]
    fn functions_have_their_lines_from_fn_to_brace() {
        let source = "fn a(x: [u8; 2]) -> u8\n{\n  x\n}\ntrait T { fn b(); }\nfn c() {}\n\
            const F: fn(u8) = d;";
        assert_eq!(functions(&code(source)), [("a", 1, 4), ("c", 6, 1)]);
    }

    #[test]
    fn methods_are_those_of_blocks_without_a_trait() {
        let source = "impl A { fn a() { fn inner() {} } pub fn b() {} const X: u8 = 1; }\n\
            impl<T: Fn() -> u8> B<T> where T: Copy { fn c() -> impl Sized { 1 } }\n\
            impl Display for A { fn fmt() {} }\nfn f() -> impl Iterator { loop {} }";
        let expected = [("A".to_owned(), 2), ("B".to_owned(), 1)];
        assert_eq!(inherent_methods(&code(source)), expected);
    }
}

use super::*;

fn texts(source: &str) -> Vec<&str> {
    tokens(source).iter().map(|token| token.text).collect()
}

fn code(source: &str) -> String {
    let tokens = tokens(source);
    production_code(&tokens).iter().map(|token| token.text).collect::<Vec<_>>().join(" ")
}

#[test]
fn literals_comments_and_lifetimes_are_single_tokens() {
    assert_eq!(texts("a::b"), ["a", "::", "b"]);
    assert_eq!(texts(r#"f("a \" // b", b"x")"#), ["f", "(", r#""a \" // b""#, ",", "b\"x\"", ")"]);
    assert_eq!(texts("r#\"a \" b\"# c"), ["r#\"a \" b\"#", "c"]);
    assert_eq!(texts("'a' '\\'' '\\u{1f}' 'é' '\"'"), ["'a'", "'\\''", "'\\u{1f}'", "'é'", "'\"'"]);
    assert_eq!(texts("fn f<'a>(x: &'static str)")[3], "'a");
    assert_eq!(texts("/* a /* b */ c */ d // e\nf"), ["/* a /* b */ c */", "d", "// e", "f"]);
    assert_eq!(texts("br_tree crate_name r"), ["br_tree", "crate_name", "r"]);
}

#[test]
fn lines_count_the_newlines_within_tokens() {
    let lines: Vec<_> =
        tokens("a\n/* b\n */ c\n\"d\ne\" f").iter().map(|token| token.line).collect();
    assert_eq!(lines, [1, 2, 3, 4, 5]);
}

#[test]
fn code_of_tests_is_dropped_and_nothing_else() {
    assert_eq!(code("#[cfg(test)] mod tests { fn f() { {} } } fn g() {}"), "fn g ( ) { }");
    assert_eq!(code("#[cfg(test)] #[allow(x)] fn f(a: [u8; 3]) {} x"), "x");
    assert_eq!(code("#[cfg(all(test, not(loom)))] mod tests; x"), "x");
    assert_eq!(code("#[cfg(test)] use a::{b, c}; x"), "; x");
    assert_eq!(code("struct A { #[cfg(test)] a: u8, b: u8 }"), "struct A { b : u8 }");
    assert_eq!(code("struct A { b: u8, #[cfg(test)] pub(crate) a: u8 }"), "struct A { b : u8 , }");
    assert_eq!(code("#[cfg(not(test))] use a; // b"), "# [ cfg ( not ( test ) ) ] use a ;");
}

#[test]
fn lines_of_tests_are_not_counted() {
    let source = "fn f() {\n}\n\n#[cfg(test)]\nmod tests {\n    // a\n    fn g() {}\n}\n";
    assert_eq!(production_lines(source), 3);
    assert_eq!(production_lines("// a\n#[cfg(test)]\nmod tests;\nfn f() {}\n"), 2);
}

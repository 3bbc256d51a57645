use std::ops::Bound::{Excluded, Included, Unbounded};

use terrane_testkit::Rng;

use super::*;

fn bytes_of(text: &str) -> Vec<u8> {
    parse_all(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error_of(text: &str) -> String {
    parse_all(text).expect_err(text).to_string()
}

#[test]
fn every_form_has_its_bytes() {
    assert_eq!(bytes_of("user:42"), b"user:42");
    assert_eq!(bytes_of("'two words'"), b"two words");
    assert_eq!(bytes_of(r#""a\n\t\r\0\\\"\x00é""#), b"a\n\t\r\0\\\"\0\xc3\xa9");
    assert_eq!(bytes_of("0xDEadbeef"), [0xde, 0xad, 0xbe, 0xef]);
    assert_eq!(bytes_of("0x"), b"");
    assert_eq!(bytes_of("''"), b"");
    assert_eq!(bytes_of("u64:42"), 42u64.to_be_bytes());
    assert_eq!(bytes_of("u32:7"), 7u32.to_be_bytes());
    assert_eq!(bytes_of("i64:-1"), [0x7f, 255, 255, 255, 255, 255, 255, 255]);
    assert_eq!(bytes_of("i32:0"), [0x80, 0, 0, 0]);
    assert_eq!(bytes_of(r#"{"name":"Ada"}"#), br#"{"name":"Ada"}"#);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), b"\xff\0 raw").unwrap();
    assert_eq!(bytes_of(&format!("@{}", file.path().display())), b"\xff\0 raw");
    assert_eq!(bytes_of(&format!("@'{}'", file.path().display())), b"\xff\0 raw");
}

#[test]
fn numbers_keep_their_order_as_bytes() {
    let numbers = ["i64:-9223372036854775808", "i64:-2", "i64:-1", "i64:0", "i64:9"];
    assert!(numbers.map(bytes_of).is_sorted());
    assert!(["u64:0", "u64:255", "u64:256", "u64:18446744073709551615"].map(bytes_of).is_sorted());
}

#[test]
fn bad_literals_say_what_is_wrong_with_them() {
    for (text, part) in [
        ("", "missing"),
        ("'open", "closing '"),
        ("\"open", "closing \""),
        ("\"\\q\"", "unknown escape"),
        ("\"\\x1\"", "unknown escape"),
        ("0xabc", "hexadecimal"),
        ("0xzz", "hexadecimal"),
        ("u64:-1", "not a number"),
        ("u32:4294967296", "not a number"),
        ("'a'b", "expected a blank"),
        ("two words", "after the end"),
        ("a..b", "after the end"),
        ("..b", "is a range"),
        ("@/no/such/file", "cannot read /no/such/file"),
    ] {
        let error = error_of(text);
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn printed_literals_are_the_shortest_that_read_back() {
    for (bytes, text) in [
        (&b"user:42"[..], "user:42"),
        (b"", "''"),
        (b"two words", "'two words'"),
        (b"it's", "it's"),
        (b"it's it", "\"it's it\""),
        (b"'", "\"'\""),
        (b"(nil)", "'(nil)'"),
        (b"0xab", "'0xab'"),
        (b"u64:7", "'u64:7'"),
        (b"a..b", "'a..b'"),
        (b"a.", "'a.'"),
        (b"@home", "'@home'"),
        (b"line\nline", "\"line\\nline\""),
        (b"caf\xc3\xa9", "café"),
        (b"\xe2\x80\xaeright to left", "\"\\xe2\\x80\\xaeright to left\""),
        (b"\0\0\0\0\0\0\0\x2a", "u64:42"),
        (b"\x7f\xff\xff\xff\xff\xff\xff\xff", "i64:-1"),
        (b"\x80\0\0\x05", "i32:5"),
        (b"\xde\xad\xbe\xef\x01", "0xdeadbeef01"),
        (b"key\xff", "\"key\\xff\""),
    ] {
        assert_eq!(print(bytes), text);
        assert_eq!(bytes_of(text), bytes);
    }
}

#[test]
fn random_bytes_survive_printing_and_parsing() {
    let mut rng = Rng::new(7);
    let alphabet = b"ab.:'\"\\@(x0u64 \n\t\0\xff\xc3\xa9=";
    for _ in 0..20_000 {
        let len = rng.index(10);
        let bytes: Vec<u8> = (0..len)
            .map(|_| if rng.percent(80) { *rng.pick(alphabet) } else { rng.bits() as u8 })
            .collect();
        let text = print(&bytes);
        assert_eq!(parse_all(&text).as_deref(), Ok(&bytes[..]), "{text}");
        assert!(!text.contains('\n') && !text.contains('\t'), "{text:?}");
        // The same as both bounds of a range.
        let range = format!("{text}..{text}");
        let expected = (Included(bytes.clone()), Excluded(bytes));
        assert_eq!(parse_range_argument(&range), Ok(expected), "{range}");
    }
}

#[test]
fn ranges_are_half_open_unless_they_say_otherwise() {
    let key = |text: &str| text.as_bytes().to_vec();
    for (text, bounds) in [
        ("a..m", (Included(key("a")), Excluded(key("m")))),
        ("a..=m", (Included(key("a")), Included(key("m")))),
        ("..m", (Unbounded, Excluded(key("m")))),
        ("a..", (Included(key("a")), Unbounded)),
        ("..", (Unbounded, Unbounded)),
        ("'a b'..\"c\"", (Included(key("a b")), Excluded(key("c")))),
        ("user:..user;", (Included(key("user:")), Excluded(key("user;")))),
    ] {
        assert_eq!(parse_range_argument(text), Ok(bounds), "{text}");
    }
    for text in ["a", "", "a..=", "..=", "a..m x", "a.b"] {
        assert!(parse_range_argument(text).is_err(), "{text}");
    }
    assert_eq!(prefix_bounds(b"a\xff"), (Included(b"a\xff".to_vec()), Excluded(b"b".to_vec())));
    assert_eq!(prefix_bounds(b"\xff").1, Unbounded);
}

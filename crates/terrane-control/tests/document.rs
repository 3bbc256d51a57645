//! `docs/control.md` has every request and every reply.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::path::Path;

/// Returns the names on the wire of the variants of an enum of the protocol.
fn names(of: &str) -> Vec<String> {
    let source = include_str!("../src/protocol.rs");
    let (_, body) = source.split_once(&format!("pub enum {of} {{\n")).unwrap();
    let (body, _) = body.split_once("\n}\n").unwrap();
    let variants = body.lines().filter_map(|line| line.strip_prefix("    "));
    let variants = variants.filter(|line| line.starts_with(char::is_uppercase));
    let names = variants.map(|line| {
        let name = line.split(|c: char| !c.is_alphanumeric()).next().unwrap();
        let words = name.chars().map(|c| {
            let dash = if c.is_uppercase() { "-" } else { "" };
            format!("{dash}{}", c.to_ascii_lowercase())
        });
        words.collect::<String>().trim_start_matches('-').to_owned()
    });
    names.collect()
}

#[test]
fn the_document_has_every_request_and_every_reply() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/control.md");
    let document = std::fs::read_to_string(path).unwrap();
    let (requests, replies) = (names("Request"), names("Reply"));
    assert!(requests.len() >= 16 && replies.len() >= 12, "{requests:?} {replies:?}");
    for request in requests {
        assert!(document.contains(&format!("| `{request}` |")), "no row for '{request}'");
    }
    for reply in replies {
        assert!(document.contains(&format!("`{reply}`")), "no reply '{reply}'");
    }
}

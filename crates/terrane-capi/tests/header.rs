//! Generates `include/terrane.h` from the sources, and compares it with the committed one.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};

use cbindgen::{Builder, Config, DocumentationStyle, ItemType, Language, Style};

/// The sections of the header, in order: a heading and the source of its functions.
const SECTIONS: [(&str, &str); 17] = [
    ("Versions", "version"),
    ("Errors", "error"),
    ("Texts and names", "text"),
    ("Options", "options"),
    ("Databases", "database"),
    ("Keyspaces", "keyspace"),
    ("Options of writes", "write_options"),
    ("Writes", "write"),
    ("Batches", "batch"),
    ("Values", "value"),
    ("Lookups", "read"),
    ("Snapshots", "snapshot"),
    ("Transactions", "transaction"),
    ("Iterators", "iter"),
    ("Ingests", "ingest"),
    ("Changes", "changes"),
    ("Databases that are not open", "files"),
];

fn manifest_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Generates the items of some kinds from some sources.
fn generate(sources: &[&str], items: &[ItemType]) -> String {
    let mut config = Config {
        language: Language::C,
        style: Style::Type,
        documentation_style: DocumentationStyle::C,
        no_includes: true,
        usize_is_size_t: true,
        ..Config::default()
    };
    config.export.item_types = items.to_vec();
    let mut builder = Builder::new().with_config(config);
    for source in sources {
        builder = builder.with_src(manifest_dir().join(format!("src/{source}.rs")));
    }
    let mut bytes = Vec::new();
    builder.generate().expect("the sources can be parsed").write(&mut bytes);
    String::from_utf8(bytes).unwrap()
}

fn header() -> String {
    let preamble = std::fs::read_to_string(manifest_dir().join("include/preamble.h")).unwrap();
    let sources = SECTIONS.map(|(_, source)| source);
    let types = [ItemType::Constants, ItemType::OpaqueItems, ItemType::Typedefs, ItemType::Structs];
    let mut header = format!("{preamble}\n{}", generate(&sources, &types));
    for (heading, source) in SECTIONS {
        let functions = generate(&[source], &[ItemType::Functions]);
        header.push_str(&format!("\n/* ---- {heading} ---- */\n\n{functions}"));
    }
    header.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif /* TERRANE_H */\n");
    header
}

#[test]
fn the_header_is_that_of_the_sources() {
    let path: PathBuf = manifest_dir().join("include/terrane.h");
    let generated = header();
    if std::env::var_os("TERRANE_REWRITE").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = generated.lines().zip(committed.lines()).find(|(new, old)| new != old);
    assert!(
        generated == committed,
        "include/terrane.h differs from the sources, first at {differs:?}; run this test with \
         TERRANE_REWRITE=1 and look at the difference"
    );
}

/// Every exported function is in the header once, with a comment.
#[test]
fn every_function_is_documented() {
    let header = header();
    // The comment at the beginning has an example, which calls functions.
    let (_, header) = header.split_once("extern \"C\" {").unwrap();
    let mut functions = 0;
    for entry in std::fs::read_dir(manifest_dir().join("src")).unwrap() {
        let source = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let lines: Vec<&str> = source.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let Some((_, rest)) = line.split_once("extern \"C\" fn ") else { continue };
            let Some((name, _)) = rest.split_once('(') else { continue };
            if !name.starts_with("terrane_") {
                continue;
            }
            functions += 1;
            assert_eq!(lines[index - 1], "#[unsafe(no_mangle)]", "{name} is not exported");
            assert!(lines[index - 2].starts_with("///"), "{name} has no comment");
            assert_eq!(header.matches(&format!("{name}(")).count(), 1, "{name}");
        }
    }
    assert!(functions > 80, "{functions}");
}

//! Generates a header from the sources of a crate, and compares it with the committed one.

use std::path::Path;

use cbindgen::{Builder, Config, DocumentationStyle, ItemType, Language, Style};

/// A header and what it is generated from.
pub(crate) struct Header<'a> {
    /// The directory of the crate.
    pub(crate) crate_dir: &'a Path,
    /// The header in that directory.
    pub(crate) path: &'a str,
    /// What comes before the items, up to `extern "C" {`, in that directory.
    pub(crate) preamble: &'a str,
    /// The sections of the header, in order: a heading and the source of its functions.
    pub(crate) sections: &'a [(&'a str, &'a str)],
    /// What all functions begin with.
    pub(crate) prefix: &'a str,
    /// Types whose pointers are never `const` in the header.
    pub(crate) never_const: &'a [&'a str],
}

impl Header<'_> {
    /// Generates the items of some kinds from some sources.
    fn items(&self, sources: &[&str], items: &[ItemType]) -> String {
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
            builder = builder.with_src(self.crate_dir.join(format!("src/{source}.rs")));
        }
        let mut bytes = Vec::new();
        builder.generate().expect("the sources can be parsed").write(&mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    /// Generates the part of the header after its preamble.
    fn body(&self) -> String {
        let sources: Vec<&str> = self.sections.iter().map(|(_, source)| *source).collect();
        let types =
            [ItemType::Constants, ItemType::OpaqueItems, ItemType::Typedefs, ItemType::Structs];
        let mut body = format!("\n{}", self.items(&sources, &types));
        for (heading, source) in self.sections {
            let functions = self.items(&[source], &[ItemType::Functions]);
            body.push_str(&format!("\n/* ---- {heading} ---- */\n\n{functions}"));
        }
        for name in self.never_const {
            body = body.replace(&format!("const {name} *"), &format!("{name} *"));
        }
        body.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
        body
    }

    /// Fails if the committed header is not the generated one.
    pub(crate) fn assert_committed(&self) {
        let preamble = std::fs::read_to_string(self.crate_dir.join(self.preamble)).unwrap();
        let generated = preamble + &self.body();
        let path = self.crate_dir.join(self.path);
        if std::env::var_os("TERRANE_REWRITE").is_some() {
            std::fs::write(&path, &generated).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        let differs = generated.lines().zip(committed.lines()).find(|(new, old)| new != old);
        assert!(
            generated == committed,
            "{} differs from the sources, first at {differs:?}; run this test with TERRANE_REWRITE=1 \
             and look at the difference",
            self.path
        );
    }

    /// Fails unless every function of the sources is exported, has a comment, and is in the header once.
    pub(crate) fn assert_complete(&self, least: usize) {
        let body = self.body();
        let mut functions = 0;
        for entry in std::fs::read_dir(self.crate_dir.join("src")).unwrap() {
            let source = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            let lines: Vec<&str> = source.lines().collect();
            for (index, line) in lines.iter().enumerate() {
                let Some((_, rest)) = line.split_once("extern \"C\" fn ") else { continue };
                let Some((name, _)) = rest.split_once('(') else { continue };
                if !name.starts_with(self.prefix) {
                    continue;
                }
                functions += 1;
                assert_eq!(lines[index - 1], "#[unsafe(no_mangle)]", "{name} is not exported");
                assert!(lines[index - 2].starts_with("///"), "{name} has no comment");
                assert_eq!(body.matches(&format!("{name}(")).count(), 1, "{name}");
            }
        }
        assert!(functions >= least, "{functions}");
    }
}

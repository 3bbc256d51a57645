//! Short texts of designs, and the settings in which two designs differ.

use super::settings::eager;
use super::{Design, text};
use crate::catalogue;

/// A choice in which two designs differ.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The key of the setting; `None` for the eagerness, which is the first word of the text.
    pub key: Option<&'static str>,
    /// The text of the first design.
    pub first: String,
    /// The text of the second design.
    pub second: String,
}

/// The text that stands for a setting at its default.
const DEFAULT: &str = "default";

impl Design {
    /// Returns the choices in which this design differs from another one, in printing order. If a
    /// design omits a rare setting, its text is `default`.
    pub fn differences(&self, other: &Self) -> Vec<Difference> {
        let (mine, theirs) = (self.settings(), other.settings());
        let text_of = |settings: &[(&str, String)], key| {
            let found = settings.iter().find(|(known, _)| *known == key);
            found.map_or_else(|| DEFAULT.to_owned(), |(_, text)| text.clone())
        };
        let words = (self.strategy.eagerness.to_string(), other.strategy.eagerness.to_string());
        let eagerness = (words.0 != words.1).then_some(Difference {
            key: None,
            first: words.0,
            second: words.1,
        });
        let keys = Self::KEYS.into_iter();
        let settings = keys.filter_map(|key| {
            let (first, second) = (text_of(&mine, key), text_of(&theirs, key));
            (first != second).then_some(Difference { key: Some(key), first, second })
        });
        eagerness.into_iter().chain(settings).collect()
    }

    /// Returns a short text that parses to this design: a name of the catalogue or an eagerness, and
    /// the settings that differ from it.
    pub fn summary(&self) -> String {
        let eagerness = self.strategy.eagerness.to_string();
        let plain = eager(&eagerness).ok().map(|design| (eagerness.as_str(), design));
        let named = catalogue::ALL.iter().map(|entry| (entry.name, (entry.design)()));
        // The setting `runs` would turn any name into a hybrid.
        let named = named.filter(|(_, base)| base.strategy.eagerness.to_string() == eagerness);
        let bases = plain.into_iter().chain(named);
        let texts = bases.filter_map(|(name, base)| self.summary_from(name, &base));
        // A design of an earlier version may break a rule for new designs; only its full text is
        // certain to parse.
        texts.min_by_key(String::len).unwrap_or_else(|| self.to_string())
    }

    /// Returns the text with the fewest settings that follow a name, if there is one.
    fn summary_from(&self, name: &str, base: &Self) -> Option<String> {
        let ours = self.settings();
        let differing = base.differences(self).into_iter().filter_map(|difference| {
            let key = difference.key?;
            ours.iter().find(|(known, _)| *known == key)
        });
        let mut settings: Vec<&(&str, String)> = differing.collect();
        if parsed(name, &settings).as_ref() != Some(self) {
            return None;
        }
        // Some settings follow others: `tiering T=4` also sets `L0`.
        let mut at = 0;
        while at < settings.len() {
            let removed = settings.remove(at);
            if parsed(name, &settings).as_ref() != Some(self) {
                settings.insert(at, removed);
                at += 1;
            }
        }
        Some(text::joined(name, settings.into_iter().map(|(key, value)| (*key, value.as_str()))))
    }
}

fn parsed(name: &str, settings: &[&(&str, String)]) -> Option<Design> {
    let settings = settings.iter().map(|(key, value)| (*key, value.as_str()));
    Design::from_settings(name, settings).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brief_texts_parse_to_the_same_design_and_name_only_what_differs() {
        for (text, summary) in [
            ("leveling", "leveling"),
            ("tiering T=4", "tiering T=4"),
            ("tiering T=4 L0=3; filter=5", "tiering T=4 L0=3; filter=5"),
            ("hybrid; runs=4,last:1", "hybrid; runs=4,last:1"),
        ] {
            let design: Design = text.parse().unwrap();
            assert_eq!(design.summary(), summary);
        }
        for entry in catalogue::ALL {
            let design = (entry.design)();
            assert_eq!(design.summary().parse::<Design>().unwrap(), design, "{}", entry.name);
            assert!(design.summary().len() <= entry.name.len(), "{}", design.summary());
        }
    }

    #[test]
    fn differences_name_both_texts_and_equal_designs_have_none() {
        let [first, second] = ["tiering T=4", "leveling T=4 L0=2; flush=merge"]
            .map(|text| text.parse::<Design>().unwrap());
        assert_eq!(first.differences(&first), []);
        let found = first.differences(&second);
        let text = |key: Option<&str>| {
            let found = found.iter().find(|difference| difference.key == key).unwrap();
            (found.first.as_str(), found.second.as_str())
        };
        assert_eq!(text(None), ("tiering", "leveling"));
        assert_eq!(text(Some("flush")), ("default", "merge"));
        assert!(found.iter().all(|difference| difference.key != Some("T")), "{found:?}");
    }
}

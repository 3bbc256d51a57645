//! Markers of translated prose in comments, documents and strings.

use terrane_testkit::source::{production_code, tokens};

use super::measurement::{Measurement, Rule};
use super::paragraphs::{Paragraph, of_comments, of_markdown, of_strings};
use super::phrase::{Marker, parse, words};
use super::workspace::Workspace;
use crate::step::root;

/// The number of words and of markers in one kind of prose.
struct Count {
    kind: &'static str,
    words: usize,
    hits: Vec<String>,
}

/// Returns the markers per 10,000 words of each kind of prose.
pub(super) fn measure(workspace: &Workspace) -> Result<Vec<Measurement>, String> {
    let path = root().join("xtask/voice.txt");
    let text =
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let markers = parse(&text)?;
    let empty = |kind| Count { kind, words: 0, hits: Vec::new() };
    let (mut comments, mut docs, mut strings) =
        (empty("comments"), empty("docs"), empty("strings"));
    for source in &workspace.sources {
        let tokens = tokens(&source.text);
        comments.add(&source.path, &of_comments(&tokens), &markers);
        if workspace.is_production(&source.path) {
            strings.add(&source.path, &of_strings(&production_code(&tokens)), &markers);
        }
    }
    for document in &workspace.documents {
        docs.add(&document.path, &of_markdown(&document.text), &markers);
    }
    Ok([comments, docs, strings].into_iter().map(Count::measurement).collect())
}

impl Count {
    fn add(&mut self, path: &str, paragraphs: &[Paragraph], markers: &[Marker]) {
        for paragraph in paragraphs {
            let lines = paragraph.lines.iter();
            self.words += lines.map(|(_, text)| text.split_whitespace().count()).sum::<usize>();
            let words = words(&paragraph.lines);
            for marker in markers {
                for at in marker.find(&words) {
                    let line = words[at].0;
                    let text = paragraph.lines.iter().find(|(number, _)| *number == line);
                    let text = text.map_or("", |(_, text)| text.as_str());
                    let (name, hint) = (&marker.name, &marker.hint);
                    self.hits.push(format!("{path}:{line}: {name} ({hint}): {text}"));
                }
            }
        }
    }

    fn measurement(self) -> Measurement {
        let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
        let rate = count(self.hits.len()) * 10_000.0 / count(self.words.max(1));
        Measurement {
            rule: Rule::VoiceMarkers,
            subject: self.kind.to_owned(),
            value: (rate * 10.0).round() / 10.0,
            place: self.kind.to_owned(),
            details: self.hits,
        }
    }
}

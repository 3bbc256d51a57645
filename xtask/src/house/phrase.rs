//! The phrases of `voice.txt`, and the search for them in prose.

/// A phrase that counts against the voice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marker {
    pub name: String,
    /// The better wording.
    pub hint: String,
    phrases: Vec<Vec<Element>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Element {
    /// One of these words.
    Either(Vec<String>),
    /// A word other than these.
    Neither(Vec<String>),
    /// Up to this number of words.
    Gap(usize),
}

/// Reads the text of `voice.txt`.
pub(super) fn parse(text: &str) -> Result<Vec<Marker>, String> {
    let mut markers: Vec<Marker> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fail = |what: &str| format!("xtask/voice.txt:{}: {what}: {line}", index + 1);
        if let Some(head) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let (name, hint) =
                head.split_once(": ").ok_or_else(|| fail("expected [NAME: HINT]"))?;
            let (name, hint) = (name.to_owned(), hint.to_owned());
            markers.push(Marker { name, hint, phrases: Vec::new() });
            continue;
        }
        let marker = markers.last_mut().ok_or_else(|| fail("a phrase before any [NAME: HINT]"))?;
        let elements: Option<Vec<Element>> = line.split(' ').map(element).collect();
        marker.phrases.push(elements.ok_or_else(|| fail("expected ..N"))?);
    }
    Ok(markers)
}

fn element(word: &str) -> Option<Element> {
    let either = |text: &str| text.split('|').map(str::to_owned).collect();
    match (word.strip_prefix(".."), word.strip_prefix('!')) {
        (Some(count), _) => count.parse().ok().map(Element::Gap),
        (None, Some(words)) => Some(Element::Neither(either(words))),
        (None, None) => Some(Element::Either(either(word))),
    }
}

/// Splits prose into lowercase words and the signs between them, each with the number of its line.
/// Code between backquotes is one word.
pub(super) fn words(lines: &[(usize, String)]) -> Vec<(usize, String)> {
    let mut words: Vec<(usize, String)> = Vec::new();
    let mut is_code = false;
    for (number, text) in lines {
        let mut is_new = true;
        for c in text.chars() {
            if c == '`' {
                is_code = !is_code;
                if is_code {
                    words.push((*number, "`".to_owned()));
                }
                is_new = true;
            } else if is_code {
                continue;
            } else if c.is_alphanumeric() || c == '\'' || c == '’' {
                match words.last_mut() {
                    Some((_, word)) if !is_new => word.extend(c.to_lowercase()),
                    _ => words.push((*number, c.to_lowercase().collect())),
                }
                is_new = false;
            } else {
                is_new = true;
                if !c.is_whitespace() && c != '*' && c != '_' {
                    words.push((*number, c.to_string()));
                }
            }
        }
    }
    words
}

impl Marker {
    /// Returns the positions of the words at which the phrase begins.
    pub(super) fn find(&self, words: &[(usize, String)]) -> Vec<usize> {
        let has_phrase =
            |at: usize| self.phrases.iter().any(|phrase| matches(phrase, &words[at..]));
        (0..words.len()).filter(|&at| has_phrase(at)).collect()
    }
}

fn matches(phrase: &[Element], words: &[(usize, String)]) -> bool {
    let Some((first, rest)) = phrase.split_first() else { return true };
    let is_word =
        |(_, word): &(usize, String)| word.starts_with(char::is_alphanumeric) || word == "`";
    match (first, words.split_first()) {
        (Element::Either(either), Some(((_, word), behind))) => {
            either.contains(word) && matches(rest, behind)
        }
        (Element::Neither(neither), Some((next, behind))) => {
            is_word(next) && !neither.contains(&next.1) && matches(rest, behind)
        }
        (Element::Gap(count), _) => {
            let longest = words.iter().take(*count).take_while(|word| is_word(word)).count();
            (0..=longest).any(|len| matches(rest, &words[len..]))
        }
        (_, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(phrase: &str, text: &str) -> usize {
        let markers = parse(&format!("[name: hint]\n{phrase}")).unwrap();
        markers[0].find(&words(&[(1, text.to_owned())])).len()
    }

    #[test]
    fn phrases_match_words_across_lines_and_not_code() {
        assert_eq!(count("what is|was", "What is kept and what was read; `what is` code"), 2);
        let lines = [(1, "it says what".to_owned()), (2, "is kept".to_owned())];
        assert_eq!(parse("[a: b]\nwhat is").unwrap()[0].find(&words(&lines)), [2]);
        assert_eq!(count(", as it|they", "Stops, as it must; as it is"), 1);
    }

    #[test]
    fn gaps_stay_within_a_sentence() {
        assert_eq!(count("held ..2 against", "held a b against, held. Now against"), 1);
        assert_eq!(count("held ..1 against", "held a b against"), 0);
    }

    #[test]
    fn negations_need_another_word() {
        assert_eq!(count("is no !longer|more", "is no longer; is no problem; there is no."), 1);
        assert_eq!(count("is no !longer|more", "is no `Arc`"), 1);
    }

    #[test]
    fn a_broken_file_is_an_error() {
        assert_eq!(
            parse("what is").unwrap_err(),
            "xtask/voice.txt:1: a phrase before any [NAME: HINT]: what is"
        );
        assert!(parse("[name]").is_err() && parse("[a: b]\nc ..d e").is_err());
    }
}

//! Links and anchors of a document.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

fn parser(text: &str) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES).into_offset_iter()
}

/// Returns the targets of all links and images, each with its line.
pub(super) fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (event, range) in parser(text) {
        if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event {
            let line = text.get(..range.start).unwrap_or_default().matches('\n').count() + 1;
            links.push((line, dest_url.into_string()));
        }
    }
    links
}

/// Returns the anchors of all headings, as code hosts name them.
pub(super) fn anchors(text: &str) -> BTreeSet<String> {
    let (mut anchors, mut seen) = (BTreeSet::new(), BTreeMap::<String, usize>::new());
    let mut heading: Option<String> = None;
    for (event, _) in parser(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let slug = slug(&heading.take().unwrap_or_default());
                let count = seen.entry(slug.clone()).or_default();
                anchors.insert(if *count == 0 { slug } else { format!("{slug}-{count}") });
                *count += 1;
            }
            _ => {}
        }
    }
    anchors
}

/// Returns the first heading.
pub(super) fn title(text: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix("# "));
    line.unwrap_or("untitled").to_owned()
}

fn slug(heading: &str) -> String {
    let kept = |c: char| match c {
        ' ' => Some('-'),
        _ => (c.is_alphanumeric() || c == '-' || c == '_').then_some(c),
    };
    heading.to_lowercase().chars().filter_map(kept).collect()
}

/// Replaces targets of links for which `change` returns another one.
pub(super) fn with_links(text: &str, change: impl Fn(&str) -> Option<String>) -> String {
    let mut changed = text.to_owned();
    // From the end, so that earlier ranges stay valid.
    let mut starts: Vec<(Range<usize>, String, String)> = Vec::new();
    for (event, range) in parser(text) {
        if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event
            && let Some(other) = change(&dest_url)
        {
            starts.push((range, dest_url.into_string(), other));
        }
    }
    // An image in a link is within it: the inner one begins later.
    starts.sort_by_key(|(range, ..)| std::cmp::Reverse(range.start));
    for (range, target, other) in starts {
        let Some(link) = changed.get(range.clone()) else { continue };
        // The target is the last part of a link in brackets.
        if let Some(at) = link.rfind(&format!("({target}")) {
            let from = range.start + at + 1;
            changed.replace_range(from..from + target.len(), &other);
        }
    }
    changed
}

/// Returns a relative path from a directory, from the root of the repository; `None` if it leaves the repository.
pub(super) fn resolved(directory: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

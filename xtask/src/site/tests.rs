use super::*;

#[test]
fn links_and_anchors_of_all_documents_lead_somewhere() {
    assert!(sources::check(&root()).unwrap() > 200);
}

#[test]
fn broken_links_of_documents_are_found() {
    let dir = std::env::temp_dir().join(format!("terrane-links-{}", std::process::id()));
    fs::create_dir_all(dir.join("docs")).unwrap();
    let page = |name: &str, text: &str| fs::write(dir.join(name), text).unwrap();
    page(
        "README.md",
        "# A\n\n[a](docs/b.md#what) [b](docs) [c](https://example.org) [d](#a) `[e](none.md)`\n",
    );
    page("docs/b.md", "# B\n\n## What\n\n[up](../README.md) ![p](../p.svg)\n");
    page("p.svg", "");
    let git = |arguments: &[&str]| {
        Command::new("git").args(arguments).current_dir(&dir).status().unwrap()
    };
    assert!(git(&["init", "--quiet"]).success() && git(&["add", "."]).success());
    assert_eq!(sources::check(&dir), Ok(5));
    page("docs/b.md", "# B\n\n## Which\n\n[up](../../README.md)\n\n[c](c.md)\n");
    let error = sources::check(&dir).unwrap_err();
    for part in ["README.md:3: docs/b.md#what", "docs/b.md:5: ../../README.md", "docs/b.md:7: c.md"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn every_document_is_in_the_contents() {
    let contents = Contents::read(&root()).unwrap();
    let names: Vec<String> = contents.names().collect();
    let missing: Vec<String> = sources::tracked(&root())
        .unwrap()
        .into_iter()
        .filter(|name| name.starts_with("docs/") && name.ends_with(".md") && !names.contains(name))
        .collect();
    assert!(missing.is_empty(), "docs/README.md does not lead to {missing:?}");
    assert!(
        contents.is_appendix("docs/papers/flodb.md") && contents.is_appendix("docs/metrics.md")
    );
    assert!(!contents.is_appendix("docs/performance.md"));
}

#[test]
fn anchors_are_those_of_code_hosts() {
    let text = "# A `b-c` & d\n\n## Same\n\n## Same\n\ntext\n\n### What's new?\n";
    let anchors: Vec<String> = markdown::anchors(text).into_iter().collect();
    assert_eq!(anchors, ["a-b-c--d", "same", "same-1", "whats-new"]);
}

#[test]
fn links_that_leave_the_documents_are_replaced() {
    let text = "See [a](a.md#x), [code](../src/a.rs) and `[no](../src/a.rs)`.\n\n[![p](../p.svg)](../src/a.rs)\n";
    let changed = markdown::with_links(text, |link| {
        link.starts_with("../").then(|| format!("R/{}", link.trim_start_matches("../")))
    });
    let expected = "See [a](a.md#x), [code](R/src/a.rs) and `[no](../src/a.rs)`.\n\n[![p](R/p.svg)](R/src/a.rs)\n";
    assert_eq!(changed, expected);
    assert_eq!(markdown::resolved("docs/papers", "../../x/./y.md").as_deref(), Some("x/y.md"));
    assert_eq!(markdown::resolved("docs", "../../x"), None);
}

#[test]
fn broken_links_of_pages_are_found() {
    let dir = std::env::temp_dir().join(format!("terrane-site-{}", std::process::id()));
    let page = |name: &str, text: &str| {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    page(
        "index.html",
        "<a href=\"a/b.html#here\"></a><a href=\"https://example.org\"></a><img src=\"p.svg\">",
    );
    page("a/b.html", "<h2 id=\"here\"></h2><a href=\"../index.html\"></a>");
    page("p.svg", "");
    let checked = built::check(&dir).unwrap();
    assert_eq!((checked.pages, checked.links), (2, 3));
    page("a/b.html", "<h2 id=\"there\"></h2><a href=\"../other.html\"></a>");
    let error = built::check(&dir).unwrap_err();
    assert!(
        error.contains("index.html: a/b.html#here") && error.contains("a/b.html: ../other.html"),
        "{error}"
    );
    fs::remove_dir_all(&dir).unwrap();
}

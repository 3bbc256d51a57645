use terrane_lab::host::Environment;

use super::*;

/// Results of the compaction experiment with two strategies.
fn results() -> Results {
    let experiment = experiments::find("compaction").unwrap();
    let mut results = Results::new("compaction", experiment.metrics);
    for (strategy, moved) in [("full", 24.0), ("tier", 11.0)] {
        let keys = ["load", "inserts", strategy];
        results.record_rounds("moved", &keys, moved, &[moved, moved + 1.0]);
    }
    results.environment = Some(Environment {
        machine: "two cores".into(),
        command: "terrane-papers a \"b\"".into(),
        ..Environment::of_run(&std::env::temp_dir(), 1)
    });
    results.table("Fig. 4: <strategies>", &["", "moved"], vec![vec!["a & b".into(), "1".into()]]);
    results
}

fn files(figure: Option<&str>) -> (Vec<String>, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let page = write(dir.path(), &[results()], figure).unwrap();
    let mut names: Vec<String> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let read = |path: PathBuf| fs::read_to_string(path).unwrap();
    (names, read(page), read(dir.path().join("compaction.csv")))
}

#[test]
fn a_report_has_a_page_panels_data_and_the_setting() {
    let (names, page, csv) = files(None);
    for name in ["compaction-fig-4a.svg", "compaction.csv", "environment.json", "report.html"] {
        assert!(names.iter().any(|one| one == name), "{name} of {names:?}");
    }
    assert!(page.contains("two cores") && page.contains("terrane-papers a &quot;b&quot;"));
    assert!(page.contains("class=\"verdict reproduced\"") && page.contains("rule"));
    assert!(page.contains("Fig. 4: &lt;strategies&gt;") && page.contains("a &amp; b"));
    // The page needs no other file.
    assert!(!page.contains("src=") && !page.contains("<link") && !page.contains("<script"));
    assert!(csv.contains("compaction,moved,load,inserts,full,,0,24\n"));
    assert!(csv.contains("compaction,moved,load,inserts,full,,2,25\n"));
}

#[test]
fn one_figure_has_its_panel_and_claims_only() {
    let (names, page, _) = files(Some("4a"));
    let panels = names.iter().filter(|name| name.ends_with(".svg")).count();
    assert_eq!(panels, 1, "{names:?}");
    assert!(page.contains("Fig. 4a") && !page.contains("Fig. 8"));
}

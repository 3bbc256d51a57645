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

/// Returns the stored results behind the pages of the papers.
fn stored() -> Vec<Results> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let results = paths.filter(|path| path.extension().is_some_and(|name| name == "json"));
    results.map(|path| serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()).collect()
}

#[test]
fn a_page_states_the_setting_of_each_measurement_and_when_it_was_rendered() {
    let all = stored();
    for results in &all {
        let environment = results.environment.as_ref().unwrap();
        let Environment { machine, date, command, commit, .. } = environment;
        assert!(!machine.is_empty() && !command.is_empty() && commit.is_some());
        assert!(date.starts_with("20"), "{}: {date}", results.experiment);
    }
    let dir = tempfile::tempdir().unwrap();
    let page = fs::read_to_string(write(dir.path(), &all, None).unwrap()).unwrap();
    let here = Environment::of_run(dir.path(), 1);
    assert!(!page.contains(&here.command) && !page.contains(&here.program), "of the rendering");
    for results in &all {
        let date = &results.environment.as_ref().unwrap().date;
        assert!(page.contains(&format!("<dt>measured<dd>{date}\n")), "{date}");
    }
    assert_eq!(page.matches("This page was rendered on ").count(), 1);
}

#[test]
fn every_measurement_that_a_claim_judges_is_drawn_beside_it() {
    let all = stored();
    assert_eq!(all.len(), experiments::ALL.len());
    let mut pictures = 0;
    for results in &all {
        let reported = ReportedExperiment::of(results, None).unwrap();
        for verdict in &reported.verdicts {
            let panels = || reported.panels.iter().filter(|panel| panel.is_of(verdict));
            let place = format!("{}, {}", results.experiment, verdict.source());
            if panels().next().is_none() {
                continue;
            }
            let drawn: BTreeSet<&MeasurementKey> =
                panels().flat_map(|panel| &panel.measurements).collect();
            let missing: Vec<&MeasurementKey> =
                verdict.measurements.iter().filter(|key| !drawn.contains(key)).collect();
            let Some(picture) = reported.picture_of(verdict) else {
                let is_measured = verdict.figures.iter().any(|figure| figure.value.is_finite());
                assert!(missing.is_empty() || !is_measured, "{place}: no picture of {missing:?}");
                continue;
            };
            pictures += 1;
            let finite = verdict.figures.iter().filter(|figure| figure.value.is_finite()).count();
            let svg = picture.svg("");
            assert_eq!(svg.matches("class=\"dot\"").count(), finite, "{place}");
        }
    }
    assert!(pictures > 20, "{pictures}");
}

#[test]
fn panels_draw_the_setting_that_their_claims_judge() {
    let all = stored();
    let dent = all.iter().find(|results| results.experiment == "dent").unwrap();
    let reported = ReportedExperiment::of(dent, None).unwrap();
    for verdict in &reported.verdicts {
        assert_eq!(reported.picture_of(verdict), None, "{}", verdict.says);
    }
    let compaction = all.iter().find(|results| results.experiment == "compaction").unwrap();
    let reported = ReportedExperiment::of(compaction, None).unwrap();
    let draws = |number: &str, metric: &str, keys: &[&str]| {
        let panel = reported.panels.iter().find(|panel| panel.number == number).unwrap();
        let keys = keys.iter().map(|&key| key.to_owned()).collect();
        assert!(panel.measurements.contains(&(metric.to_owned(), keys)), "{number}: {metric}");
    };
    draws("4e", "disk_lookup", &["0", "full"]);
    draws("6d", "lookup_pages", &["zipf", "40", "rr"]);
    draws("7b", "drawn_pages", &["uniform", "0", "tier"]);
    draws("8d", "tombstones", &["deletes", "20", "cold"]);
}

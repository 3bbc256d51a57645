//! The dashboard of docs/operations.md, for Grafana.

use std::fmt::Write;
use std::path::Path;

use super::{page, quoted};

/// A row of the table of panels.
struct Panel {
    title: String,
    queries: Vec<String>,
    unit: String,
    about: String,
}

fn panels() -> Vec<Panel> {
    let page = page();
    let table = page.split("<!-- panels -->").nth(1).unwrap();
    let rows = table.trim().lines().skip(2);
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        Panel {
            title: cells[1].to_owned(),
            queries: quoted(cells[2]).map(str::to_owned).collect(),
            unit: cells[3].to_owned(),
            about: cells[4].replace('`', ""),
        }
    })
    .collect()
}

/// Restricts every metric of a query to the instances that are chosen in the dashboard.
fn of_instances(query: &str) -> String {
    let mut restricted = String::new();
    let mut rest = query;
    while let Some(at) = rest.find("terrane_") {
        let end = rest[at..].find(|byte: char| !byte.is_ascii_alphanumeric() && byte != '_');
        let end = end.map_or(rest.len(), |end| at + end);
        restricted += &rest[..end];
        restricted += "{instance=~\"$instance\"}";
        rest = &rest[end..];
    }
    restricted + rest
}

/// Returns the name of a line: the metric without what all have in common.
fn line_of(query: &str) -> String {
    let metric = &query[query.find("terrane_").unwrap() + "terrane_".len()..];
    let end = metric.find(|byte: char| !byte.is_ascii_alphanumeric() && byte != '_');
    let metric = &metric[..end.unwrap_or(metric.len())];
    let parts = ["_duration_seconds_bucket", "_duration_seconds_sum", "_total", "_bytes"];
    let short = parts.iter().find_map(|part| metric.strip_suffix(part)).unwrap_or(metric);
    short.replace('_', " ")
}

/// Returns a text as a string of JSON.
fn string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn dashboard() -> String {
    let mut panels_json = String::new();
    for (number, Panel { title, queries, unit, about }) in panels().iter().enumerate() {
        let (x, y) = (number % 2 * 12, number / 2 * 8);
        let target = |(at, query): (usize, &String)| {
            let (name, query) = (line_of(query), of_instances(query));
            let name = if queries.len() == 1 {
                "{{instance}} {{keyspace}} {{cause}}".to_owned()
            } else {
                name + " {{instance}}"
            };
            let letter = char::from(b'A' + at as u8);
            format!(
                "        {{ \"refId\": \"{letter}\", \"expr\": {}, \"legendFormat\": {} }}",
                string(&query),
                string(&name)
            )
        };
        let targets: Vec<String> = queries.iter().enumerate().map(target).collect();
        let comma = if number == 0 { "" } else { ",\n" };
        write!(
            panels_json,
            "{comma}    {{\n      \"id\": {},\n      \"type\": \"timeseries\",\n      \"title\": {},\n      \
             \"description\": {},\n      \"datasource\": {{ \"type\": \"prometheus\", \"uid\": \"${{datasource}}\" }},\n      \
             \"gridPos\": {{ \"x\": {x}, \"y\": {y}, \"w\": 12, \"h\": 8 }},\n      \
             \"fieldConfig\": {{ \"defaults\": {{ \"unit\": {}, \"min\": 0 }}, \"overrides\": [] }},\n      \
             \"targets\": [\n{}\n      ]\n    }}",
            number + 1,
            string(title),
            string(about),
            string(unit),
            targets.join(",\n"),
        )
        .unwrap();
    }
    format!(
        "{{\n  \"title\": \"Terrane\",\n  \"uid\": \"terrane\",\n  \"description\": \"Made from docs/operations.md by a test.\",\n  \
         \"schemaVersion\": 39,\n  \"refresh\": \"10s\",\n  \"time\": {{ \"from\": \"now-1h\", \"to\": \"now\" }},\n  \
         \"templating\": {{ \"list\": [\n    {{ \"name\": \"datasource\", \"type\": \"datasource\", \"query\": \"prometheus\" }},\n    \
         {{ \"name\": \"instance\", \"type\": \"query\", \"datasource\": {{ \"type\": \"prometheus\", \"uid\": \"${{datasource}}\" }}, \
         \"query\": \"label_values(terrane_writes_total, instance)\", \"includeAll\": true, \"allValue\": \".*\", \"multi\": true, \
         \"refresh\": 2 }}\n  ] }},\n  \"panels\": [\n{panels_json}\n  ]\n}}\n"
    )
}

#[test]
fn the_dashboard_for_grafana_is_that_of_the_page() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/grafana-dashboard.json");
    if std::env::var_os("TERRANE_REWRITE").is_some() {
        std::fs::write(&path, dashboard()).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == dashboard(), "{} is stale; TERRANE_REWRITE=1 rewrites it", path.display());
}

#[test]
fn every_metric_of_a_query_is_restricted() {
    let restricted = of_instances("rate(terrane_a_total[5m]) / terrane_b");
    let instance = "{instance=~\"$instance\"}";
    assert_eq!(restricted, format!("rate(terrane_a_total{instance}[5m]) / terrane_b{instance}"));
    assert_eq!(
        line_of("histogram_quantile(0.99, rate(terrane_get_duration_seconds_bucket[5m]))"),
        "get"
    );
}

//! Parts of pages in HTML: the style sheet, and the setting of a measurement.

use crate::host::Environment;
use crate::output::plot::escaped;

/// The style sheet: for a laptop, a narrow window and paper.
pub const STYLE: &str = "\
:root{--line:#d8d8d8;--soft:#666}
*{box-sizing:border-box}
body{font:14.5px/1.5 system-ui,-apple-system,sans-serif;max-width:1180px;margin:1.6em auto;padding:0 20px;color:#1c1c1c}
h1{font-size:1.5em;margin:0 0 .3em}h2{font-size:1.25em;margin:2em 0 .4em;padding-top:.8em;border-top:2px solid #1c1c1c}
h3{font-size:1.02em;margin:1.6em 0 .5em}
p{margin:.4em 0}small,.soft{color:var(--soft);font-size:.88em}
code{font-size:.9em;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1em 1em;margin:.8em 0}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
nav{margin:.6em 0;line-height:1.9}nav a{margin-right:.9em;white-space:nowrap}a{color:#0058a3}
.figure{display:grid;grid-template-columns:minmax(0,11fr) minmax(0,10fr);gap:26px;padding:18px 0;border-bottom:1px solid var(--line);break-inside:avoid}
.figure svg{width:100%;height:auto;display:block}
.claim{padding:.15em 0 .7em}.claim+.claim{border-top:1px dotted var(--line);padding-top:.6em}
.claim .says{margin:0 0 .2em}
.claim table{border-collapse:collapse;margin:.15em 0}.claim td{padding:0 .8em 0 0;vertical-align:top}.claim td:first-child{color:var(--soft);white-space:nowrap}
.claim svg{width:100%;max-width:640px;height:auto;display:block;margin:.3em 0}
.claim ul{margin:.25em 0 0;padding-left:1.15em}
.verdict{display:inline-block;padding:.05em .55em;border-radius:3px;font-size:.82em;font-weight:600;color:#fff;white-space:nowrap;print-color-adjust:exact;-webkit-print-color-adjust:exact}
.reproduced{background:#00694a}.same-direction{background:#0063a5}.contradicted{background:#b03a00}
.not-comparable{background:#5f5f5f}.by-design{background:#6c3c99}.not-measured{background:#8d8d8d}
.counts .verdict{margin:0 .5em .3em 0}
details{margin:.8em 0}summary{cursor:pointer}
.data{border-collapse:collapse;font-size:.86em;margin:.5em 0}.data th,.data td{padding:.15em .7em;text-align:right;border-bottom:1px solid var(--line)}
.data th{vertical-align:bottom}.data th:first-child,.data td:first-child{text-align:left}.wide{overflow-x:auto}
@media(max-width:860px){.figure{grid-template-columns:1fr}}
@media print{@page{size:A4;margin:14mm}body{font-size:10.5pt;max-width:none;margin:0;padding:0}nav,details{display:none}
.figure{display:block;padding:10px 0;break-inside:auto}.figure>div:first-child{break-inside:avoid;break-after:avoid}.figure svg{width:66%}h2{break-after:avoid}h2:not(:first-of-type){break-before:page}.claim{break-inside:avoid}}";

/// Returns names and values of the setting of a measurement.
#[must_use]
pub fn setting_rows(environment: &Environment) -> Vec<(&'static str, String)> {
    let Environment { machine, version, program, command, date, seed, scale, rounds, note, .. } =
        environment;
    let commit = environment.commit_or_unknown();
    let mut rows = vec![
        ("machine", machine.clone()),
        ("program", format!("terrane {version}, {program}, commit {commit}")),
        ("command", command.clone()),
        ("measured", date.clone()),
    ];
    if let (Some(scale), Some(rounds)) = (scale, rounds) {
        rows.push(("setting", format!("scale {scale}, {rounds} rounds, seed {seed}")));
    }
    rows.extend(note.iter().map(|note| ("note", note.clone())));
    rows
}

/// Returns the setting of a measurement as a list.
#[must_use]
pub fn setting(environment: &Environment) -> String {
    let rows = setting_rows(environment).into_iter().map(|(name, value)| {
        let value = escaped(&value);
        match name {
            "command" => format!("<dt>{name}<dd><code>{value}</code>\n"),
            _ => format!("<dt>{name}<dd>{value}\n"),
        }
    });
    format!("<dl>\n{}</dl>\n", rows.collect::<String>())
}

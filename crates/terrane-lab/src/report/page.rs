//! Parts of pages in HTML: the style sheet, and the setting of a measurement.

use crate::host::Environment;
use crate::output::plot::escaped;

/// The style sheet: for a laptop, a narrow window, paper, light and dark. Its colours are those of the explorer.
/// Pictures are the same bytes everywhere, so they keep their white background.
pub const STYLE: &str = "\
:root{color-scheme:light dark;--back:#ffffff;--panel:#f6f7f9;--text:#1b1f24;--muted:#57606a;--line:#d8dee4;--accent:#0b5cad}
@media screen and (prefers-color-scheme:dark){:root{--back:#14171b;--panel:#1c2127;--text:#e6e9ed;--muted:#a2acb7;--line:#343b44;--accent:#7db8f2}}
*{box-sizing:border-box}
body{font:14px/1.5 system-ui,sans-serif;max-width:1220px;margin:1.6em auto;padding:0 20px;background:var(--back);color:var(--text)}
svg{background:#fff;border-radius:4px;print-color-adjust:exact;-webkit-print-color-adjust:exact}
body>svg{width:100%;height:auto;display:block;margin:1.2em 0;break-inside:avoid}
h1{font-size:1.5em;margin:0 0 .3em}h2{font-size:1.25em;margin:2em 0 .4em;padding-top:.8em;border-top:2px solid var(--line)}
h3{font-size:1.02em;margin:1.6em 0 .5em}
p{margin:.4em 0}small,.soft{color:var(--muted);font-size:.88em}
code{font-size:.9em;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1em 1em;margin:.8em 0}dt{color:var(--muted)}dd{margin:0;overflow-wrap:anywhere}
nav{margin:.6em 0;line-height:1.9}nav a{margin-right:.9em;white-space:nowrap}a{color:var(--accent)}
.figure{display:grid;grid-template-columns:minmax(0,11fr) minmax(0,10fr);gap:26px;padding:18px 0;border-bottom:1px solid var(--line);break-inside:avoid}
.figure svg{width:100%;height:auto;display:block}
.claim{padding:.15em 0 .7em}.claim+.claim{border-top:1px dotted var(--line);padding-top:.6em}
.claim .says{margin:0 0 .2em}
.claim table{border-collapse:collapse;margin:.15em 0}.claim td{padding:0 .8em 0 0;vertical-align:top}.claim td:first-child{color:var(--muted);white-space:nowrap}
.claim svg{width:100%;max-width:640px;height:auto;display:block;margin:.3em 0}
.claim ul{margin:.25em 0 0;padding-left:1.15em}
.verdict{display:inline-block;padding:.05em .55em;border-radius:3px;font-size:.82em;font-weight:600;color:#fff;white-space:nowrap;print-color-adjust:exact;-webkit-print-color-adjust:exact}
.reproduced{background:#00694a}.same-direction{background:#0063a5}.contradicted{background:#b03a00}
.not-comparable{background:#5f5f5f}.by-design{background:#6c3c99}.not-measured{background:#8d8d8d}
.counts .verdict{margin:0 .5em .3em 0}
details{margin:.8em 0}summary{cursor:pointer}
.data{border-collapse:collapse;font-size:.86em;margin:.5em 0}.data th,.data td{padding:.15em .7em;text-align:right;border-bottom:1px solid var(--line)}
.tables{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,500px),1fr));gap:0 34px}caption{text-align:left;font-weight:600;padding:.3em 0}
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of results and the explorer look alike, in light and dark.
    #[test]
    fn the_colours_are_those_of_the_explorer() {
        let sheet = concat!(env!("CARGO_MANIFEST_DIR"), "/../../explorer/src/style.css");
        let sheet = std::fs::read_to_string(sheet).unwrap();
        let colours = |text: &str, separator: &str| -> Vec<(String, String)> {
            let lines = text.split([';', '{', '}', '\n']).map(str::trim);
            let named = lines.filter_map(|line| line.strip_prefix("--")?.split_once(separator));
            named.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()
        };
        let (ours, theirs) = (colours(STYLE, ":"), colours(&sheet, ":"));
        assert_eq!(ours.len(), 12, "{ours:?}");
        for name in ["back", "panel", "text", "muted", "line", "accent"] {
            let of = |all: &[(String, String)]| -> Vec<String> {
                all.iter().filter(|(one, _)| one == name).map(|(_, value)| value.clone()).collect()
            };
            assert_eq!(of(&ours), of(&theirs), "light and dark {name}");
        }
    }
}

//! Size ratios, beside the authors' numbers: Fig. 10.

use anyhow::Result;

use super::setting::{SHORT, Setting, leveling, p99, tiering};
use crate::document::Document;
use crate::human;
use crate::human::seconds;

const RATIOS: [u32; 5] = [2, 4, 6, 8, 10];

/// Writes a second that came in the authors' running phases, at 95 % of the greatest rate
/// (Fig. 10a).
pub(super) const AUTHORS_LEVELING: [f64; 5] = [8233.0, 6364.0, 5135.0, 4739.0, 3600.0];
const AUTHORS_TIERING: [f64; 5] = [8250.0, 13764.0, 17604.0, 18815.0, 20112.0];

/// Full leveling whose last level is nearly full: the ratio of level 1 to level 0 is changed (§5.2.3).
fn dynamic(setting: &Setting, ratio: u32) -> String {
    let data = setting.records * 1050.0 * 1.02;
    let buffer = 128.0 * f64::from(1 << 20);
    let mut base = data;
    while base > buffer * f64::from(ratio) * 1.5 {
        base /= f64::from(ratio);
    }
    format!("{}; base={}", leveling(ratio), base as u64)
}

/// Fig. 10.
pub(super) fn play(setting: &Setting, document: &mut Document) -> Result<()> {
    let mut rows = Vec::new();
    let mut rates: [Vec<f64>; 2] = Default::default();
    let mut worst: [[f64; 2]; 2] = Default::default();
    let mut fair_leveling = Vec::new();
    for (index, ratio) in RATIOS.into_iter().enumerate() {
        for (policy, design) in [dynamic(setting, ratio), tiering(ratio)].into_iter().enumerate() {
            let fair = setting.phases(&format!("{design}; scheduler=fair"))?;
            let greedy = setting.phases(&format!("{design}; scheduler=greedy"))?;
            let (name, authors) = if policy == 0 {
                ("leveling", AUTHORS_LEVELING[index])
            } else {
                ("tiering", AUTHORS_TIERING[index])
            };
            rates[policy].push(fair.arrival_rate);
            for (scheduler, phases) in [&fair, &greedy].into_iter().enumerate() {
                worst[policy][scheduler] = worst[policy][scheduler].max(p99(&phases.running));
            }
            if policy == 0 {
                fair_leveling.push(p99(&fair.running));
            }
            rows.push(vec![
                format!("{name}, {ratio}"),
                human::number(fair.arrival_rate),
                human::number(authors),
                format!("{:.2}×", fair.arrival_rate / authors),
                seconds(p99(&fair.running)),
                seconds(p99(&greedy.running)),
            ]);
        }
    }
    claim_rates(document, &rates);
    claim_latencies(document, worst, &fair_leveling);
    let headers = ["policy, ratio", "writes/s", "authors", "over", "p99 fair", "p99 greedy"];
    document.table("Fig. 10: size ratios, at 95 % of the greatest rate", &headers, &rows);
    Ok(())
}

/// Fig. 10a.
fn claim_rates(document: &mut Document, rates: &[Vec<f64>; 2]) {
    let falls = |rates: &[f64]| rates.windows(2).all(|pair| pair[1] < pair[0] * 1.03);
    let rises = |rates: &[f64]| rates.windows(2).all(|pair| pair[1] > pair[0] * 0.97);
    let told = |rates: &[f64]| {
        rates.iter().map(|rate| human::number(*rate)).collect::<Vec<_>>().join(", ")
    };
    document.claim(
        "Fig. 10a",
        "a larger ratio makes leveling slower",
        (told(&rates[0]), falls(&rates[0])),
        "",
    );
    document.claim(
        "Fig. 10a",
        "a larger ratio makes tiering faster",
        (told(&rates[1]), rises(&rates[1])),
        "",
    );
    for (policy, authors, says) in [
        (
            0,
            &AUTHORS_LEVELING,
            "leveling: rates over those of a ratio of 4 are the authors' within 25 %",
        ),
        (
            1,
            &AUTHORS_TIERING,
            "tiering: rates over those of a ratio of 4 are the authors' within 25 %",
        ),
    ] {
        let off = rates[policy]
            .iter()
            .zip(authors)
            .map(|(ours, theirs)| (ours / rates[policy][1]) / (theirs / authors[1]));
        let off: Vec<f64> = off.collect();
        let holds = off.iter().all(|off| (0.75..=1.25).contains(off));
        let told = off.iter().map(|off| format!("{off:.2}")).collect::<Vec<_>>().join(", ");
        document.claim("Fig. 10a, authors", says, (told, holds), "");
    }
}

/// Fig. 10b: the longest p99 of leveling and tiering, by scheduler, and those of leveling under fair.
fn claim_latencies(document: &mut Document, worst: [[f64; 2]; 2], fair_leveling: &[f64]) {
    document.claim(
        "Fig. 10b",
        "tiering: fair and greedy have short latencies at every ratio",
        (
            format!("p99 at most {} and {}", seconds(worst[1][0]), seconds(worst[1][1])),
            worst[1][0] < SHORT && worst[1][1] < SHORT,
        ),
        "greedy has; fair has not where the table below says so",
    );
    document.claim(
        "Fig. 10b",
        "leveling: greedy has short latencies at every ratio",
        (format!("p99 at most {}", seconds(worst[0][1])), worst[0][1] < SHORT),
        "",
    );
    let small = fair_leveling[..2].iter().copied().fold(0.0, f64::max);
    let large = fair_leveling[2..].iter().copied().fold(0.0, f64::max);
    document.claim(
        "Fig. 10b",
        "leveling: fair has long latencies at large ratios",
        (
            format!("p99 at most {} up to 4, {} above", seconds(small), seconds(large)),
            large > SHORT && large > small,
        ),
        "the limit here counts the run that was just flushed as a level of its own, and so is two runs \
         wider than the paper's; see the claim with six runs",
    );
}

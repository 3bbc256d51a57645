//! The text form of a mix.

use std::fmt;
use std::str::FromStr;

use super::{MixOrder, MixPart, MixPhase, OperationKind, OperationMix, ScanLength};
use crate::distribution::Distribution;
use crate::error::ParseError;
use crate::key::{KeyOrder, Placement};

/// The default length of a scan.
const SCAN_ENTRIES_DEFAULT: u32 = 16;

const KINDS: &str = "insert, update, get, missing, scan, scan:ENTRIES, scan:PERCENT%, delete, \
                     delete-missing, delete-range:ENTRIES or delete-range:PERCENT%";

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Insert => f.write_str("insert"),
            Self::Update => f.write_str("update"),
            Self::Get => f.write_str("get"),
            Self::Missing => f.write_str("missing"),
            Self::Scan(length) => write!(f, "scan:{length}"),
            Self::Delete => f.write_str("delete"),
            Self::DeleteMissing => f.write_str("delete-missing"),
            Self::DeleteRange(length) => write!(f, "delete-range:{length}"),
        }
    }
}

impl fmt::Display for ScanLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entries(entries) => write!(f, "{entries}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl fmt::Display for OperationMix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (phase, parts)) in self.phases.iter().zip(self.phases()).enumerate() {
            f.write_str(if number > 0 { "; " } else { "" })?;
            for (number, part) in parts.iter().enumerate() {
                self.write_part(f, if number > 0 { "," } else { "" }, part)?;
            }
            if phase.weight != 1.0 {
                write!(f, " x{}", phase.weight)?;
            }
        }
        Ok(())
    }
}

impl OperationMix {
    fn write_part(&self, f: &mut fmt::Formatter<'_>, comma: &str, part: &MixPart) -> fmt::Result {
        write!(f, "{comma}{}={}", part.kind, part.share)?;
        match (part.kind, self.placement) {
            (OperationKind::Insert, KeyOrder::Skewed(placement)) => write!(f, "@{placement}"),
            (OperationKind::Insert, KeyOrder::Ordered) => f.write_str("@sequential"),
            _ => part.distribution.map_or(Ok(()), |chosen| write!(f, "@{chosen}")),
        }
    }
}

impl FromStr for OperationKind {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (name, length) = match text.split_once(':') {
            Some((name, length)) => (name, Some(length)),
            None => (text, None),
        };
        let kind = match (name, length) {
            ("insert", None) => Self::Insert,
            ("update", None) => Self::Update,
            ("get", None) => Self::Get,
            ("missing", None) => Self::Missing,
            ("delete", None) => Self::Delete,
            ("scan", None) => Self::Scan(ScanLength::Entries(SCAN_ENTRIES_DEFAULT)),
            ("scan", Some(length)) => Self::Scan(scan_length(length)?),
            ("delete-missing", None) => Self::DeleteMissing,
            ("delete-range", Some(length)) => Self::DeleteRange(scan_length(length)?),
            _ => return Err(ParseError::new("operation", text, format!("one of {KINDS}"))),
        };
        Ok(kind)
    }
}

fn scan_length(text: &str) -> Result<ScanLength, ParseError> {
    let length = match text.strip_suffix('%') {
        Some(percent) => percent
            .parse()
            .ok()
            .filter(|percent| *percent > 0.0 && *percent <= 100.0)
            .map(ScanLength::Percent),
        None => text.parse().ok().filter(|entries| *entries > 0).map(ScanLength::Entries),
    };
    length.ok_or_else(|| {
        ParseError::new("scan length", text, "a number of entries, or a share such as 0.1%")
    })
}

impl FromStr for OperationMix {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (mut parts, mut phases) = (Vec::new(), Vec::new());
        let mut placement = None;
        for phase in text.split(';').map(str::trim) {
            let (kinds, weight) = match phase.rsplit_once(" x") {
                Some((kinds, weight)) => (kinds, Some(weight)),
                None => (phase, None),
            };
            let weight = weight.map_or(Ok(1.0), |weight| {
                let weight: Option<f64> = weight.trim().parse().ok();
                weight
                    .filter(|weight| *weight > 0.0 && *weight <= 1e9)
                    .ok_or_else(|| ParseError::new("phase", phase, "a weight above 0 after the x"))
            })?;
            let of_phase = parse_phase(kinds, &mut placement)?;
            phases.push(MixPhase { weight, parts: of_phase.len() });
            parts.extend(of_phase);
        }
        let placement = placement.unwrap_or(KeyOrder::Hashed);
        Ok(Self { parts, phases, placement, order: MixOrder::Interleaved })
    }
}

/// Parses the kinds of a phase. All phases place inserts alike, because the keys of a run have one
/// placement.
fn parse_phase(text: &str, placement: &mut Option<KeyOrder>) -> Result<Vec<MixPart>, ParseError> {
    let mut parts: Vec<MixPart> = Vec::new();
    for word in text.split(',').map(str::trim) {
        let bad = |expected: &str| ParseError::new("mix", word, expected);
        let (kind, rest) = word
            .split_once('=')
            .ok_or_else(|| bad("KIND=SHARE or KIND=SHARE@DISTRIBUTION, such as get=30@zipf"))?;
        let kind: OperationKind = kind.trim().parse()?;
        let (share, chosen) = match rest.split_once('@') {
            Some((share, chosen)) => (share, Some(chosen.trim())),
            None => (rest, None),
        };
        let share: f64 = share.trim().parse().map_err(|_| bad("a number as the share"))?;
        if !(0.0..=1e9).contains(&share) {
            return Err(bad("a share from 0 on"));
        }
        if parts.iter().any(|part| part.kind == kind) {
            return Err(bad("each kind once in a phase"));
        }
        let mut distribution = None;
        match chosen {
            Some(chosen) if kind == OperationKind::Insert => {
                let order = chosen.parse::<Placement>()?.key_order();
                let is_used = share > 0.0;
                if is_used && placement.replace(order).is_some_and(|earlier| earlier != order) {
                    return Err(bad("the same distribution of inserts in all phases"));
                }
            }
            Some(chosen) => distribution = Some(chosen.parse::<Distribution>()?),
            None => {}
        }
        parts.push(MixPart { kind, share, distribution });
    }
    parts.retain(|part| part.share > 0.0);
    if parts.is_empty() {
        return Err(ParseError::new("mix", text, "a share above 0"));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_parse_and_print_back() {
        for text in [
            "insert=50,update=10,get=30,missing=5,scan:16=5",
            "insert=1@normal:0.34,get=1@zipf:0.99",
            "insert=1@zipf:1,scan:0.1%=0.5@normal:0.2,delete=0.25",
            "get=100",
            "insert=1@sequential x3; get=2@beta:2:5,delete-missing=1; delete-range:0.5%=1 x0.5",
        ] {
            assert_eq!(text.parse::<OperationMix>().unwrap().to_string(), text);
        }
        let mix: OperationMix = " insert = 50 , scan=1, delete=0".parse().unwrap();
        assert_eq!(mix.to_string(), "insert=50,scan:16=1");
        let default = OperationMix::default();
        assert_eq!(default.to_string().parse(), Ok(default));
    }

    #[test]
    fn invalid_mixes_are_rejected_with_the_accepted_texts() {
        for (text, hint) in [
            ("", "KIND=SHARE"),
            ("insert", "KIND=SHARE"),
            ("put=5", "one of insert, update"),
            ("get:5=1", "one of insert"),
            ("get=many", "a number as the share"),
            ("get=-1", "from 0 on"),
            ("get=NaN", "from 0 on"),
            ("get=1,get=2", "each kind once"),
            ("get=0", "above 0"),
            ("scan:0=1", "a number of entries"),
            ("scan:101%=1", "such as 0.1%"),
            ("get=1@round", "uniform, normal:DEVIATION"),
            ("insert=1@latest", "beta:ALPHA:BETA or zipf:THETA"),
            ("get=1 x0", "a weight above 0"),
            ("get=1;", "KIND=SHARE"),
            ("delete-range=1", "one of insert"),
            ("insert=1@zipf; insert=1@normal", "the same distribution of inserts"),
        ] {
            let error = text.parse::<OperationMix>().unwrap_err().to_string();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }
}

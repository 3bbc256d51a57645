//! Designs with a name for results and files.

use anyhow::Result;
use terrane::Design;
use terrane_policy::catalogue;

use crate::input::{fit, spec};

/// A design with a name.
#[derive(Debug, Clone)]
pub struct NamedDesign {
    /// The name of the design in results.
    pub name: String,
    /// A name for its directory and its files.
    pub slug: String,
    /// The design.
    pub design: Design,
    /// The number by which its sizes were divided to fit the data; 1 for the design as given.
    pub divided_by: u64,
}

impl NamedDesign {
    /// Parses design specs; each design is named after its spec, and its slug starts with its
    /// number.
    ///
    /// # Errors
    ///
    /// If a spec is not a design.
    pub fn parse_all(specs: &[String]) -> Result<Vec<Self>> {
        let parse = |(index, spec): (usize, &String)| {
            let is_name = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
            let word: String = spec.trim().chars().take_while(is_name).collect();
            Ok(Self {
                name: spec.trim().to_owned(),
                slug: format!("{}-{word}", index + 1),
                design: spec::parse(spec)?,
                divided_by: 1,
            })
        };
        specs.iter().enumerate().map(parse).collect()
    }

    /// Parses the designs of a measurement, the default one if there are no specs, and scales the
    /// sizes of each to the data unless its spec gives sizes.
    ///
    /// # Errors
    ///
    /// If a spec is not a design.
    pub fn parse_fitted(specs: &[String], data_bytes: u64) -> Result<Vec<Self>> {
        let default = [catalogue::DEFAULT.to_owned()];
        let specs = if specs.is_empty() { &default[..] } else { specs };
        let mut designs = Self::parse_all(specs)?;
        for (named, spec) in designs.iter_mut().zip(specs) {
            if !spec::gives_sizes(spec.trim())? {
                named.divided_by = fit::fit(&mut named.design, data_bytes);
            }
        }
        Ok(designs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn designs_are_named_after_their_specs() {
        let specs = ["leveling T=4; filter=5", " tiering"].map(str::to_owned);
        let designs = NamedDesign::parse_all(&specs).unwrap();
        assert_eq!(designs[0].name, "leveling T=4; filter=5");
        assert_eq!(designs[0].slug, "1-leveling");
        assert_eq!((designs[1].name.as_str(), designs[1].slug.as_str()), ("tiering", "2-tiering"));
        assert!(NamedDesign::parse_all(&["round".to_owned()]).is_err());
    }
}

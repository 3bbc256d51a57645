//! The bill of materials of the command: CycloneDX, JSON.

use std::fs;

use super::compile::FEATURES;
use super::notices;
use super::place::{Place, read, sizes};
use crate::report::{Made, Stop};
use crate::step::{cargo, root};
use crate::tool::{expect, output};

pub(super) fn make(place: &Place) -> Made {
    let is_there = cargo(["cyclonedx", "--version"]).output();
    if !is_there.is_ok_and(|output| output.status.success()) {
        let remedy = "no cargo-cyclonedx: cargo install cargo-cyclonedx --locked";
        return Err(Stop::Skipped(remedy.into()));
    }
    let manifest = root().join("crates/terrane-cli/Cargo.toml");
    let mut command = cargo(["cyclonedx", "--format", "json", "--describe", "crate"]);
    command.args(["--target", &place.target, "--features", FEATURES, "--manifest-path"]);
    command.arg(&manifest).env("SOURCE_DATE_EPOCH", &place.epoch);
    output(&mut command)?;
    // The tool writes next to the manifest.
    let written = manifest.with_file_name("terrane-cli.cdx.json");
    let path = place.files().join(format!("terrane-{}-{}.cdx.json", place.version, place.target));
    fs::rename(&written, &path)
        .or_else(|_| fs::copy(&written, &path).and_then(|_| fs::remove_file(&written)))
        .map_err(|error| format!("{}: {error}", written.display()))?;
    Ok(sizes(&[path])?)
}

/// The bill must list every crate in the command.
pub(super) fn try_out(place: &Place) -> Made {
    let path = place.files().join(format!("terrane-{}-{}.cdx.json", place.version, place.target));
    let bill = read(&path)?;
    let mut count = 0;
    for dependency in notices::dependencies(place)? {
        expect_component(&bill, &dependency.name)?;
        count += 1;
    }
    Ok(format!("lists the {count} crates from registries in the command"))
}

fn expect_component(bill: &str, name: &str) -> Result<(), String> {
    let component = format!("\"name\": \"{name}\"");
    expect(bill, &component).map_err(|_| format!("the bill of materials lacks {name}"))
}

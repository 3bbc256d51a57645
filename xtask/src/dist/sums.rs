//! `SHA256SUMS`, in the format of `sha256sum`.

use std::process::Command;

use super::place::{Place, list, write};
use crate::report::Made;
use crate::tool::{output, require};

const NAME: &str = "SHA256SUMS";

pub(super) fn make(place: &Place) -> Made {
    require("sha256sum", "install GNU coreutils")?;
    let files = place.files();
    let names = list(&files)?.into_iter().filter_map(|path| Some(path.file_name()?.to_owned()));
    let names: Vec<_> = names.filter(|name| name != NAME).collect();
    if names.is_empty() {
        return Err(format!("no files in {}", files.display()).into());
    }
    let sums = output(Command::new("sha256sum").args(&names).current_dir(&files))?;
    write(&files.join(NAME), sums)?;
    Ok(format!("{NAME} of {} files", names.len()))
}

pub(super) fn try_out(place: &Place) -> Made {
    let mut check = Command::new("sha256sum");
    let checked = output(check.args(["--check", "--strict", NAME]).current_dir(place.files()))?;
    Ok(format!("{} sums agree", checked.lines().filter(|line| line.ends_with(": OK")).count()))
}

//! Compares the files of a backup with those that the engine's manifest in it lists.
//!
//! The manifest of a backup has a checksum, but whoever can write to a repository can write another one. A
//! backup whose list lacks a table is restored only up to the missing table, so it is not intact.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use terrane::inspect;

use super::IncompleteBackup;
use crate::catalog::read;
use crate::content::ContentId;
use crate::error::{Error, Result};
use crate::limited::LimitedFile;
use crate::manifest::{BackedUpFile, Backup, CURRENT};
use crate::repository::Repository;
use crate::staging::Scratch;

/// The beginning of the names of the engine's manifests.
const ENGINE_MANIFEST: &str = "MANIFEST-";

/// Returns the backups whose files contradict the engine's manifest. Damaged objects are reported
/// elsewhere, and a backup that needs one of them for the comparison is not compared.
pub(super) fn check(
    repository: &dyn Repository,
    backups: &[Backup],
) -> Result<Vec<IncompleteBackup>> {
    let mut found = Vec::new();
    for backup in backups {
        let scratch = Scratch::create()?;
        if let Some(what) = contradiction(repository, backup, scratch.path())? {
            found.push(IncompleteBackup { backup: backup.name.clone(), what });
        }
    }
    Ok(found)
}

fn contradiction(
    repository: &dyn Repository,
    backup: &Backup,
    dir: &Path,
) -> Result<Option<String>> {
    let is_needed =
        |file: &&BackedUpFile| file.name == CURRENT || file.name.starts_with(ENGINE_MANIFEST);
    let needed: Vec<&BackedUpFile> = backup.files.iter().filter(is_needed).collect();
    if !needed.iter().any(|file| file.name == CURRENT) {
        return Ok(Some(format!("it lacks {CURRENT}")));
    }
    for file in needed {
        let object = file.object();
        // A missing object is reported as such.
        let Some(bytes) = read(repository, &object)? else { return Ok(None) };
        if Some(ContentId::of(&bytes)) != file.content() {
            return Ok(None);
        }
        let path = dir.join(&file.name);
        let written = LimitedFile::create(&path).and_then(|mut file| file.write_all(&bytes));
        written.map_err(|error| Error::file("write", &path, error))?;
    }
    let listed = match inspect::files(dir) {
        Ok(listed) => listed,
        Err(error) => {
            return Ok(Some(format!("the engine's manifest in it cannot be read: {error}")));
        }
    };
    if format!("{:016x}", listed.database) != backup.database {
        return Ok(Some(format!("its files are those of database {:016x}", listed.database)));
    }
    let files: HashMap<&str, &BackedUpFile> =
        backup.files.iter().map(|file| (&*file.name, file)).collect();
    for facts in &listed.files {
        let Some(file) = files.get(&*facts.name) else {
            return Ok(Some(format!("it lacks {}, which the engine's manifest lists", facts.name)));
        };
        let checksum = facts.checksum.map(|checksum| format!("{checksum:016x}"));
        if facts.is_final && (file.bytes, &file.xxh3) != (facts.bytes, &checksum) {
            return Ok(Some(format!(
                "{} is not the one that the engine's manifest lists",
                facts.name
            )));
        }
    }
    Ok(None)
}

//! Directories that an application used with LevelDB before.
//!
//! Some files of LevelDB have the names of files of the engine: `CURRENT` and the manifest that it names, `LOCK` and the
//! segments of the log. `LOG`, `LOG.old` and the directory `lost` are LevelDB's alone. They hold no data, and LevelDB
//! leaves them behind when it destroys or repairs a database.

use std::io::Read;
use std::path::Path;

use terrane_c::error::{Outcome, invalid};

/// What LevelDB leaves behind that holds no data of a database.
const LEFTOVERS: [&str; 4] = ["LOG", "LOG.old", "LOCK", "lost"];

/// Refuses a directory with a database of LevelDB itself, whose files have another format.
pub(crate) fn check_format(dir: &Path) -> Outcome<()> {
    let is_of_leveldb = is_current_of_leveldb(dir)
        || names(dir).any(|name| Path::new(&name).extension().is_some_and(|end| end == "ldb"));
    if is_of_leveldb {
        let dir = dir.display();
        return Err(invalid(format!(
            "'{dir}' has a database of LevelDB, whose files this library does not read; copy the keys with a \
             program that is linked with LevelDB"
        )));
    }
    Ok(())
}

/// Returns whether LevelDB left files in a directory, and all others are hidden. The engine does not know these names,
/// and would refuse to create a database among them.
pub(crate) fn has_only_leftovers(dir: &Path) -> bool {
    let mut visible = names(dir).filter(|name| !name.as_encoded_bytes().starts_with(b"."));
    visible.all(|name| LEFTOVERS.iter().any(|leftover| name == *leftover))
}

/// Returns whether `CURRENT` names a manifest of LevelDB. If there is no manifest to tell, `LOG` decides.
fn is_current_of_leveldb(dir: &Path) -> bool {
    let Ok(name) = std::fs::read_to_string(dir.join("CURRENT")) else { return false };
    let mut begin = [0; 16];
    let manifest = std::fs::File::open(dir.join(name.trim_end()));
    match manifest.and_then(|mut file| file.read_exact(&mut begin)) {
        Ok(()) => is_of_leveldb(begin),
        Err(_) => dir.join("LOG").exists(),
    }
}

/// Returns whether a manifest that begins with these bytes is one of LevelDB: a checksum of four bytes, a length of two,
/// the type of a whole or a first record, and the tag of the name of the order of keys. A manifest of the engine has a
/// length and its complement from the eighth byte on, but a checksum before it that may be anything.
fn is_of_leveldb(begin: [u8; 16]) -> bool {
    let [_, _, _, _, _, _, kind, tag, a, b, c, d, e, f, g, h] = begin;
    let is_of_engine = [!a, !b, !c, !d] == [e, f, g, h];
    matches!((kind, tag), (1 | 2, 1)) && !is_of_engine
}

/// Returns the names in a directory; none if it cannot be read, which the opening reports.
fn names(dir: &Path) -> impl Iterator<Item = std::ffi::OsString> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_of_leveldb_are_told_from_those_of_the_engine() {
        let leveldb = *b"\x56\xf9\xb8\xf8\x1c\x00\x01\x01\x1aleveldb";
        let engine = *b"\x9e\x4d\xb6\x44\x7b\x75\x91\x42\x6a\x01\x00\x00\x95\xfe\xff\xff";
        assert!(is_of_leveldb(leveldb) && !is_of_leveldb(engine));
        // A checksum of the engine that looks like the head of a record.
        let mut unlucky = engine;
        unlucky[6..8].copy_from_slice(&[1, 1]);
        assert!(!is_of_leveldb(unlucky));
    }
}

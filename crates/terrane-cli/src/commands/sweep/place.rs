//! Where the databases of a sweep are made.
//!
//! Beside its results, which lie where there is room: directories for temporary files may be in
//! memory. The directory has a name of its own, and a sweep has its results to itself: what is there
//! when one begins was left by one that was killed, and goes.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::experiment::fnv;
use crate::interrupt;
use crate::scratch::Scratch;

/// The name of the directory beside results.
const NAME: &str = "terrane-sweep-in-progress";

/// An empty directory for a sweep whose results are in `out`, beside them or in `dir`. The caller has
/// the results to itself.
///
/// # Errors
/// The directory cannot be made.
pub(super) fn of(out: &Path, dir: Option<&Path>) -> Result<Scratch> {
    let place = match dir {
        None => out.join(NAME),
        // Several sweeps may share a directory.
        Some(dir) => {
            let out =
                fs::canonicalize(out).with_context(|| format!("cannot use {}", out.display()))?;
            dir.join(format!("{NAME}-{:016x}", fnv(out.as_os_str().as_encoded_bytes())))
        }
    };
    interrupt::remove(&place);
    fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    Ok(Scratch::of(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_sweep_left_goes_when_the_next_one_begins() {
        let dir = tempfile::tempdir().unwrap();
        let (out, elsewhere) = (dir.path().join("out"), dir.path().join("elsewhere"));
        fs::create_dir(&out).unwrap();
        for work in [None, Some(&*elsewhere)] {
            let first = of(&out, work).unwrap();
            let path = first.path().to_owned();
            drop(first);
            // As if it had been killed.
            fs::create_dir_all(path.join("7")).unwrap();
            let second = of(&out, work).unwrap();
            assert_eq!(second.path(), path);
            assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
            drop(second);
            assert!(!path.exists());
        }
        let (one, other) = (of(&out, Some(&elsewhere)).unwrap(), of(&elsewhere, Some(&elsewhere)));
        assert_ne!(one.path(), other.unwrap().path());
    }
}

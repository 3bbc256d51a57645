//! The Python package: the source distribution, and a wheel that is built from it.
//!
//! Building the wheel from the unpacked source distribution shows that the latter is complete. The wheel
//! uses the stable interface of Python 3.11, so one wheel serves that version and all later ones; its tag
//! names the C library that it needs (manylinux), which maturin finds out by its symbols.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::place::{Place, list, make_dir, sizes};
use super::{archive, compile};
use crate::report::{Made, Stop};
use crate::step::root;
use crate::tool::{bare, expect, output, show};

/// The versions of maturin that `python/pyproject.toml` allows.
const MATURIN: &str = "maturin>=1.9,<2";

/// What a user does first, in Python without an environment and without the repository.
const USE: &str = "\
import importlib.metadata, terrane
with terrane.open('fruit') as db:
    db[b'apple'] = b'red'
    db.update({b'banana': b'yellow'})
with terrane.open('fruit') as db:
    assert list(db.items()) == [(b'apple', b'red'), (b'banana', b'yellow')]
hour = terrane.simulate('leveling', records=10**6, hours=0.1)
assert hour.summary['write_amplification'] > 1
print('terrane', importlib.metadata.version('terrane'))
";

pub(super) fn make(place: &Place) -> Made {
    let maturin = maturin(place)?;
    // Only the files of this run are to be tried.
    for old in [find(place, ".whl"), find(place, ".tar.gz")].into_iter().flatten() {
        fs::remove_file(&old).map_err(|error| format!("{}: {error}", old.display()))?;
    }
    let mut sdist = Command::new(&maturin);
    sdist.args(["sdist", "--manifest-path"]).arg(root().join("python/Cargo.toml"));
    sdist.arg("--out").arg(place.files()).env("CARGO_TARGET_DIR", place.kept("python"));
    output(sdist.env("SOURCE_DATE_EPOCH", &place.epoch))?;
    let sdist = find(place, ".tar.gz")?;

    let sources = archive::unpack(&sdist, &place.fresh("sdist")?)?;
    let mut wheel = Command::new(&maturin);
    wheel.args(["build", "--release", "--locked", "--out"]).arg(place.files());
    wheel.current_dir(&sources);
    compile::reproducible(&mut wheel, place, &sources);
    // Its profile and features differ from those of the command, so that both share nothing.
    wheel.env("CARGO_TARGET_DIR", place.kept("python"));
    show(&mut wheel)?;
    Ok(sizes(&[sdist, find(place, ".whl")?])?)
}

/// Installs the wheel into a new environment without the network, and uses it.
pub(super) fn try_out(place: &Place) -> Made {
    let dir = place.fresh("wheel-used")?;
    let venv = new_venv(&dir.join("venv"))?;
    let wheel = find(place, ".whl")?;
    let mut pip = Command::new(&venv);
    pip.args(["-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check"]);
    output(pip.arg(&wheel))?;
    let used = output(bare(&venv, &dir).args(["-I", "-c", USE]))?;
    let version = used.trim();
    // Python writes a pre-release 1.0.0-rc.1 as 1.0.0rc1.
    let release = place.version.split('-').next().unwrap_or_default();
    expect(version, release)?;
    let python = output(Command::new(&venv).arg("--version"))?;
    Ok(format!(
        "{version} opened, wrote, read and simulated in a new environment of {}",
        python.trim()
    ))
}

/// Returns the file of the Python package with this ending. The names of the other archives contain the
/// platform after a second hyphen.
fn find(place: &Place, ending: &str) -> Result<PathBuf, String> {
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_python = ending == ".whl" || name.matches('-').count() == 1;
        is_python && name.starts_with("terrane-") && name.ends_with(ending)
    };
    let found = list(&place.files())?.into_iter().find(is_wanted);
    found.ok_or_else(|| format!("no terrane-*{ending} in {}", place.files().display()))
}

/// Returns the path of maturin: the installed one, or one that is installed into `target/dist`.
fn maturin(place: &Place) -> Result<PathBuf, Stop> {
    let runs = |program: &Path| {
        Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let installed = PathBuf::from("maturin");
    if runs(&installed) {
        return Ok(installed);
    }
    let dir = place.kept("maturin");
    let own = dir.join("bin/maturin");
    if runs(&own) {
        return Ok(own);
    }
    let python = new_venv(&dir)?;
    let mut pip = Command::new(python);
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", MATURIN];
    output(pip.args(install))
        .map_err(|_| Stop::Skipped(format!("no maturin: pip install '{MATURIN}'")))?;
    Ok(own)
}

/// Creates an environment and returns its interpreter.
fn new_venv(dir: &Path) -> Result<PathBuf, Stop> {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let is_new = "import sys, venv; sys.exit(sys.version_info < (3, 11))";
    if !Command::new(&python).args(["-c", is_new]).output().is_ok_and(|it| it.status.success()) {
        let remedy = "set PYTHON to Python 3.11 or newer with its module venv";
        return Err(Stop::Skipped(format!("no suitable {python}: {remedy}")));
    }
    make_dir(dir)?;
    output(Command::new(&python).args(["-m", "venv", "--clear"]).arg(dir))?;
    Ok(dir.join("bin/python"))
}

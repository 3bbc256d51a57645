//! The archive of the C libraries: headers, shared and static libraries, pkg-config files, examples.
//!
//! Its pkg-config files name no absolute path, so the archive works in any directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::place::{self, Place, copy, sizes, write};
use super::{archive, compile};
use crate::report::Made;
use crate::step::root;
use crate::tool::{bare, expect, output, require};

/// The crates, their libraries, and their pkg-config files.
const LIBRARIES: [(&str, &str, &str); 2] = [
    ("terrane-leveldb", "terrane_leveldb", "terrane-leveldb"),
    ("terrane-capi", "terrane_c", "terrane"),
];

/// The number in the name that programs load, as in the Makefile of `terrane-capi`.
const ABI: &str = "1";

const IS_MACOS: bool = cfg!(target_os = "macos");

fn name(place: &Place) -> String {
    format!("libterrane-{}-{}", place.version, place.target)
}

pub(super) fn make(place: &Place) -> Made {
    require("strip", "install binutils")?;
    let dir = place.fresh("library")?.join(name(place));
    for (package, library, module) in LIBRARIES {
        let loaded = shared_name(library, ABI);
        let link_argument = if IS_MACOS {
            format!("-Wl,-install_name,@rpath/{loaded}")
        } else {
            format!("-Wl,-soname,{loaded}")
        };
        compile::library(place, package, &link_argument)?;
        install_library(place, library, &dir.join("lib"))?;
        let template = root().join(format!("crates/{package}/{module}.pc.in"));
        let module_file = place::read(&template)?
            .replace("@PREFIX@", "${pcfiledir}/../..")
            .replace("@LIBDIR@", "${prefix}/lib")
            .replace("@INCLUDEDIR@", "${prefix}/include")
            .replace("@VERSION@", &place.version);
        write(&dir.join(format!("lib/pkgconfig/{module}.pc")), module_file)?;
    }
    let documents = dir.join("share/doc/libterrane");
    for (from, to) in [
        ("crates/terrane-capi/include/terrane.h", dir.join("include/terrane.h")),
        ("crates/terrane-leveldb/include/leveldb/c.h", dir.join("include/terrane/leveldb/c.h")),
        ("docs/c.md", documents.join("README.md")),
        ("LICENSE-MIT", documents.join("LICENSE-MIT")),
        ("LICENSE-APACHE", documents.join("LICENSE-APACHE")),
    ] {
        copy(&root().join(from), &to)?;
    }
    for example in ["first.c", "accounts.c", "events.c"] {
        let from = root().join("crates/terrane-capi/examples/c").join(example);
        copy(&from, &documents.join("examples").join(example))?;
    }
    Ok(sizes(&[archive::pack(place, &dir)?])?)
}

/// Copies a shared library under its full version, with the links that programs and linkers look for,
/// and a static library without debug information.
fn install_library(place: &Place, library: &str, dir: &Path) -> Result<(), String> {
    let built = compile::output_dir(place);
    let extension = if IS_MACOS { "dylib" } else { "so" };
    let full = shared_name(library, &place.version);
    copy(&built.join(format!("lib{library}.{extension}")), &dir.join(&full))?;
    link(&full, &dir.join(shared_name(library, ABI)))?;
    link(&shared_name(library, ABI), &dir.join(format!("lib{library}.{extension}")))?;
    let fixed = dir.join(format!("lib{library}.a"));
    copy(&built.join(format!("lib{library}.a")), &fixed)?;
    output(Command::new("strip").arg("-S").arg(&fixed))?;
    Ok(())
}

/// Returns the name of a shared library with a version: `libNAME.so.1`, or `libNAME.1.dylib` on macOS.
fn shared_name(library: &str, version: &str) -> String {
    if IS_MACOS {
        format!("lib{library}.{version}.dylib")
    } else {
        format!("lib{library}.so.{version}")
    }
}

fn link(target: &str, path: &Path) -> Result<(), String> {
    #[cfg(unix)]
    let linked = std::os::unix::fs::symlink(target, path);
    #[cfg(not(unix))]
    let linked = path.with_file_name(target).metadata().map(|_| ());
    linked.map_err(|error| format!("{}: {error}", path.display()))
}

/// Compiles the first example with each kind of library from the unpacked archive, and runs it.
pub(super) fn try_out(place: &Place) -> Made {
    require("cc", "install a C compiler")?;
    require("pkg-config", "install pkg-config")?;
    let fresh = place.fresh("library-used")?;
    let prefix = archive::unpack(&place.files().join(name(place) + ".tar.gz"), &fresh)?;
    let source = prefix.join("share/doc/libterrane/examples/first.c");
    let include = format!("-I{}", prefix.join("include").display());

    let mut flags = Command::new("pkg-config");
    flags.args(["--cflags", "--libs", "terrane"]);
    flags.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let flags = output(&mut flags)?;
    expect(&flags, "-lterrane_c")?;
    let compile = |name: &str, arguments: &[&str]| -> Result<PathBuf, String> {
        let program = fresh.join(name);
        let mut cc = Command::new("cc");
        output(cc.args(["-Wall", "-Werror"]).arg(&source).args(arguments).arg("-o").arg(&program))?;
        Ok(program)
    };
    let shared = compile("shared", &flags.split_whitespace().collect::<Vec<_>>())?;
    run(&shared, &fresh, Some(&prefix.join("lib")))?;
    let fixed = prefix.join("lib/libterrane_c.a").display().to_string();
    let fixed = compile("static", &[&include, &fixed, "-lpthread", "-ldl", "-lm"])?;
    fs::remove_dir_all(prefix.join("lib")).map_err(|error| error.to_string())?;
    run(&fixed, &fresh, None)?;
    Ok("first.c compiled, linked and ran with the shared and with the static library".into())
}

/// Runs the example on a fresh database, with the directory of shared libraries if there is one.
fn run(program: &Path, dir: &Path, libraries: Option<&Path>) -> Result<(), String> {
    let database = format!("{}.db", program.display());
    let mut command = bare(program, dir);
    if let Some(libraries) = libraries {
        let variable = if IS_MACOS { "DYLD_LIBRARY_PATH" } else { "LD_LIBRARY_PATH" };
        command.env(variable, libraries);
    }
    expect(&output(command.arg(database))?, "apple is red\nbanana is yellow\n")
}

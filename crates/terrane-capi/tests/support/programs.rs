//! Compiles programs in C and runs them, if there is a compiler.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The warnings that must not occur.
const WARNINGS: [&str; 5] = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-Wno-unused-function"];

/// A crate with programs in C.
pub(crate) struct Programs<'a> {
    /// Its directory.
    pub(crate) crate_dir: &'a Path,
    /// The name of its library.
    pub(crate) library: &'a str,
    /// Its header, as programs include it.
    pub(crate) header: &'a str,
}

/// Returns the directory that has the libraries of this build.
fn library_dir() -> PathBuf {
    // The test is in the directory in which cargo has built the library that it depends on.
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

fn has(compiler: &str) -> bool {
    let found = Command::new(compiler).arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED: there is no `{compiler}`");
    }
    found
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} ended with {}:\n{text}", output.status);
    output
}

impl Programs<'_> {
    fn static_library(&self) -> PathBuf {
        let entries = std::fs::read_dir(library_dir()).unwrap();
        let mut found: Vec<PathBuf> = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                name.starts_with(&format!("lib{}", self.library)) && name.ends_with(".a")
            })
            .collect();
        found.sort_by_key(|path| path.metadata().unwrap().modified().unwrap());
        found.pop().unwrap()
    }

    /// Compiles a program, and returns its path.
    fn compile(&self, source: &Path, dir: &Path, is_static: bool) -> PathBuf {
        let program = dir.join(if is_static { "static" } else { "shared" });
        let mut cc = Command::new("cc");
        cc.args(["-std=gnu99", "-O1", "-g"]).args(WARNINGS);
        cc.arg("-I").arg(self.crate_dir.join("include")).arg(source).arg("-o").arg(&program);
        if is_static {
            cc.arg(self.static_library()).args(["-lpthread", "-ldl", "-lm"]);
        } else {
            cc.arg("-L").arg(library_dir()).arg(format!("-l{}", self.library)).arg("-lpthread");
        }
        succeed(&mut cc);
        program
    }

    /// Compiles a program and runs it in an empty directory, with the shared and with the static library, and
    /// compares what it prints.
    pub(crate) fn assert_prints(&self, source: &str, expected: &str) {
        if !has("cc") {
            return;
        }
        let source = self.crate_dir.join(source);
        for is_static in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let program = self.compile(&source, dir.path(), is_static);
            let data = dir.path().join("data");
            std::fs::create_dir(&data).unwrap();
            let mut run = Command::new(program);
            run.arg(&data);
            run.env("LD_LIBRARY_PATH", library_dir()).env("DYLD_LIBRARY_PATH", library_dir());
            let printed = String::from_utf8(succeed(&mut run).stdout).unwrap();
            assert_eq!(printed, expected, "static: {is_static}");
        }
    }

    /// Fails if the header has warnings as C99 or as C++11.
    pub(crate) fn assert_header_is_clean(&self) {
        let dir = tempfile::tempdir().unwrap();
        for (compiler, language, standard) in
            [("cc", "c", "-std=c99"), ("c++", "c++", "-std=c++11")]
        {
            if !has(compiler) {
                continue;
            }
            let source = dir.path().join("header");
            let include = format!("#include <{}>\n", self.header);
            std::fs::write(&source, include.repeat(2)).unwrap();
            let mut check = Command::new(compiler);
            check.args([standard, "-x", language, "-fsyntax-only"]).args(WARNINGS);
            succeed(check.arg("-I").arg(self.crate_dir.join("include")).arg(&source));
        }
    }
}

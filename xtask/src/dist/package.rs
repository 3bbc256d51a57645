//! The Debian package: the files of the command's archive, and the systemd unit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::command::{DOCUMENTS, PAGES, unpacked};
use super::place::{Place, copy, list, make_dir, read, sizes, write};
use super::{glibc, session};
use crate::report::{Made, Stop};
use crate::step::root;
use crate::tool::{expect, output, require};

/// The scripts that dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// The settings that an administrator edits: an upgrade keeps the changes.
const CONFFILE: &str = "/etc/terrane/main.env";

fn path(place: &Place) -> Result<PathBuf, Stop> {
    let (version, architecture) = (debian_version(&place.version), architecture(&place.target)?);
    Ok(place.files().join(format!("terrane_{version}_{architecture}.deb")))
}

/// Returns a version that sorts a pre-release before its release: 1.0.0-rc.1 becomes 1.0.0~rc.1.
fn debian_version(version: &str) -> String {
    version.replacen('-', "~", 1)
}

/// Returns Debian's name of a processor.
fn architecture(target: &str) -> Result<&'static str, Stop> {
    match target {
        "x86_64-unknown-linux-gnu" => Ok("amd64"),
        "aarch64-unknown-linux-gnu" => Ok("arm64"),
        _ => Err(Stop::Skipped(format!("{target} is not Debian; run it on Linux"))),
    }
}

pub(super) fn make(place: &Place) -> Made {
    let path = path(place)?;
    require("dpkg-deb", "apt-get install dpkg")?;
    let prefix = unpacked(place, "deb")?;
    let tree = place.fresh("deb-tree")?;
    make_dir(&tree.join("usr"))?;
    for part in ["bin", "share"] {
        fs::rename(prefix.join(part), tree.join("usr").join(part))
            .map_err(|error| format!("{part}: {error}"))?;
    }
    // Debian keeps pages and changelogs compressed.
    let mut compressed = list(&tree.join("usr").join(PAGES))?;
    let documents = tree.join("usr").join(DOCUMENTS);
    fs::rename(documents.join("CHANGELOG.md"), documents.join("changelog"))
        .map_err(|error| format!("changelog: {error}"))?;
    compressed.push(documents.join("changelog"));
    gzip(&compressed)?;
    for (from, to) in [
        ("debian/copyright", documents.join("copyright")),
        ("terrane@.service", tree.join("usr/lib/systemd/system/terrane@.service")),
        ("main.env", tree.join(&CONFFILE[1..])),
        ("prometheus-rules.yml", documents.join("prometheus-rules.yml")),
        ("grafana-dashboard.json", documents.join("grafana-dashboard.json")),
    ] {
        copy(&root().join("packaging").join(from), &to)?;
    }
    for script in SCRIPTS {
        copy(&root().join("packaging/debian").join(script), &tree.join("DEBIAN").join(script))?;
    }
    write(&tree.join("DEBIAN/conffiles"), format!("{CONFFILE}\n"))?;
    write(&tree.join("DEBIAN/control"), control(place, &tree)?)?;
    output(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&tree))?;
    // Takes the times of the files, at most the time of the commit, and user 0.
    let mut deb = Command::new("dpkg-deb");
    deb.args(["--root-owner-group", "-Zxz", "--build"]).arg(&tree).arg(&path);
    output(deb.env("SOURCE_DATE_EPOCH", &place.epoch))?;
    Ok(sizes(&[path])?)
}

fn control(place: &Place, tree: &Path) -> Result<String, Stop> {
    let template = read(&root().join("packaging/debian/control.in"))?;
    let glibc = glibc::needed(&tree.join("usr/bin/terrane"))?.unwrap_or_default();
    // Blocks of 1,024 bytes without the directory of control files.
    let used =
        output(Command::new("du").args(["-k", "-s", "--apparent-size"]).arg(tree.join("usr")))?;
    let kib = used.split_whitespace().next().unwrap_or("0").to_owned();
    Ok(template
        .replace("@VERSION@", &debian_version(&place.version))
        .replace("@ARCHITECTURE@", architecture(&place.target)?)
        .replace("@GLIBC@", &format!("2.{glibc}"))
        .replace("@KIB@", &kib))
}

/// Compresses files in place, without their times.
fn gzip(files: &[PathBuf]) -> Result<(), String> {
    output(Command::new("gzip").args(["--best", "--no-name"]).args(files)).map(drop)
}

/// Installs the package below a fresh directory, uses the command there, and removes and purges the
/// package. Without the rights of root the package is unpacked only.
pub(super) fn try_out(place: &Place) -> Made {
    let path = path(place)?;
    let fields = output(Command::new("dpkg-deb").arg("--field").arg(&path))?;
    expect(&fields, "Package: terrane\n")?;
    let system = place.fresh("deb-used")?;
    if output(Command::new("id").arg("-u"))?.trim() != "0" {
        output(Command::new("dpkg-deb").arg("--extract").arg(&path).arg(&system))?;
        let session = use_installed(place, &system)?;
        return Ok(format!("unpacked, as only root can install it: {session}"));
    }
    for dir in ["etc", "var/lib/dpkg/info", "var/lib/dpkg/updates"] {
        make_dir(&system.join(dir))?;
    }
    for file in ["etc/group", "etc/gshadow", "etc/passwd", "var/lib/dpkg/status"] {
        write(&system.join(file), "")?;
    }
    dpkg(&system, &["--install", &path.display().to_string()])?;
    expect(&read(&system.join("etc/group"))?, "terrane:")?;
    let session = use_installed(place, &system)?;
    let settings = system.join(&CONFFILE[1..]);
    write(&settings, "# edited\n")?;
    dpkg(&system, &["--remove", "terrane"])?;
    let left = [system.join("usr/bin/terrane").exists(), settings.exists()];
    dpkg(&system, &["--purge", "terrane"])?;
    if left != [false, true] || settings.exists() {
        return Err("dpkg did not remove the command and keep the settings until the purge"
            .to_owned()
            .into());
    }
    Ok(format!(
        "installed below a directory: {session}; group, settings, removal and purge are right"
    ))
}

/// Runs dpkg on another root without `chroot`, for which an empty system lacks a shell. That system lacks
/// the dependencies as well.
fn dpkg(system: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut dpkg = Command::new("dpkg");
    dpkg.args(["--force-depends", "--force-script-chrootless", "--log=/dev/null"]);
    dpkg.arg(format!("--root={}", system.display()));
    output(dpkg.args(arguments))
}

/// Uses the command and looks at the files that the package installed.
fn use_installed(place: &Place, system: &Path) -> Result<String, String> {
    for file in ["lib/systemd/system/terrane@.service", "share/man/man1/terrane-serve.1.gz"] {
        let file = system.join("usr").join(file);
        if !file.is_file() {
            return Err(format!("no {}", file.display()));
        }
    }
    session::run(&system.join("usr/bin/terrane"), &place.version, system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pre_release_sorts_before_its_release() {
        assert_eq!(debian_version("1.0.0-rc.1"), "1.0.0~rc.1");
        assert_eq!(debian_version("1.0.0"), "1.0.0");
    }

    #[test]
    fn other_platforms_are_skipped() {
        assert_eq!(architecture("aarch64-unknown-linux-gnu"), Ok("arm64"));
        assert!(matches!(architecture("aarch64-apple-darwin"), Err(Stop::Skipped(_))));
    }
}

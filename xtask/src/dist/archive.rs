//! Reproducible archives: sorted entries of user 0, all with the time of the commit.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::place::Place;
use crate::report::Stop;
use crate::tool::{output, require};

/// GNU tar. The tar of macOS cannot sort entries.
const TAR: &str = if cfg!(target_os = "macos") { "gtar" } else { "tar" };

/// Packs the directory `dir` as `files/NAME.tar.gz`, in which `NAME` is the name of `dir`.
pub(super) fn pack(place: &Place, dir: &Path) -> Result<PathBuf, Stop> {
    require(TAR, "install GNU tar")?;
    require("gzip", "install gzip")?;
    let (parent, name) = (dir.parent().unwrap_or(dir), name_of(dir));
    let tar = parent.join(format!("{name}.tar"));
    let mut command = Command::new(TAR);
    command.args(["--create", "--format=ustar", "--sort=name", "--owner=0", "--group=0"]);
    // The modes do not depend on the umask either.
    command.args(["--numeric-owner", "--mode=u=rwX,go=rX", &format!("--mtime=@{}", place.epoch)]);
    output(command.arg("--file").arg(&tar).arg("--directory").arg(parent).arg(&name))?;
    // Without the name and the time of the file in the header.
    output(Command::new("gzip").args(["--best", "--no-name", "--force"]).arg(&tar))?;
    let packed = place.files().join(format!("{name}.tar.gz"));
    std::fs::rename(parent.join(format!("{name}.tar.gz")), &packed)
        .map_err(|error| format!("{}: {error}", packed.display()))?;
    Ok(packed)
}

/// Unpacks an archive into `dir` and returns its top directory.
pub(super) fn unpack(archive: &Path, dir: &Path) -> Result<PathBuf, String> {
    if !archive.is_file() {
        return Err(format!("no {}; make it first", archive.display()));
    }
    output(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(dir))?;
    let name = name_of(archive);
    Ok(dir.join(name.strip_suffix(".tar.gz").unwrap_or(&name)))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn archives_of_equal_files_are_equal() {
        let root = std::env::temp_dir().join(format!("terrane-archive-{}", std::process::id()));
        let place = Place::in_directory(&root);
        let pack_again = |order: [&str; 3], mode, seconds| {
            let dir = place.fresh("tools-1.0").unwrap();
            for name in order {
                fs::write(dir.join(name), name).unwrap();
                let file = File::options().write(true).open(dir.join(name)).unwrap();
                file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
            }
            fs::set_permissions(dir.join("run"), fs::Permissions::from_mode(mode)).unwrap();
            fs::read(pack(&place, &dir).unwrap()).unwrap()
        };
        let first = pack_again(["a", "run", "z"], 0o755, 1_000_000_000);
        let second = pack_again(["z", "run", "a"], 0o700, 1_100_000_000);
        assert!(first == second, "order, umask or time of the files changes the archive");

        let dir = place.fresh("unpacked").unwrap();
        let top = unpack(&place.files().join("tools-1.0.tar.gz"), &dir).unwrap();
        let metadata = fs::metadata(top.join("run")).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o755);
        assert_eq!(metadata.modified().unwrap(), UNIX_EPOCH + Duration::from_secs(7));
        fs::remove_dir_all(root).unwrap();
    }
}

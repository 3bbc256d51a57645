//! Opens pages in the browser of the desktop. Without a desktop, the printed address must do.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// How long a browser may take to start and read a file.
const START_MAX: Duration = Duration::from_secs(60);

/// Opens an address.
pub(crate) fn open_in_browser(address: &str) {
    let Some((program, arguments)) = opener() else { return };
    let mut command = Command::new(program);
    command.args(arguments).arg(address);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C ends the server, and not the browser.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    // A browser may run for as long as its user likes.
    drop(command.spawn());
}

/// Opens an address with a secret. Other users of the machine can read the arguments of a program, so the browser
/// gets the path of a file that leads to the address and that they cannot read. The file is removed after a minute.
pub(crate) fn open_secret_in_browser(address: &str) {
    if opener().is_none() {
        return;
    }
    let dir = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let path = dir.join(format!("terrane-{}.html", std::process::id()));
    if write_redirect(&path, address).is_err() {
        return;
    }
    open_in_browser(&path.display().to_string());
    let remove = move || {
        thread::sleep(START_MAX);
        // If the command ends before, the file remains in a directory for temporary files, and its secret is void.
        let _ = fs::remove_file(path);
    };
    drop(thread::Builder::new().name("terrane-browser".to_owned()).spawn(remove));
}

/// Writes a page that leads to an address, for this user alone.
fn write_redirect(path: &Path, address: &str) -> io::Result<()> {
    // Left by an earlier process with this number. That of another user cannot be removed, and is not overwritten.
    let _ = fs::remove_file(path);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let address = address.replace('&', "&amp;");
    write!(
        options.open(path)?,
        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Terrane</title>\n\
         <meta http-equiv=\"refresh\" content=\"0;url={address}\">\n<a href=\"{address}\">Terrane</a>\n"
    )
}

/// Returns the program that opens addresses and files; `None` without a desktop.
fn opener() -> Option<(&'static str, &'static [&'static str])> {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    if cfg!(target_os = "macos") {
        Some(("open", &[]))
    } else if cfg!(windows) {
        Some(("rundll32", &["url.dll,FileProtocolHandler"]))
    } else if is_set("DISPLAY") || is_set("WAYLAND_DISPLAY") {
        Some(("xdg-open", &[]))
    } else {
        None
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_redirect_is_for_its_user_alone_and_leads_to_the_address() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("page.html"), dir.path().join("other"));
        fs::write(&other, "other").unwrap();
        // Neither an old file nor a link at its place is written to.
        std::os::unix::fs::symlink(&other, &path).unwrap();
        write_redirect(&path, "http://127.0.0.1:1/#live&token=ab").unwrap();
        assert_eq!(fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&other).unwrap(), "other");
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches("http://127.0.0.1:1/#live&amp;token=ab\"").count(), 2, "{text}");
    }
}

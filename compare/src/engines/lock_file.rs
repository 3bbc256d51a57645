//! Reads the versions of dependencies from the lock file of the build.

const LOCK_FILE: &str = include_str!("../../Cargo.lock");

/// Returns the version of the crate `name`, or `unknown` if the lock file does not list the crate.
pub(crate) fn version_of(name: &str) -> &'static str {
    version_in(LOCK_FILE, name).unwrap_or("unknown")
}

fn version_in<'a>(lock_file: &'a str, name: &str) -> Option<&'a str> {
    let heading = format!("name = \"{name}\"");
    let mut lines = lock_file.lines().skip_while(|line| *line != heading);
    lines.next()?;
    lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_follow_their_names() {
        let file =
            "[[package]]\nname = \"redb\"\nversion = \"4.4.0\"\n\n[[package]]\nname = \"x\"\n";
        assert_eq!(version_in(file, "redb"), Some("4.4.0"));
        assert_eq!(version_in(file, "red"), None);
        assert_eq!(version_in(file, "x"), None);
        assert_ne!(version_of("terrane-workload"), "unknown");
    }
}

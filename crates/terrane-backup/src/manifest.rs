//! The manifest of a backup: the files of the database, and the objects with their contents.
//!
//! A manifest is two lines of JSON: the manifest, and `{"sha256":"…"}` with the hash of the first line.

use serde::{Deserialize, Serialize};

use crate::content::ContentId;
use crate::error::{Error, Result};
use crate::moment::compact;

/// The folder of the manifests in a repository.
pub(crate) const BACKUPS: &str = "backups/";

/// The version of the format. A newer version may add fields to it, which this one ignores.
pub(crate) const SCHEMA: u32 = 1;

/// A larger object is not a manifest, and is not read.
pub(crate) const MANIFEST_BYTES_MAX: u64 = 1 << 30;

/// A backup: the facts about it, and its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Backup {
    /// The version of the manifest's format.
    pub schema: u32,
    /// The name: the time of the backup, its ordinal, and the number of the database.
    pub name: String,
    /// The number of the database, in 16 hexadecimal digits. Restored copies keep it, in other
    /// directories.
    pub database: String,
    /// The directory of the database.
    pub path: String,
    /// The time at which the copy of the database was complete, by RFC 3339 in UTC.
    pub time: String,
    /// The same time in microseconds since 1970.
    pub time_micros: u64,
    /// The sequence number of the last write in the backup.
    pub sequence: u64,
    /// The position among the backups of the database in the order of their creation, beginning with 1;
    /// 0 in a manifest of a version that did not record it.
    #[serde(default)]
    pub ordinal: u64,
    /// The history to which the backup belongs, in 16 hexadecimal digits: that of the database's number, or
    /// one that branched off it.
    #[serde(default)]
    pub history: String,
    /// Where the history left another one; `None` for the first history of a database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The version of the engine that wrote the backup.
    pub engine: String,
    /// The keyspaces.
    pub keyspaces: Vec<BackedUpKeyspace>,
    /// The bytes of all files.
    pub bytes: u64,
    /// The files.
    pub files: Vec<BackedUpFile>,
}

/// The point at which a history left another one, because the database was restored to it and then
/// written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Origin {
    /// The other history.
    pub history: String,
    /// The sequence number of the last write that both histories have; 0 if it is unknown.
    pub sequence: u64,
    /// The backup that both histories have; `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<String>,
}

/// A keyspace of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BackedUpKeyspace {
    /// The name.
    pub name: String,
    /// The design as text.
    pub design: String,
}

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BackedUpFile {
    /// The name in the directory of the database.
    pub name: String,
    /// The size in bytes.
    pub bytes: u64,
    /// SHA-256 of the contents, in 64 hexadecimal digits.
    pub sha256: String,
    /// XXH3-64 of the contents from the engine's manifest, in 16 hexadecimal digits; only tables have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xxh3: Option<String>,
    /// True if a file of this name never has other contents, so that a later backup need not read it.
    #[serde(default, rename = "final")]
    pub is_final: bool,
}

impl BackedUpFile {
    /// Returns the identity of the contents.
    ///
    /// # Panics
    /// Never for a file of a manifest that was read, because reading checks it.
    pub(crate) fn content(&self) -> Option<ContentId> {
        ContentId::from_hex(&self.sha256, self.bytes)
    }

    /// Returns the name of the object with the contents.
    pub fn object(&self) -> String {
        self.content().map(|id| id.object()).unwrap_or_default()
    }
}

#[derive(Serialize, Deserialize)]
struct Seal {
    sha256: String,
}

/// The part of every schema that identifies it.
#[derive(Deserialize)]
struct SchemaOnly {
    schema: u32,
}

impl Backup {
    /// Returns the name of the manifest in a repository.
    pub fn object(&self) -> String {
        object_of(&self.name)
    }

    /// Returns the sum of the sizes of the files; `None` if it overflows, which no real backup does.
    pub(crate) fn files_bytes(&self) -> Option<u64> {
        self.files.iter().try_fold(0_u64, |sum, file| sum.checked_add(file.bytes))
    }

    /// Returns the manifest as bytes.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let failed = |error: serde_json::Error| Error::io("encode", self.object(), error.into());
        let mut bytes = serde_json::to_vec(self).map_err(failed)?;
        let seal = Seal { sha256: ContentId::of(&bytes).sha256() };
        bytes.push(b'\n');
        bytes.extend(serde_json::to_vec(&seal).map_err(failed)?);
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// The bytes are damaged, or a newer version wrote them.
    pub(crate) fn decode(bytes: &[u8], object: &str, location: &str) -> Result<Self> {
        let damaged = |what: String| Error::damaged(location, what);
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let (line, seal) = bytes.split_at(end.ok_or_else(|| damaged("it is cut short".into()))?);
        let seal: Seal = serde_json::from_slice(seal)
            .map_err(|error| damaged(format!("its checksum cannot be read: {error}")))?;
        if ContentId::of(line).sha256() != seal.sha256 {
            return Err(damaged("its checksum does not match".into()));
        }
        let parse = |error: serde_json::Error| damaged(format!("it is not a manifest: {error}"));
        let SchemaOnly { schema } = serde_json::from_slice(line).map_err(parse)?;
        if schema > SCHEMA {
            let location = location.to_owned();
            return Err(Error::Unsupported { location, found: schema, supported: SCHEMA });
        }
        let mut backup: Self = serde_json::from_slice(line).map_err(parse)?;
        if backup.history.is_empty() {
            backup.history.clone_from(&backup.database);
        }
        if backup.object() != object {
            return Err(damaged(format!("it is the manifest of {}", backup.name)));
        }
        for file in &backup.files {
            if !is_plain(&file.name) || is_reserved(&file.name) || file.content().is_none() {
                return Err(damaged(format!("'{}' cannot be one of its files", file.name)));
            }
        }
        if backup.files_bytes().is_none() {
            return Err(damaged("the sizes of its files are impossible".into()));
        }
        Ok(backup)
    }
}

/// Returns the name of a backup. It begins with the time, and each backup of a database has another name,
/// because each has another ordinal.
pub(crate) fn name_of(time_micros: u64, ordinal: u64, database: &str) -> String {
    format!("{}-{ordinal}-{database}", compact(time_micros))
}

/// Returns the position of a manifest among those of its database in the order of creation, by its name
/// alone: the ordinal, and the time for those of the same ordinal.
pub(crate) fn position(object: &str) -> (u64, &str) {
    let mut parts = object.rsplit('-').skip(1);
    let ordinal = parts.next().filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    (ordinal.and_then(|ordinal| ordinal.parse().ok()).unwrap_or(0), object)
}

/// Returns the name of the manifest of a backup.
pub(crate) fn object_of(name: &str) -> String {
    format!("{BACKUPS}{name}.json")
}

/// Returns true for names that stay in their directory on any system.
fn is_plain(name: &str) -> bool {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_usual)
}

/// The files of an open database or of an unfinished restore, which no backup has.
pub(crate) const NOT_COPIED: &[&str] = &[
    "LOCK",
    "READERS",
    "RESERVE",
    "RESERVE.manifest",
    "RESERVE.new",
    "CHECKPOINT",
    "RESTORE",
    HISTORY,
];

/// The file in a restored database that states its [`Origin`].
pub(crate) const HISTORY: &str = "HISTORY";

/// The file that makes a directory a database.
pub(crate) const CURRENT: &str = "CURRENT";

/// The ending of files that are being copied by a restore.
pub(crate) const PART: &str = ".part";

/// Returns true for names that have another meaning in the directory of a database, in any case of letters,
/// because some file systems ignore it.
fn is_reserved(name: &str) -> bool {
    NOT_COPIED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved))
        || name.to_ascii_lowercase().ends_with(PART)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backup() -> Backup {
        let name = "20261121T100842.123456Z-00000000000000ff".to_owned();
        Backup {
            schema: SCHEMA,
            database: "00000000000000ff".into(),
            path: "/data/db".into(),
            time: "2026-11-21T10:08:42.123456Z".into(),
            time_micros: 1_795_255_722_123_456,
            sequence: 7,
            ordinal: 3,
            history: "00000000000000ff".into(),
            origin: None,
            engine: "0.1.0".into(),
            keyspaces: vec![BackedUpKeyspace { name: "default".into(), design: "x".into() }],
            bytes: 3,
            files: vec![BackedUpFile {
                name: "CURRENT".into(),
                bytes: 3,
                sha256: ContentId::of(b"abc").sha256(),
                xxh3: None,
                is_final: false,
            }],
            name,
        }
    }

    #[test]
    fn a_manifest_is_read_back() {
        let backup = backup();
        let bytes = backup.encode().unwrap();
        assert_eq!(Backup::decode(&bytes, &backup.object(), "x").unwrap(), backup);
    }

    /// A manifest of the first version of the format, which recorded neither ordinals nor histories.
    #[test]
    fn a_manifest_without_a_history_is_read() {
        let line = concat!(
            r#"{"schema":1,"name":"20261121T100842.123456Z-00000000000000ff","database":"00000000000000ff","#,
            r#""path":"/data/db","time":"2026-11-21T10:08:42.123456Z","time_micros":1795255722123456,"#,
            r#""sequence":7,"engine":"0.1.0","keyspaces":[],"bytes":0,"files":[]}"#
        );
        let seal = ContentId::of(line.as_bytes()).sha256();
        let text = format!("{line}\n{{\"sha256\":\"{seal}\"}}\n");
        let object = object_of("20261121T100842.123456Z-00000000000000ff");
        let read = Backup::decode(text.as_bytes(), &object, "x").unwrap();
        assert_eq!((read.ordinal, read.origin), (0, None));
        assert_eq!((read.history, read.sequence), (read.database, 7));
    }

    #[test]
    fn each_damaged_byte_and_each_cut_is_found() {
        let backup = backup();
        let bytes = backup.encode().unwrap();
        for at in 0..bytes.len() - 1 {
            let cut = Backup::decode(&bytes[..at], &backup.object(), "x");
            assert!(cut.unwrap_err().is_damage(), "cut at {at}");
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let found = Backup::decode(&damaged, &backup.object(), "x");
            assert!(found.unwrap_err().is_damage(), "byte {at}");
        }
    }

    #[test]
    fn newer_formats_other_names_and_paths_are_refused() {
        let decode = |backup: &Backup, object: &str| {
            Backup::decode(&backup.encode().unwrap(), object, "x").unwrap_err()
        };
        let newer = Backup { schema: SCHEMA + 1, ..backup() };
        let found = decode(&newer, &newer.object());
        assert!(matches!(found, Error::Unsupported { .. }), "{found}");
        assert!(decode(&backup(), "backups/other.json").is_damage());
        for name in
            ["../x", "/etc/x", "a/b", "a\\b", "", ".", "..", "c:x", "LOCK", "lock", "1.part"]
        {
            let mut backup = backup();
            backup.files[0].name = name.into();
            assert!(decode(&backup, &backup.object()).is_damage(), "{name}");
        }
        // The sum of the sizes overflowed.
        let mut huge = backup();
        huge.files[0].bytes = u64::MAX;
        huge.files.push(huge.files[0].clone());
        assert!(decode(&huge, &huge.object()).is_damage());
    }
}

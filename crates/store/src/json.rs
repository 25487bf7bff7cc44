//! The JSON of paths, names and metadata, as they are sent between the tiers.
//!
//! It defines no request. Invariant: any name is written and read unchanged; names are bytes, which need not
//! be UTF-8.

use std::time::Duration;

use plimsoll_io::{FileKind, Stat};
use plimsoll_wire::http::target::{decode_path, encoded_path};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::path::Path;
use crate::write::UploadId;

/// The metadata of a file or folder.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct StatJson(#[serde(with = "StatFields")] pub Stat);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Stat")]
pub(crate) struct StatFields {
    #[serde(with = "KindJson")]
    kind: FileKind,
    size: u64,
    device: u64,
    inode: u64,
    modified: Duration,
    changed: Duration,
    links: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "FileKind", rename_all = "snake_case")]
pub(crate) enum KindJson {
    File,
    Folder,
    Other,
}

/// A path as its bytes. If links may not lead out of a folder below the home, that folder is added.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PathJson {
    InHome(Encoded),
    Beneath { beneath: Encoded, path: Encoded },
}

/// A name or path as percent-encoded text.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Encoded(#[serde(with = "percent_encoded")] pub(crate) Vec<u8>);

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let path = Encoded(self.as_bytes().to_vec());
        let json = match self.top() {
            b"" => PathJson::InHome(path),
            top => PathJson::Beneath { beneath: Encoded(top.to_vec()), path },
        };
        json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Path {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Path, D::Error> {
        let parse = |bytes: &Encoded| Path::parse(&bytes.0).map_err(D::Error::custom);
        match PathJson::deserialize(deserializer)? {
            PathJson::InHome(path) => parse(&path),
            PathJson::Beneath { beneath, path } => {
                let (beneath, path) = (parse(&beneath)?, parse(&path)?);
                // Without its boundary, the path could resolve to more than the request allows.
                let is_bounded = !beneath.is_root() && path.is_within(&beneath);
                is_bounded.then(|| path.beneath(&beneath)).ok_or_else(|| D::Error::custom("no path beneath"))
            }
        }
    }
}

impl Serialize for UploadId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UploadId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<UploadId, D::Error> {
        let text = String::deserialize(deserializer)?;
        UploadId::parse(text.as_bytes()).ok_or_else(|| D::Error::custom("no upload's name"))
    }
}

/// Serialises bytes of a name or path as percent-encoded text.
pub(crate) mod percent_encoded {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        encoded_path(bytes).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        // The path of a request target begins with a slash.
        let (text, mut bytes) = (format!("/{}", String::deserialize(deserializer)?), Vec::new());
        let bad = || D::Error::custom("no name or path");
        decode_path(text.as_bytes(), &mut bytes).map_err(|_| bad())?;
        bytes.strip_prefix(b"/").map(<[u8]>::to_vec).ok_or_else(bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_bytes_travel() {
        for name in [&b"plain"[..], b"a b/c%2f\\", b"\xff\xfe", "日本".as_bytes(), b""] {
            let path = Path::parse(name).unwrap();
            let read: Path = serde_json::from_str(&serde_json::to_string(&path).unwrap()).unwrap();
            assert_eq!(read, path);
        }
        let path = Path::parse(b"a b/c").unwrap().beneath(&Path::parse(b"a b").unwrap());
        let text = serde_json::to_string(&path).unwrap();
        assert_eq!(text, r#"{"beneath":"a%20b","path":"a%20b/c"}"#);
        assert_eq!(serde_json::from_str::<Path>(&text).unwrap(), path);
    }

    #[test]
    fn a_json_value_that_is_no_path_is_refused() {
        for text in ["\"..\"", "\"a//../b\"", "\"a%00b\"", "7", r#"{"beneath":"b","path":"a"}"#] {
            assert!(serde_json::from_str::<Path>(text).is_err(), "{text}");
        }
    }
}

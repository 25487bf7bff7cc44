//! The fields that a file server uses, with lookup by name.
//!
//! Not here: their meaning. Invariants: names are unique, and there are at most 64 fields, so that a set of
//! them fits a u64.

/// Number of known fields.
pub(super) const FIELD_COUNT: usize = 40;

/// One table for the variants and the names, grouped by length for `by_name`.
macro_rules! fields {
    ($($length:literal { $($field:ident $name:literal)* })*) => {
        /// A field with an entry in a head's table of positions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Field {
            $($(#[doc = concat!("`", $name, "`")] $field,)*)*
        }

        impl Field {
            /// All known fields.
            pub const ALL: [Self; FIELD_COUNT] = [$($(Self::$field,)*)*];

            /// Returns the name in its usual spelling.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $($(Self::$field => $name,)*)*
                }
            }

            /// Looks up a field by its name. "Field names are case-insensitive" (RFC 9110, section 5.1).
            ///
            /// Compares the length first: few names share one, so that most fields cost at most two
            /// comparisons. Among names of one length, those that every browser sends come first.
            #[must_use]
            pub fn by_name(name: &[u8]) -> Option<Self> {
                match name.len() {
                    $($length => {
                        $(if name.eq_ignore_ascii_case($name.as_bytes()) {
                            return Some(Self::$field);
                        })*
                        None
                    })*
                    _ => None,
                }
            }
        }
    };
}

fields! {
    2 { Te "TE" }
    4 { Host "Host" }
    5 { Range "Range" Depth "Depth" }
    6 { Accept "Accept" Cookie "Cookie" Expect "Expect" Origin "Origin" }
    7 { Referer "Referer" Upgrade "Upgrade" }
    8 { IfMatch "If-Match" IfRange "If-Range" }
    9 { Overwrite "Overwrite" }
    10 { Connection "Connection" UserAgent "User-Agent" OcMtime "X-OC-Mtime" }
    11 { ContentMd5 "Content-MD5" Destination "Destination" ReprDigest "Repr-Digest" }
    12 { ContentType "Content-Type" }
    13 { Authorization "Authorization" ContentRange "Content-Range" IfNoneMatch "If-None-Match"
        TusResumable "Tus-Resumable" UploadConcat "Upload-Concat" UploadLength "Upload-Length"
        UploadOffset "Upload-Offset" }
    14 { ContentLength "Content-Length" SecFetchSite "Sec-Fetch-Site" ContentDigest "Content-Digest" }
    15 { AcceptEncoding "Accept-Encoding" UploadChecksum "Upload-Checksum" UploadMetadata "Upload-Metadata" }
    16 { ContentEncoding "Content-Encoding" WantReprDigest "Want-Repr-Digest" }
    17 { IfModifiedSince "If-Modified-Since" TransferEncoding "Transfer-Encoding" }
    19 { IfUnmodifiedSince "If-Unmodified-Since" UploadDeferLength "Upload-Defer-Length" }
    22 { MethodOverride "X-HTTP-Method-Override" }
}

impl Field {
    /// Returns the index into a table of [`FIELD_COUNT`] entries.
    pub(super) fn index(self) -> usize {
        self as usize
    }

    /// Returns the field's bit in a set.
    pub(super) fn bit(self) -> u64 {
        1 << self.index()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_found_by_its_name_in_any_case() {
        for field in Field::ALL {
            assert_eq!(Field::by_name(field.name().as_bytes()), Some(field));
            assert_eq!(Field::by_name(field.name().to_uppercase().as_bytes()), Some(field));
        }
        const { assert!(FIELD_COUNT <= 64, "a set of fields is a u64") };
        assert_eq!(Field::by_name(b"X-Other"), None);
    }
}

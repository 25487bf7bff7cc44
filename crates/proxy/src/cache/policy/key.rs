//! The key of a stored response: the target URI (RFC 9111, section 2).
//!
//! Not here: the fields of Vary, which select among the responses of one key. Invariant: two targets have
//! the same key only if RFC 9110, section 4.2.3 says that they are equivalent: percent-encoding, case of
//! the path, dot segments and the order of a query are left as sent.

use std::fmt;

/// A digest of 128 bits of BLAKE3.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub(crate) [u8; Digest::BYTES]);

impl Digest {
    /// Its length in bytes.
    pub const BYTES: usize = 16;

    /// Computes the digest of `parts`, each with its length, so that no two lists of parts look alike.
    #[must_use]
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Digest {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let mut digest = [0; Digest::BYTES];
        hasher.finalize_xof().fill(&mut digest);
        Digest(digest)
    }

    /// Returns its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; Digest::BYTES] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// The servers that a resource belongs to. A URI names another resource at each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Servers {
    /// The proxy's origins, which are interchangeable.
    #[default]
    Origins,
    /// The forwarded host that the URI names.
    Forwarded,
}

/// The key of a resource: its servers, its target URI, and the digest of both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceKey {
    servers: Servers,
    uri: Box<[u8]>,
    digest: Digest,
}

impl ResourceKey {
    /// Creates the key of a request to the origins. `target` is the path and query.
    #[must_use]
    pub fn new(scheme: &str, authority: &[u8], target: &[u8]) -> ResourceKey {
        let mut uri = Vec::with_capacity(scheme.len() + 3 + authority.len() + target.len() + 1);
        uri.extend_from_slice(scheme.to_ascii_lowercase().as_bytes());
        uri.extend_from_slice(b"://");
        uri.extend(normalised_authority(scheme, authority));
        if !target.starts_with(b"/") {
            uri.push(b'/');
        }
        uri.extend_from_slice(target);
        ResourceKey::of_uri(uri.into_boxed_slice())
    }

    /// Creates the key of an absolute URI that is normalised already.
    pub(crate) fn of_uri(uri: Box<[u8]>) -> ResourceKey {
        let digest = Digest::of([&*uri]);
        ResourceKey { servers: Servers::Origins, uri, digest }
    }

    /// Returns the key of the same URI at other servers.
    #[must_use]
    pub fn at(self, servers: Servers) -> ResourceKey {
        let digest = match servers {
            Servers::Origins => Digest::of([&*self.uri]),
            Servers::Forwarded => Digest::of([&*self.uri, b"forwarded"]),
        };
        ResourceKey { servers, digest, ..self }
    }

    /// Returns the servers.
    #[must_use]
    pub fn servers(&self) -> Servers {
        self.servers
    }

    /// Creates the key of an absolute URI as a person writes it. Returns `None` if it has no authority.
    #[must_use]
    pub fn parse(uri: &[u8]) -> Option<ResourceKey> {
        let uri = uri.split(|&byte| byte == b'#').next().unwrap_or_default();
        let scheme_end = uri.windows(3).position(|window| window == b"://")?;
        let scheme = std::str::from_utf8(uri.get(..scheme_end)?).ok()?;
        let rest = uri.get(scheme_end + 3..)?;
        let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        (!authority.is_empty()).then(|| ResourceKey::new(scheme, authority, target))
    }

    /// Returns the URI that a reference in a response to this request means (RFC 3986, section 5.2), at the
    /// same servers.
    #[must_use]
    pub fn resolve(&self, reference: &[u8]) -> Option<ResourceKey> {
        self.resolve_uri(reference).map(|key| key.at(self.servers))
    }

    fn resolve_uri(&self, reference: &[u8]) -> Option<ResourceKey> {
        let reference = reference.split(|&byte| byte == b'#').next().unwrap_or_default();
        if has_scheme(reference) {
            return ResourceKey::parse(reference);
        }
        if reference.starts_with(b"//") {
            let scheme = self.uri.split(|&byte| byte == b':').next().unwrap_or_default();
            return ResourceKey::parse(&[scheme, b":", reference].concat());
        }
        let origin = self.origin();
        let target = self.uri.get(origin.len()..).unwrap_or_default();
        let (base, query) = split_query(target);
        let resolved = match split_query(reference) {
            (b"", None) => [base, query.unwrap_or_default()].concat(),
            (b"", Some(query)) => [base, query].concat(),
            (path, query) => {
                let parent = base.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
                let parent = if path.starts_with(b"/") { 0 } else { parent };
                let merged = [base.get(..parent).unwrap_or_default(), path].concat();
                [&without_dot_segments(&merged)[..], query.unwrap_or_default()].concat()
            }
        };
        Some(ResourceKey::of_uri([origin, &resolved].concat().into_boxed_slice()))
    }

    /// Returns scheme and authority.
    #[must_use]
    pub fn origin(&self) -> &[u8] {
        let authority = self.uri.windows(3).position(|window| window == b"://").map_or(0, |at| at + 3);
        let rest = self.uri.get(authority..).unwrap_or_default();
        let path = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
        self.uri.get(..authority + path).unwrap_or_default()
    }

    /// Returns the normalised URI.
    #[must_use]
    pub fn uri(&self) -> &[u8] {
        &self.uri
    }

    /// Returns the digest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

/// Returns an authority of this scheme in the form that a key has. An origin must get the same: its response
/// to another form would be stored for this one.
pub(crate) fn normalised_authority(scheme: &str, authority: &[u8]) -> Vec<u8> {
    without_default_port(scheme, authority).to_ascii_lowercase()
}

fn without_default_port<'a>(scheme: &str, authority: &'a [u8]) -> &'a [u8] {
    let default: &[u8] = if scheme.eq_ignore_ascii_case("https") { b":443" } else { b":80" };
    let bare = authority.strip_suffix(default).or_else(|| authority.strip_suffix(b":"));
    // The last part of an IPv6 address without brackets is no port; such an authority is malformed anyway.
    bare.unwrap_or(authority)
}

/// Whether a reference begins with a scheme (RFC 3986, section 3.1).
fn has_scheme(reference: &[u8]) -> bool {
    let end = reference.iter().position(|byte| !byte.is_ascii_alphanumeric() && !b"+-.".contains(byte));
    let starts_with_letter = reference.first().is_some_and(u8::is_ascii_alphabetic);
    starts_with_letter && end.is_some_and(|end| reference.get(end) == Some(&b':'))
}

/// Splits a target into its path and its query, which keeps its question mark.
fn split_query(target: &[u8]) -> (&[u8], Option<&[u8]>) {
    match target.iter().position(|&byte| byte == b'?') {
        Some(mark) => (target.get(..mark).unwrap_or_default(), target.get(mark..)),
        None => (target, None),
    }
}

/// Removes `.` and `..` from an absolute path (RFC 3986, section 5.2.4).
fn without_dot_segments(path: &[u8]) -> Vec<u8> {
    let mut segments: Vec<&[u8]> = Vec::new();
    let mut ends_with_dots = false;
    for segment in path.split(|&byte| byte == b'/').skip(1) {
        ends_with_dots = matches!(segment, b"." | b"..");
        match segment {
            b"." => {}
            b".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    if ends_with_dots {
        segments.push(b"");
    }
    segments.iter().flat_map(|segment| [&b"/"[..], segment]).collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(scheme: &str, authority: &str, target: &str) -> String {
        String::from_utf8(ResourceKey::new(scheme, authority.as_bytes(), target.as_bytes()).uri.to_vec())
            .unwrap()
    }

    #[test]
    fn host_and_default_port_are_normalised_and_nothing_else() {
        assert_eq!(uri("http", "A.Example:80", "/B?c=%7e"), "http://a.example/B?c=%7e");
        assert_eq!(uri("http", "a:", ""), "http://a/");
        assert_eq!(uri("https", "a:443", "/"), "https://a/");
        assert_eq!(uri("http", "a:443", "/../x"), "http://a:443/../x");
        assert_ne!(uri("http", "a", "/%7e"), uri("http", "a", "/~"));
    }

    #[test]
    fn references_are_resolved_by_the_same_rules() {
        let key = ResourceKey::new("http", b"a:8080", b"/w/x?y");
        let resolved = |reference: &str| key.resolve(reference.as_bytes()).map(|key| key.uri.to_vec());
        assert_eq!(resolved("/z#f").unwrap(), b"http://a:8080/z");
        assert_eq!(resolved("HTTP://A:8080/z").unwrap(), b"http://a:8080/z");
        assert_eq!(resolved("http://b").unwrap(), b"http://b/");
        assert_eq!(resolved("//b/z").unwrap(), b"http://b/z");
        for (reference, uri) in [
            ("z", "/w/z"),
            ("./z", "/w/z"),
            ("z/", "/w/z/"),
            ("?q", "/w/x?q"),
            ("z?q=a/../b", "/w/z?q=a/../b"),
            ("", "/w/x?y"),
            ("#f", "/w/x?y"),
            (".", "/w/"),
            ("..", "/"),
            ("../z", "/z"),
            ("../../../z", "/z"),
            ("/./a/b/../z", "/a/z"),
            ("a/b:c", "/w/a/b:c"),
        ] {
            let expected = format!("http://a:8080{uri}").into_bytes();
            assert_eq!(resolved(reference).as_deref(), Some(&expected[..]), "{reference}");
        }
    }

    #[test]
    fn a_uri_has_another_key_at_other_servers_and_so_have_its_references() {
        let origins = ResourceKey::new("http", b"a", b"/x");
        let forwarded = origins.clone().at(Servers::Forwarded);
        assert_ne!(origins.digest(), forwarded.digest());
        assert_eq!(forwarded.clone().at(Servers::Origins), origins);
        let reference = forwarded.resolve(b"y").unwrap();
        assert_eq!((reference.servers(), reference.uri()), (Servers::Forwarded, &b"http://a/y"[..]));
    }

    #[test]
    fn digests_tell_lists_of_parts_apart() {
        assert_ne!(Digest::of([&b"ab"[..], b"c"]), Digest::of([&b"a"[..], b"bc"]));
        assert_eq!(Digest::of([&b"a"[..]]).to_string().len(), 32);
    }
}

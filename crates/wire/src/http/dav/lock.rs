//! The body of LOCK, and the elements that describe locks (RFC 4918, sections 9.10 and 15).
//!
//! Not here: the locks. Invariants: a body is parsed whole or refused; the user that it names is returned as
//! well-formed XML.

use super::property::DAV;
use super::request::{BadXml, begin, end, next_child};
use super::xml::{Part, XmlParser, push_text};
use crate::decimal::write_decimal;

/// The locks that files and folders can have.
pub const SUPPORTED: &[u8] = b"<D:supportedlock>\
    <D:lockentry><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockentry>\
    <D:lockentry><D:lockscope><D:shared/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockentry>\
    </D:supportedlock>";

const LOCK_INFO: BadXml =
    BadXml::Other("a lockinfo element with lockscope, which is exclusive or shared, and locktype write");

/// The lock that a client requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockInfo {
    /// Whether other clients may take a shared lock, too.
    pub is_shared: bool,
    /// The element `owner`: a text, or `D:href` with a text, where `D` is the namespace of WebDAV.
    pub about: String,
}

impl LockInfo {
    /// Parses the body of a LOCK that takes a lock.
    ///
    /// # Errors
    /// The body is none of a LOCK.
    pub fn parse(body: &[u8]) -> Result<LockInfo, BadXml> {
        let mut parser = XmlParser::new(body)?;
        begin(&mut parser, "lockinfo", LOCK_INFO)?;
        let (mut is_shared, mut is_write, mut owner_xml) = (None, false, String::new());
        while let Some(element) = next_child(&mut parser)? {
            match &*element.name {
                _ if element.namespace != DAV => drop(parser.text()?),
                "lockscope" => match only_child(&mut parser)?.as_deref() {
                    Some("exclusive") => is_shared = Some(false),
                    Some("shared") => is_shared = Some(true),
                    _ => return Err(LOCK_INFO),
                },
                "locktype" => is_write = only_child(&mut parser)?.as_deref() == Some("write"),
                "owner" => owner_xml = user(&mut parser)?,
                _ => drop(parser.text()?),
            }
        }
        end(&mut parser)?;
        let is_shared = is_shared.filter(|_| is_write).ok_or(LOCK_INFO)?;
        Ok(LockInfo { is_shared, about: owner_xml })
    }
}

/// Returns the name of the element in the present one, if it is of WebDAV's namespace and the only one.
fn only_child(parser: &mut XmlParser<'_>) -> Result<Option<String>, BadXml> {
    let (mut found, mut count) = (None, 0);
    while let Some(child) = next_child(parser)? {
        parser.text()?;
        count += 1;
        found = (child.namespace == DAV).then_some(child.name);
    }
    Ok(found.filter(|_| count == 1))
}

/// Reads the owner of a lock. Of its elements, `href` alone is kept: clients show it, or the text.
fn user(parser: &mut XmlParser<'_>) -> Result<String, BadXml> {
    let (mut text, mut is_link, mut depth) = (String::new(), false, 1);
    while depth > 0 {
        match parser.next()? {
            Part::Start(element) => {
                is_link |= element.is(DAV, "href");
                depth += 1;
            }
            Part::End => depth -= 1,
            Part::Text(part) => text.push_str(&part),
            Part::Eof => return Err(BadXml::Malformed),
        }
    }
    let mut out = Vec::new();
    push_text(text.trim(), &mut out);
    let escaped = String::from_utf8(out).map_err(|_| BadXml::NotUtf8)?;
    Ok(if is_link && !escaped.is_empty() { format!("<D:href>{escaped}</D:href>") } else { escaped })
}

/// A lock, as it is described to clients.
#[derive(Clone, Copy, Debug)]
pub struct DavLock<'a> {
    /// The path of its resource in URLs, percent-encoded.
    pub root: &'a [u8],
    /// Its token, a URI.
    pub token: &'a str,
    /// Whether it is shared.
    pub is_shared: bool,
    /// Whether it is of depth infinity.
    pub is_deep: bool,
    /// The element `owner` of the request, as [`LockInfo::about`]; empty for nothing.
    pub about: &'a str,
    /// How long it still holds, in seconds.
    pub seconds: u64,
}

/// Appends `lockdiscovery` with these locks.
pub fn push_discovery<'a>(locks: impl Iterator<Item = DavLock<'a>>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"<D:lockdiscovery>");
    locks.for_each(|lock| lock.push(out));
    out.extend_from_slice(b"</D:lockdiscovery>");
}

impl DavLock<'_> {
    fn push(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"<D:activelock><D:locktype><D:write/></D:locktype><D:lockscope>");
        out.extend_from_slice(if self.is_shared { b"<D:shared/>" } else { b"<D:exclusive/>" });
        out.extend_from_slice(b"</D:lockscope><D:depth>");
        out.extend_from_slice(if self.is_deep { b"infinity" } else { b"0" });
        out.extend_from_slice(b"</D:depth>");
        if !self.about.is_empty() {
            out.extend_from_slice(b"<D:owner>");
            out.extend_from_slice(self.about.as_bytes());
            out.extend_from_slice(b"</D:owner>");
        }
        out.extend_from_slice(b"<D:timeout>Second-");
        write_decimal(self.seconds, out);
        out.extend_from_slice(b"</D:timeout><D:locktoken><D:href>");
        push_text(self.token, out);
        out.extend_from_slice(b"</D:href></D:locktoken><D:lockroot><D:href>");
        out.extend_from_slice(self.root);
        out.extend_from_slice(b"</D:href></D:lockroot></D:activelock>");
    }
}

/// Returns the response to a LOCK: the property `lockdiscovery`.
#[must_use]
pub fn write_lock(lock: DavLock<'_>) -> Vec<u8> {
    let mut out = b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:prop xmlns:D=\"DAV:\">".to_vec();
    push_discovery([lock].into_iter(), &mut out);
    out.extend_from_slice(b"</D:prop>\n");
    out
}

/// Returns the body of a refusal because of locks on the resources at these paths (sections 9.10.6 and 16).
/// `conflicts` says that another lock was requested.
#[must_use]
pub fn write_locked(roots: &[&[u8]], conflicts: bool) -> Vec<u8> {
    let name: &[u8] = if conflicts { b"no-conflicting-lock" } else { b"lock-token-submitted" };
    let mut out = b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:error xmlns:D=\"DAV:\"><D:".to_vec();
    out.extend_from_slice(name);
    out.push(b'>');
    for root in roots {
        out.extend_from_slice(b"<D:href>");
        out.extend_from_slice(root);
        out.extend_from_slice(b"</D:href>");
    }
    out.extend_from_slice(b"</D:");
    out.extend_from_slice(name);
    out.extend_from_slice(b"></D:error>\n");
    out
}

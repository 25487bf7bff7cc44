//! Names of properties, and the properties that the server itself has for a file or folder.
//!
//! Not here: their values. Invariant: a name that was read from a request can be written into a response as
//! it is.

use super::xml::push_text;

/// The namespace of WebDAV's own properties.
pub const DAV: &str = "DAV:";
/// The namespace of Microsoft's properties.
pub const MICROSOFT: &str = "urn:schemas-microsoft-com:";
/// The namespace of ownCloud's properties, which Nextcloud and their clients have, too.
const OWNCLOUD: &str = "http://owncloud.org/ns";

/// The name of a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropertyName {
    /// The namespace; empty for none.
    pub namespace: String,
    /// The name in it.
    pub name: String,
}

impl PropertyName {
    /// Whether it is this name in this namespace.
    #[must_use]
    pub fn is(&self, namespace: &str, name: &str) -> bool {
        self.namespace == namespace && self.name == name
    }

    /// Appends an empty element with the name.
    pub(super) fn push_empty(&self, out: &mut Vec<u8>) {
        push_empty(&self.namespace, &self.name, out);
    }
}

fn push_empty(namespace: &str, name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(if namespace == DAV { &b"<D:"[..] } else { b"<" });
    out.extend_from_slice(name.as_bytes());
    if namespace != DAV {
        out.extend_from_slice(b" xmlns=\"");
        push_text(namespace, out);
        out.push(b'"');
    }
    out.extend_from_slice(b"/>");
}

/// A property that the server has for files or folders: a live property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveProperty {
    /// `resourcetype`: whether it is a folder.
    ResourceType,
    /// `displayname`: its name.
    DisplayName,
    /// `getcontentlength`: the length of a file.
    ContentLength,
    /// `getcontenttype`: the media type of a file.
    ContentType,
    /// `getetag`: the entity tag of a file.
    EntityTag,
    /// `getlastmodified`: the time of the last modification.
    LastModified,
    /// `supportedlock`: the kinds of locks, of which there are none.
    SupportedLock,
    /// The locks on it.
    LockDiscovery,
    /// `quota-available-bytes` of a folder (RFC 4331).
    QuotaAvailable,
    /// `quota-used-bytes` of a folder (RFC 4331).
    QuotaUsed,
    /// ownCloud's `checksums`: the digests of a file.
    Checksums,
}

impl LiveProperty {
    /// All of them.
    pub const ALL: [LiveProperty; 11] = [
        LiveProperty::ResourceType,
        LiveProperty::DisplayName,
        LiveProperty::ContentLength,
        LiveProperty::ContentType,
        LiveProperty::EntityTag,
        LiveProperty::LastModified,
        LiveProperty::SupportedLock,
        LiveProperty::LockDiscovery,
        LiveProperty::QuotaAvailable,
        LiveProperty::QuotaUsed,
        LiveProperty::Checksums,
    ];

    /// Returns the property of a name.
    #[must_use]
    pub fn of(name: &PropertyName) -> Option<LiveProperty> {
        LiveProperty::ALL.into_iter().find(|live| name.is(live.namespace(), live.name()))
    }

    /// Whether `allprop` requests it: those that RFC 4918 defines. "A server MAY define properties that are
    /// not returned by allprop": "clients SHOULD NOT expect" the quotas to be (RFC 4331, section 2).
    #[must_use]
    pub fn is_in_allprop(self) -> bool {
        !matches!(self, LiveProperty::QuotaAvailable | LiveProperty::QuotaUsed | LiveProperty::Checksums)
    }

    /// Appends an empty element with the name.
    pub(super) fn push_empty(self, out: &mut Vec<u8>) {
        push_empty(self.namespace(), self.name(), out);
    }

    fn namespace(self) -> &'static str {
        if self == LiveProperty::Checksums { OWNCLOUD } else { DAV }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            LiveProperty::ResourceType => "resourcetype",
            LiveProperty::DisplayName => "displayname",
            LiveProperty::ContentLength => "getcontentlength",
            LiveProperty::ContentType => "getcontenttype",
            LiveProperty::EntityTag => "getetag",
            LiveProperty::LastModified => "getlastmodified",
            LiveProperty::SupportedLock => "supportedlock",
            LiveProperty::LockDiscovery => "lockdiscovery",
            LiveProperty::QuotaAvailable => "quota-available-bytes",
            LiveProperty::QuotaUsed => "quota-used-bytes",
            LiveProperty::Checksums => "checksums",
        }
    }
}

/// Whether clients cannot set the property: the server's own, except the time of modification, and those of
/// RFC 4918 that this server has none of.
#[must_use]
pub fn is_protected(name: &PropertyName) -> bool {
    let is_live = LiveProperty::of(name).is_some_and(|live| live != LiveProperty::LastModified);
    is_live || name.is(DAV, "creationdate")
}

//! Multi-status responses (RFC 4918, section 13): the properties of files and folders, one after the other,
//! and the outcome of a PROPPATCH.
//!
//! Not here: the entries, and their order. Invariant: the result is well-formed XML for names of any
//! characters.

use std::time::{Duration, SystemTime};

use super::lock::{DavLock, SUPPORTED, push_discovery};
use super::property::{LiveProperty, PropertyName};
use super::request::Propfind;
use super::xml::push_text;
use crate::decimal::write_decimal;
use crate::hex;
use crate::http::date::{DATE_BYTES, write_date};
use crate::http::status::Status;

/// The start of a response.
pub const BEGIN: &[u8] = b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">\n";
/// The end of a response.
pub const END: &[u8] = b"</D:multistatus>\n";
/// The media type of a response.
pub const MEDIA_TYPE: &str = "application/xml; charset=utf-8";

/// Refuses a PROPFIND of a folder and all below it.
pub const FINITE_DEPTH: &[u8] = b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
    <D:error xmlns:D=\"DAV:\"><D:propfind-finite-depth/></D:error>\n";

/// A file or folder.
#[derive(Clone, Copy, Debug)]
pub struct DavResource<'a> {
    /// The path in URLs, percent-encoded; that of a folder ends with a slash.
    pub href: &'a [u8],
    /// The name for display.
    pub name: &'a str,
    /// The time of the last modification since 1970, if there is one.
    pub modified: Option<Duration>,
    /// The properties that a file has and a folder lacks.
    pub file: Option<DavFile<'a>>,
    /// The quota of a folder, if the client may know it.
    pub quota: Option<DavQuota>,
    /// The locks on it; `None` if the server has no locks.
    pub locks: Option<&'a [DavLock<'a>]>,
}

/// The properties of a file.
#[derive(Clone, Copy, Debug)]
pub struct DavFile<'a> {
    /// The length in bytes.
    pub length: u64,
    /// The media type.
    pub media: &'static str,
    /// The entity tag, as a GET has it.
    pub etag: &'a str,
    /// The SHA-256 of the contents, if it is known.
    pub sha256: Option<[u8; 32]>,
}

/// The quota of the account that a folder belongs to, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct DavQuota {
    /// Bytes that can still be stored; `None` if there is no limit.
    pub available: Option<u64>,
    /// Bytes that are stored.
    pub used: u64,
}

/// The properties that a PROPFIND requests, prepared for many resources.
#[derive(Clone, Debug)]
pub struct PropertySelection {
    live: Vec<LiveProperty>,
    /// Whether a live property that a resource lacks is reported: it was requested by name.
    reports_missing: bool,
    /// Whether the names are returned without values.
    names_only: bool,
    /// Elements of requested properties that no resource has.
    unknown: Vec<u8>,
}

impl PropertySelection {
    /// Returns the selection of a request.
    #[must_use]
    pub fn of(propfind: &Propfind) -> PropertySelection {
        let (mut live, mut unknown) = (Vec::new(), Vec::new());
        let names: &[PropertyName] = match propfind {
            Propfind::Prop(names) => names,
            Propfind::AllProp(include) => {
                live.extend(LiveProperty::ALL.into_iter().filter(|live| live.is_in_allprop()));
                include
            }
            Propfind::PropName => {
                live.extend(LiveProperty::ALL);
                &[]
            }
        };
        for name in names {
            match LiveProperty::of(name) {
                Some(known) if live.contains(&known) => {}
                Some(known) => live.push(known),
                None => name.push_empty(&mut unknown),
            }
        }
        let reports_missing = matches!(propfind, Propfind::Prop(_));
        let names_only = *propfind == Propfind::PropName;
        PropertySelection { live, reports_missing, names_only, unknown }
    }

    /// Whether the property is requested.
    #[must_use]
    pub fn has(&self, property: LiveProperty) -> bool {
        self.live.contains(&property)
    }

    /// Appends the response for a file or folder.
    pub fn write(&self, resource: &DavResource<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"<D:response><D:href>");
        out.extend_from_slice(resource.href);
        out.extend_from_slice(b"</D:href>");
        let start = out.len();
        out.extend_from_slice(b"<D:propstat><D:prop>");
        let (empty, mut missing) = (out.len(), self.unknown.clone());
        for live in &self.live {
            let before = out.len();
            if !resource.push(*live, out) {
                if self.reports_missing {
                    live.push_empty(&mut missing);
                }
            } else if self.names_only {
                out.truncate(before);
                live.push_empty(out);
            }
        }
        if out.len() > empty || missing.is_empty() {
            end_propstat(Status::OK, b"", out);
        } else {
            out.truncate(start);
        }
        if !missing.is_empty() {
            out.extend_from_slice(b"<D:propstat><D:prop>");
            out.extend_from_slice(&missing);
            end_propstat(Status::NOT_FOUND, b"", out);
        }
        out.extend_from_slice(b"</D:response>\n");
    }
}

/// Ends the properties of one status.
fn end_propstat(status: Status, error: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"</D:prop><D:status>HTTP/1.1 ");
    write_decimal(u64::from(status.code()), out);
    out.push(b' ');
    out.extend_from_slice(status.reason().as_bytes());
    out.extend_from_slice(b"</D:status>");
    out.extend_from_slice(error);
    out.extend_from_slice(b"</D:propstat>");
}

/// Appends an element of WebDAV's namespace.
fn push_element(name: &str, value: impl FnOnce(&mut Vec<u8>), out: &mut Vec<u8>) {
    out.extend_from_slice(b"<D:");
    out.extend_from_slice(name.as_bytes());
    out.push(b'>');
    value(out);
    out.extend_from_slice(b"</D:");
    out.extend_from_slice(name.as_bytes());
    out.push(b'>');
}

impl DavResource<'_> {
    /// Appends a property with its value. Returns false if the resource lacks it; nothing is appended then.
    fn push(&self, property: LiveProperty, out: &mut Vec<u8>) -> bool {
        let (file, quota) = (self.file, self.quota.filter(|_| self.file.is_none()));
        let number = |number: u64| move |out: &mut Vec<u8>| write_decimal(number, out);
        let name = property.name();
        match (property, file, quota) {
            (LiveProperty::ResourceType, Some(_), _) => out.extend_from_slice(b"<D:resourcetype/>"),
            (LiveProperty::ResourceType, None, _) => {
                out.extend_from_slice(b"<D:resourcetype><D:collection/></D:resourcetype>");
            }
            (LiveProperty::SupportedLock, ..) => {
                out.extend_from_slice(if self.locks.is_some() { SUPPORTED } else { b"<D:supportedlock/>" });
            }
            (LiveProperty::LockDiscovery, ..) => {
                let Some(locks) = self.locks else { return false };
                push_discovery(locks.iter().copied(), out);
            }
            (LiveProperty::DisplayName, ..) => push_element(name, |out| push_text(self.name, out), out),
            (LiveProperty::ContentLength, Some(file), _) => push_element(name, number(file.length), out),
            (LiveProperty::ContentType, Some(file), _) => {
                push_element(name, |out| push_text(file.media, out), out);
            }
            (LiveProperty::EntityTag, Some(file), _) => {
                push_element(name, |out| push_text(file.etag, out), out);
            }
            (LiveProperty::LastModified, ..) => {
                let Some(modified) = self.modified else { return false };
                let mut date = [b' '; DATE_BYTES];
                write_date(SystemTime::UNIX_EPOCH + modified, &mut date);
                push_element(name, |out| out.extend_from_slice(&date), out);
            }
            (LiveProperty::QuotaAvailable, _, Some(DavQuota { available: Some(bytes), .. })) => {
                push_element(name, number(bytes), out);
            }
            (LiveProperty::QuotaUsed, _, Some(quota)) => push_element(name, number(quota.used), out),
            (LiveProperty::Checksums, Some(DavFile { sha256: Some(sha256), .. }), _) => {
                out.extend_from_slice(b"<checksums xmlns=\"http://owncloud.org/ns\"><checksum>SHA256:");
                out.extend_from_slice(hex::encode(&sha256).as_bytes());
                out.extend_from_slice(b"</checksum></checksums>");
            }
            _ => return false,
        }
        true
    }
}

/// The outcome of the change of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// It was changed.
    Done,
    /// It could be changed, but another could not.
    Failed,
    /// The value is none of the property.
    Conflict,
    /// Clients cannot change it.
    Protected,
    /// The server keeps no such property.
    Refused,
}

impl ChangeOutcome {
    const ALL: [ChangeOutcome; 5] = [
        ChangeOutcome::Done,
        ChangeOutcome::Conflict,
        ChangeOutcome::Protected,
        ChangeOutcome::Refused,
        ChangeOutcome::Failed,
    ];

    fn status(self) -> Status {
        match self {
            ChangeOutcome::Done => Status::OK,
            ChangeOutcome::Failed => Status::FAILED_DEPENDENCY,
            ChangeOutcome::Conflict => Status::CONFLICT,
            ChangeOutcome::Protected | ChangeOutcome::Refused => Status::FORBIDDEN,
        }
    }
}

/// Returns the response to a PROPPATCH of the resource at `href`.
#[must_use]
pub fn write_changes(href: &[u8], changes: &[(PropertyName, ChangeOutcome)]) -> Vec<u8> {
    let mut out = BEGIN.to_vec();
    out.extend_from_slice(b"<D:response><D:href>");
    out.extend_from_slice(href);
    out.extend_from_slice(b"</D:href>");
    for outcome in ChangeOutcome::ALL {
        let mut of_outcome = changes.iter().filter(|(_, other)| *other == outcome).peekable();
        if of_outcome.peek().is_none() {
            continue;
        }
        out.extend_from_slice(b"<D:propstat><D:prop>");
        of_outcome.for_each(|(name, _)| name.push_empty(&mut out));
        let error: &[u8] = match outcome {
            ChangeOutcome::Protected => b"<D:error><D:cannot-modify-protected-property/></D:error>",
            _ => b"",
        };
        end_propstat(outcome.status(), error, &mut out);
    }
    out.extend_from_slice(b"</D:response>\n");
    out.extend_from_slice(END);
    out
}

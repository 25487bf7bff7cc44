//! The bodies of PROPFIND and PROPPATCH (RFC 4918, sections 9.1 and 9.2).
//!
//! Not here: the length of a body, which its reader bounds. Invariants: a body that is not the whole
//! well-formed document is refused; unknown elements are ignored, as section 17 demands; the number of
//! properties is bounded.

use core::fmt;

use super::property::{DAV, PropertyName};
use super::xml::{Part, XmlParser};
use crate::limits::{DAV_DEPTH_MAX, DAV_NAME_BYTES_MAX, DAV_PROPERTIES_MAX};

/// The reason why a body is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadXml {
    /// It is in another encoding.
    NotUtf8,
    /// It is not well-formed, or cut short.
    Malformed,
    /// It has a document type, or a reference to an entity.
    Entity,
    /// Its elements are too deep.
    TooDeep,
    /// It names too many properties.
    TooMany,
    /// A name or a namespace is too long.
    LongName,
    /// It is another document than the method takes.
    Other(&'static str),
}

impl fmt::Display for BadXml {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadXml::NotUtf8 => f.write_str("The body is not UTF-8. Send XML in UTF-8."),
            BadXml::Malformed => f.write_str("The body is not well-formed XML 1.0 with namespaces."),
            BadXml::Entity => f.write_str(
                "The body has a document type or an entity. Send it without: &lt; and &#60; remain.",
            ),
            BadXml::TooDeep => write!(f, "The body has more than {DAV_DEPTH_MAX} levels of elements."),
            BadXml::TooMany => {
                write!(f, "The body names more than {DAV_PROPERTIES_MAX} properties. Send several requests.")
            }
            BadXml::LongName => {
                write!(f, "A name or a namespace in the body has more than {DAV_NAME_BYTES_MAX} bytes.")
            }
            BadXml::Other(expected) => write!(f, "The body must be {expected}, in the namespace DAV:."),
        }
    }
}

impl std::error::Error for BadXml {}

/// The properties that a PROPFIND requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Propfind {
    /// Those of RFC 4918, and these.
    AllProp(Vec<PropertyName>),
    /// The names of all.
    PropName,
    /// These.
    Prop(Vec<PropertyName>),
}

const PROPFIND: BadXml = BadXml::Other("a propfind element with one of prop, allprop and propname");
const PROPERTY_UPDATE: BadXml =
    BadXml::Other("a propertyupdate element with set or remove, and prop in these");

impl Propfind {
    /// Parses a body. "A client may choose not to submit a request body. An empty PROPFIND request body MUST
    /// be treated as if it were an 'allprop' request."
    ///
    /// # Errors
    /// The body is none of a PROPFIND.
    pub fn parse(body: &[u8]) -> Result<Propfind, BadXml> {
        if body.is_empty() {
            return Ok(Propfind::AllProp(Vec::new()));
        }
        let mut parser = XmlParser::new(body)?;
        begin(&mut parser, "propfind", PROPFIND)?;
        let (mut found, mut include) = (None, Vec::new());
        while let Some(element) = next_child(&mut parser)? {
            let kind = match &*element.name {
                _ if element.namespace != DAV => None,
                "prop" => Some(Propfind::Prop(names(&mut parser)?)),
                "include" => {
                    include = names(&mut parser)?;
                    continue;
                }
                "allprop" => Some(Propfind::AllProp(Vec::new())),
                "propname" => Some(Propfind::PropName),
                _ => None,
            };
            if !matches!(kind, Some(Propfind::Prop(_))) {
                parser.text()?;
            }
            if kind.is_some() && found.is_some() {
                return Err(PROPFIND);
            }
            found = found.or(kind);
        }
        end(&mut parser)?;
        match found.ok_or(PROPFIND)? {
            Propfind::AllProp(_) => Ok(Propfind::AllProp(include)),
            found => Ok(found),
        }
    }
}

/// A change of one property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PropertyChange {
    /// The property.
    pub name: PropertyName,
    /// The text of the new value; `None` to remove the property.
    pub value: Option<String>,
}

impl PropertyChange {
    /// Parses the body of a PROPPATCH: changes in their order.
    ///
    /// # Errors
    /// The body is none of a PROPPATCH.
    pub fn parse(body: &[u8]) -> Result<Vec<PropertyChange>, BadXml> {
        let mut parser = XmlParser::new(body)?;
        begin(&mut parser, "propertyupdate", PROPERTY_UPDATE)?;
        let mut changes = Vec::new();
        while let Some(element) = next_child(&mut parser)? {
            let is_removal = element.is(DAV, "remove");
            if !is_removal && !element.is(DAV, "set") {
                parser.text()?;
                continue;
            }
            while let Some(element) = next_child(&mut parser)? {
                if !element.is(DAV, "prop") {
                    parser.text()?;
                    continue;
                }
                while let Some(name) = next_child(&mut parser)? {
                    let value = parser.text()?;
                    if changes.len() == DAV_PROPERTIES_MAX {
                        return Err(BadXml::TooMany);
                    }
                    changes.push(PropertyChange { name, value: (!is_removal).then_some(value) });
                }
            }
        }
        end(&mut parser)?;
        if changes.is_empty() { Err(PROPERTY_UPDATE) } else { Ok(changes) }
    }
}

/// Reads the start of the document's element.
pub(super) fn begin(parser: &mut XmlParser<'_>, name: &str, other: BadXml) -> Result<(), BadXml> {
    match parser.next()? {
        Part::Start(element) if element.is(DAV, name) => Ok(()),
        Part::Eof => Err(BadXml::Malformed),
        _ => Err(other),
    }
}

/// Reads the end of the document, behind the end of its element.
pub(super) fn end(parser: &mut XmlParser<'_>) -> Result<(), BadXml> {
    if parser.next()? == Part::Eof { Ok(()) } else { Err(BadXml::Malformed) }
}

/// Returns the next element of the present one, or `None` at its end. Text between them is ignored.
pub(super) fn next_child(parser: &mut XmlParser<'_>) -> Result<Option<PropertyName>, BadXml> {
    loop {
        match parser.next()? {
            Part::Start(element) => return Ok(Some(element)),
            Part::End => return Ok(None),
            Part::Text(_) => {}
            Part::Eof => return Err(BadXml::Malformed),
        }
    }
}

/// Returns the names of the elements of the present one, each once.
fn names(parser: &mut XmlParser<'_>) -> Result<Vec<PropertyName>, BadXml> {
    let mut names = Vec::new();
    while let Some(name) = next_child(parser)? {
        parser.text()?;
        if names.len() == DAV_PROPERTIES_MAX {
            return Err(BadXml::TooMany);
        }
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

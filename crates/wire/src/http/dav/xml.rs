//! The elements of a WebDAV request's XML, and text in a response's.
//!
//! It knows no element. Invariants: only UTF-8 is read; a document type is refused, so no entity is ever
//! expanded; a name that is returned can be written into a response as it is.

use quick_xml::NsReader;
use quick_xml::XmlVersion;
use quick_xml::escape::{resolve_predefined_entity, unescape};
use quick_xml::events::{BytesDecl, BytesStart, Event};
use quick_xml::name::{PrefixDeclaration, ResolveResult};

use super::property::PropertyName;
use super::request::BadXml;
use crate::limits::{DAV_DEPTH_MAX, DAV_NAME_BYTES_MAX};

/// A part of a document.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    Start(PropertyName),
    End,
    Text(String),
    Eof,
}

/// Reads a document, one part after the other.
pub(super) struct XmlParser<'a> {
    reader: NsReader<&'a [u8]>,
    depth: usize,
}

impl<'a> XmlParser<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<XmlParser<'a>, BadXml> {
        let text = str::from_utf8(bytes).map_err(|_| BadXml::NotUtf8)?;
        let mut reader = NsReader::from_str(text.trim_start_matches('\u{feff}'));
        // An empty element has a start and an end.
        reader.config_mut().expand_empty_elements = true;
        Ok(XmlParser { reader, depth: 0 })
    }

    /// Returns the next part. Comments and processing instructions are skipped, and so is the text around the
    /// document's element, which can only be blank.
    pub(super) fn next(&mut self) -> Result<Part, BadXml> {
        loop {
            match self.reader.read_event().map_err(|_| BadXml::Malformed)? {
                Event::Start(start) | Event::Empty(start) => {
                    self.depth += 1;
                    if self.depth > DAV_DEPTH_MAX {
                        return Err(BadXml::TooDeep);
                    }
                    return self.name_of(&start).map(Part::Start);
                }
                Event::End(_) => {
                    self.depth = self.depth.checked_sub(1).ok_or(BadXml::Malformed)?;
                    return Ok(Part::End);
                }
                Event::Text(text) if self.depth == 0 && text.trim().is_empty() => {}
                Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) if self.depth == 0 => {
                    return Err(BadXml::Malformed);
                }
                Event::Text(text) => return Ok(Part::Text(text.into_inner().into_owned())),
                Event::CData(text) => return Ok(Part::Text(text.into_inner().into_owned())),
                Event::GeneralRef(reference) => {
                    let character = reference.resolve_char_ref().map_err(|_| BadXml::Malformed)?;
                    let name: &str = &reference;
                    let text = match character {
                        Some(character) => character.to_string(),
                        None => resolve_predefined_entity(name).ok_or(BadXml::Entity)?.to_owned(),
                    };
                    return Ok(Part::Text(text));
                }
                Event::Decl(declaration) => check_encoding(&declaration)?,
                Event::Comment(_) | Event::PI(_) => {}
                Event::DocType(_) => return Err(BadXml::Entity),
                Event::Eof if self.depth == 0 => return Ok(Part::Eof),
                Event::Eof => return Err(BadXml::Malformed),
            }
        }
    }

    /// Returns the text of the element that has just started, with that of all elements in it, and skips it.
    pub(super) fn text(&mut self) -> Result<String, BadXml> {
        let (mut text, mut depth) = (String::new(), 1);
        while depth > 0 {
            match self.next()? {
                Part::Start(_) => depth += 1,
                Part::End => depth -= 1,
                Part::Text(part) => text.push_str(&part),
                Part::Eof => return Err(BadXml::Malformed),
            }
        }
        Ok(text)
    }

    fn name_of(&self, start: &BytesStart<'_>) -> Result<PropertyName, BadXml> {
        for attribute in start.attributes() {
            let attribute = attribute.map_err(|_| BadXml::Malformed)?;
            // "In a namespace declaration for a prefix, the attribute value MUST NOT be empty" (Namespaces in
            // XML 1.0, section 2.2).
            let binding = attribute.key.as_namespace_binding();
            if matches!(binding, Some(PrefixDeclaration::Named(_))) && attribute.value.is_empty() {
                return Err(BadXml::Malformed);
            }
        }
        let (namespace, name) = self.reader.resolver().resolve_element(start.name());
        let namespace = match namespace {
            ResolveResult::Bound(namespace) => {
                unescape(namespace.into_inner()).map_err(|_| BadXml::Entity)?.into_owned()
            }
            ResolveResult::Unbound => String::new(),
            ResolveResult::Unknown(_) => return Err(BadXml::Malformed),
        };
        let name = name.into_inner().to_owned();
        if name.len() > DAV_NAME_BYTES_MAX || namespace.len() > DAV_NAME_BYTES_MAX {
            return Err(BadXml::LongName);
        }
        if !is_name(&name) || !namespace.chars().all(is_character) {
            return Err(BadXml::Malformed);
        }
        Ok(PropertyName { namespace, name })
    }
}

/// Checks that a declaration names no other encoding than UTF-8, and no other version than 1.0.
fn check_encoding(declaration: &BytesDecl<'_>) -> Result<(), BadXml> {
    let is_known = |name: &str| ["utf-8", "us-ascii"].iter().any(|known| name.eq_ignore_ascii_case(known));
    match declaration.encoding() {
        Some(Ok(name)) if !is_known(&name) => return Err(BadXml::NotUtf8),
        Some(Err(_)) => return Err(BadXml::Malformed),
        _ => {}
    }
    match declaration.xml_version() {
        Ok(XmlVersion::Explicit1_0 | XmlVersion::Implicit1_0) => Ok(()),
        _ => Err(BadXml::Malformed),
    }
}

/// Whether this is a name without a colon (Namespaces in XML 1.0, section 3).
fn is_name(name: &str) -> bool {
    let is_start = |character: char| {
        character.is_ascii_alphabetic()
            || character == '_'
            || matches!(character,
                '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}'
                | '\u{37f}'..='\u{1fff}' | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}'
                | '\u{2c00}'..='\u{2fef}' | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}'
                | '\u{fdf0}'..='\u{fffd}' | '\u{10000}'..='\u{effff}')
    };
    let is_part = |character: char| {
        is_start(character)
            || character.is_ascii_digit()
            || matches!(character,
                '-' | '.' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
    };
    name.starts_with(is_start) && name.chars().all(is_part)
}

/// Whether XML 1.0 can have the character (section 2.2).
fn is_character(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// Appends text, also for an attribute in double quotes. Characters that XML cannot have are replaced.
pub(super) fn push_text(text: &str, out: &mut Vec<u8>) {
    for character in text.chars() {
        match character {
            '&' => out.extend_from_slice(b"&amp;"),
            '<' => out.extend_from_slice(b"&lt;"),
            '>' => out.extend_from_slice(b"&gt;"),
            '"' => out.extend_from_slice(b"&quot;"),
            // In attributes, a parser would replace these by spaces.
            '\t' => out.extend_from_slice(b"&#9;"),
            '\n' => out.extend_from_slice(b"&#10;"),
            '\r' => out.extend_from_slice(b"&#13;"),
            _ => {
                let character = if is_character(character) { character } else { '\u{fffd}' };
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_has_only_characters_of_xml() {
        let mut out = Vec::new();
        push_text("a<b>&\"c\" \u{1}\u{ffff}ü\r😀", &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "a&lt;b&gt;&amp;&quot;c&quot; \u{fffd}\u{fffd}ü&#13;😀");
    }

    #[test]
    fn a_name_has_no_colon_and_begins_with_a_letter() {
        for name in ["a", "_1", "größe", "a-b.c", "日本"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "1", "-a", "a:b", "a b", "a\"", "a<", "a\u{ffff}", "×"] {
            assert!(!is_name(name), "{name}");
        }
    }
}

//! Test files of the client of document 003: XML with one or several tests.
//!
//! A test has a number of threads, a number of iterations and a list of files. Thread t requests file t mod F
//! of F files, as often as there are iterations. It sends nothing. Invariants: a mistake is reported with its
//! line and column; a document type is refused, so that no entity is ever expanded.

use quick_xml::Reader;
use quick_xml::events::{BytesRef, Event};

use crate::files::{Files, Pick};
use crate::limits::{TEST_FILE_BYTES_MAX, TESTS_MAX, USERS_MAX};
use crate::target::check;

/// A test of a test file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTest {
    /// `numthreads`: the threads, which start together.
    pub threads: usize,
    /// `iterations`: the requests of each thread.
    pub iterations: u64,
    /// `filesToRetrieve`: paths, or absolute URLs for a proxy.
    pub files: Vec<String>,
}

/// A mistake in a test file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct BadTestFile {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong, and what to write.
    pub problem: String,
}

impl FileTest {
    /// Parses a test file.
    ///
    /// # Errors
    /// The first mistake, with its position.
    pub fn parse(text: &[u8]) -> Result<Vec<FileTest>, BadTestFile> {
        let at = |offset, problem: &str| position(text, offset, problem.to_owned());
        if text.len() > TEST_FILE_BYTES_MAX {
            return Err(at(0, "the file is longer than 1 MiB; divide it"));
        }
        let valid = std::str::from_utf8(text)
            .map_err(|error| at(error.valid_up_to(), "this is not UTF-8; save the file as UTF-8"))?;
        let mut parser = Parser::new(valid);
        let parsed = parser.tests();
        parsed.map_err(|problem| position(text, parser.start, problem))
    }

    /// Returns the files and the rule by which a thread chooses its own.
    pub fn requests(&self) -> (Files, Pick) {
        (Files::Listed(self.files.clone()), Pick::OfUser)
    }
}

/// Returns the mistake at a byte offset.
fn position(text: &[u8], offset: usize, problem: String) -> BadTestFile {
    let before = &text[..offset.min(text.len())];
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    BadTestFile { line, column: String::from_utf8_lossy(&before[line_start..]).chars().count() + 1, problem }
}

/// A part of the file.
enum Part {
    Start(String),
    End,
    Text(String),
    Eof,
}

struct Parser<'a> {
    reader: Reader<&'a [u8]>,
    /// The offset of the last part.
    start: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        let mut reader = Reader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        Parser { reader, start: 0 }
    }

    /// Returns the next part. Comments, the declaration and blank text are skipped.
    fn next(&mut self) -> Result<Part, String> {
        loop {
            self.start = self.offset();
            let event = self.reader.read_event();
            match event {
                // The reader makes a start and an end of an empty element.
                Ok(Event::Start(start) | Event::Empty(start)) => {
                    let name: String = start.name().as_ref().to_owned();
                    let is_wrong = start.attributes().any(|attribute| attribute.is_err());
                    return match is_wrong {
                        true => Err(format!("an attribute of <{name}> is wrong; write NAME=\"VALUE\"")),
                        false => Ok(Part::Start(name)),
                    };
                }
                Ok(Event::End(_)) => return Ok(Part::End),
                Ok(Event::Text(text)) if text.trim().is_empty() => {}
                Ok(Event::Text(text)) => return Ok(Part::Text(text.into_inner().into_owned())),
                Ok(Event::CData(text)) => return Ok(Part::Text(text.into_inner().into_owned())),
                Ok(Event::GeneralRef(reference)) => return Ok(Part::Text(resolved(&reference)?)),
                Ok(Event::Comment(_) | Event::Decl(_) | Event::PI(_)) => {}
                Ok(Event::DocType(_)) => {
                    return Err(
                        "a document type is refused, because it can define entities; remove it".to_owned()
                    );
                }
                Ok(Event::Eof) => return Ok(Part::Eof),
                Err(error) => {
                    self.start = usize::try_from(self.reader.error_position()).unwrap_or(usize::MAX);
                    return Err(error.to_string());
                }
            }
        }
    }

    fn offset(&self) -> usize {
        usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX)
    }

    fn tests(&mut self) -> Result<Vec<FileTest>, String> {
        let mut tests = Vec::new();
        match self.next()? {
            Part::Start(name) if name == "Tests" => {}
            _ => return Err("the file must begin with <Tests>".to_owned()),
        }
        loop {
            match self.next()? {
                Part::Start(name) if name == "simpleTest" => {
                    if tests.len() == TESTS_MAX {
                        return Err(format!("there are more than {TESTS_MAX} tests; divide the file"));
                    }
                    tests.push(self.test()?);
                }
                Part::End => break,
                _ => return Err("here must be <simpleTest> or </Tests>".to_owned()),
            }
        }
        if tests.is_empty() {
            return Err("there is no <simpleTest>".to_owned());
        }
        match self.next()? {
            Part::Eof => Ok(tests),
            _ => Err("nothing may be after </Tests>".to_owned()),
        }
    }

    fn test(&mut self) -> Result<FileTest, String> {
        let (mut threads, mut iterations, mut files) = (None, None, None);
        loop {
            let name = match self.next()? {
                Part::Start(name) => name,
                Part::End => break,
                _ => return Err("here must be an element of the test".to_owned()),
            };
            let is_again = match name.as_str() {
                "numthreads" => threads.replace(self.number(&name, USERS_MAX as u64)?).is_some(),
                "iterations" => iterations.replace(self.number(&name, u64::from(u32::MAX))?).is_some(),
                "filesToRetrieve" => files.replace(self.files()?).is_some(),
                _ => {
                    return Err(format!(
                        "<{name}> is unknown; a test has numthreads, iterations and filesToRetrieve"
                    ));
                }
            };
            if is_again {
                return Err(format!("a test has <{name}> once"));
            }
        }
        let missing = |name: &str| format!("the test has no <{name}>");
        let threads = threads.ok_or_else(|| missing("numthreads"))?;
        Ok(FileTest {
            threads: usize::try_from(threads).unwrap_or(USERS_MAX),
            iterations: iterations.ok_or_else(|| missing("iterations"))?,
            files: files.ok_or_else(|| missing("filesToRetrieve"))?,
        })
    }

    fn number(&mut self, name: &str, max: u64) -> Result<u64, String> {
        let text = self.text(name)?;
        let number = text.parse().ok().filter(|number| (1..=max).contains(number));
        number.ok_or_else(|| format!("{text:?} is not a number from 1 to {max}"))
    }

    fn files(&mut self) -> Result<Vec<String>, String> {
        let mut files = Vec::new();
        loop {
            match self.next()? {
                Part::Start(name) if name == "file" => {
                    let file = self.text(&name)?;
                    if !(file.starts_with('/') || file.starts_with("http://")) || check(&file).is_err() {
                        return Err(format!(
                            "{file:?} is no file: write /PATH or http://HOST/PATH, percent-encoded"
                        ));
                    }
                    files.push(file);
                }
                Part::End if files.is_empty() => return Err("there is no <file>".to_owned()),
                Part::End => return Ok(files),
                _ => return Err("here must be <file> or </filesToRetrieve>".to_owned()),
            }
        }
    }

    /// Returns the text of the element `name`, up to its end.
    fn text(&mut self, name: &str) -> Result<String, String> {
        let mut text = String::new();
        loop {
            match self.next()? {
                Part::Text(part) => text.push_str(&part),
                Part::End => return Ok(text.trim().to_owned()),
                _ => return Err(format!("<{name}> is not closed after its text; write </{name}>")),
            }
        }
    }
}

/// Returns the text of a predefined entity or a character reference; no other is known.
fn resolved(reference: &BytesRef<'_>) -> Result<String, String> {
    if let Some(character) = reference.resolve_char_ref().map_err(|error| error.to_string())? {
        return Ok(character.to_string());
    }
    let name: &str = reference;
    let text = quick_xml::escape::resolve_predefined_entity(name);
    text.map(str::to_owned).ok_or_else(|| format!("the entity &{name}; is unknown"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figure 3 of the document.
    const FIGURE_3: &str = include_str!("figure_3.xml");

    #[test]
    fn the_file_of_figure_3_is_read() {
        let files = ["/index.html", "/pwner.jpg", "/makefile", "/special.zip"].map(str::to_owned).to_vec();
        let test = FileTest { threads: 32, iterations: 10, files };
        assert_eq!(FileTest::parse(FIGURE_3.as_bytes()), Ok(vec![test]));
    }

    fn with(elements: &str) -> String {
        format!("<Tests>\n  <simpleTest>\n    {elements}\n  </simpleTest>\n</Tests>\n")
    }

    const LEAST: &str = "<numthreads>1</numthreads><iterations>2</iterations>";

    #[test]
    fn a_file_has_several_tests_and_files_for_a_proxy() {
        let one =
            format!("{LEAST}<filesToRetrieve><file> http://localhost/a&amp;b </file></filesToRetrieve>");
        let test = format!("<simpleTest>{one}</simpleTest>");
        let tests = FileTest::parse(format!("<Tests>{test}{test}</Tests>").as_bytes()).unwrap();
        assert_eq!((tests.len(), &*tests[1].files[0]), (2, "http://localhost/a&b"));
    }

    #[test]
    fn a_mistake_is_reported_with_its_line_and_column() {
        let files = "<filesToRetrieve><file>/a</file></filesToRetrieve>";
        for (text, line, problem) in [
            ("".to_owned(), 1, "<Tests>"),
            ("<Test/>".to_owned(), 1, "<Tests>"),
            ("<Tests></Tests>".to_owned(), 1, "no <simpleTest>"),
            (with(LEAST), 4, "no <filesToRetrieve>"),
            (with(&format!("{LEAST}{files}{files}")), 3, "once"),
            (with(&format!("{LEAST}<filesToRetrieve></filesToRetrieve>")), 3, "no <file>"),
            (with("<numthreads>0</numthreads>"), 3, "from 1 to"),
            (with("<numthreads>many</numthreads>"), 3, "from 1 to"),
            (with("<threads>1</threads>"), 3, "<threads> is unknown"),
            (with("<numthreads>1</iterations>"), 3, "numthreads"),
            (with("<numthreads>1<iterations>2</iterations>"), 3, "<numthreads> is not closed"),
            ("<Tests a=1></Tests>".to_owned(), 1, "write NAME=\"VALUE\""),
            ("<Tests a=\"1\"></Tests>".to_owned(), 1, "no <simpleTest>"),
            (with(&format!("{LEAST}<filesToRetrieve><file>a</file></filesToRetrieve>")), 3, "/PATH"),
            (with(&format!("{LEAST}<filesToRetrieve><file>/a b</file></filesToRetrieve>")), 3, "/PATH"),
            (format!("{}<Tests/>", with(&format!("{LEAST}{files}"))), 6, "after </Tests>"),
            ("<Tests>\n<simpleTest>\n".to_owned(), 3, ""),
        ] {
            let bad = FileTest::parse(text.as_bytes()).expect_err(&text);
            assert!(bad.line == line && bad.problem.contains(problem), "{text}: {bad}");
        }
        let bad = FileTest::parse(with("   <threads>1</threads>").as_bytes()).unwrap_err();
        assert_eq!((bad.line, bad.column), (3, 8));
    }

    #[test]
    fn an_entity_bomb_is_refused() {
        let bomb = "<!DOCTYPE Tests [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">]>\n";
        let bad = FileTest::parse(format!("{bomb}{}", with("<numthreads>&b;</numthreads>")).as_bytes());
        assert!(bad.unwrap_err().problem.contains("document type"));
        let bad = FileTest::parse(with("<numthreads>&b;</numthreads>").as_bytes());
        assert!(bad.unwrap_err().problem.contains("&b;"));
    }

    #[test]
    fn a_file_that_is_cut_anywhere_is_refused() {
        for end in 0..FIGURE_3.trim_end().len() {
            assert!(FileTest::parse(&FIGURE_3.as_bytes()[..end]).is_err(), "{end}");
        }
    }
}

//! Scans text into elements; only this file uses the XML library. Only XML's five entities and character references
//! are expanded; depth and attributes are limited, and a document type may be named but not defined.

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

use crate::FormatError;

/// Maximum nesting depth: hwloc's deepest trees, chains of PCI bridges, have about 30 levels.
const DEPTH_MAX: usize = 256;
/// Maximum number of attributes of an element: hwloc writes at most 18.
const ATTRIBUTES_MAX: usize = 64;

/// A position in a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct XmlPosition<'a> {
    pub(super) file: &'a str,
    /// From 1.
    pub(super) line: usize,
}

impl XmlPosition<'_> {
    /// An error at this position.
    pub(super) fn fail(self, found: impl Into<String>, expected: impl Into<String>) -> FormatError {
        FormatError {
            file: self.file.to_owned(),
            line: Some(self.line),
            found: found.into(),
            expected: expected.into(),
        }
    }

    /// An error at this position about a text, which is truncated.
    pub(super) fn fail_at(self, found: &str, expected: impl Into<String>) -> FormatError {
        self.fail(format!("'{found:.80}'"), expected)
    }
}

/// The start tag of an element.
#[derive(Debug)]
pub(super) struct Element<'a> {
    pub(super) name: String,
    attributes: Vec<(String, String)>,
    pub(super) place: XmlPosition<'a>,
}

impl Element<'_> {
    /// An attribute's value.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The value of a required attribute.
    pub(super) fn need(&self, name: &str) -> Result<&str, FormatError> {
        self.get(name).ok_or_else(|| {
            let found = format!("<{:.40}> without '{name}'", self.name);
            self.place.fail(found, format!("the attribute '{name}'"))
        })
    }

    /// An attribute's value as a whole number up to `max`.
    pub(super) fn number(&self, name: &str, max: u64) -> Result<Option<u64>, FormatError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) if number <= max => Ok(Some(number)),
            _ => {
                let expected = format!("a whole number up to {max}");
                Err(self.place.fail(format!("{name}=\"{text:.40}\""), expected))
            }
        }
    }
}

/// A token.
#[derive(Debug)]
pub(super) enum Token<'a> {
    Open(Element<'a>),
    Text(String),
    Close,
    End,
}

/// Reads elements one after another.
pub(super) struct Scanner<'a> {
    reader: Reader<&'a [u8]>,
    text: &'a str,
    place: XmlPosition<'a>,
    /// Offset up to which lines are counted.
    counted: usize,
    depth: usize,
    elements: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str, file: &'a str) -> Self {
        let mut reader = Reader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        Self {
            reader,
            text,
            place: XmlPosition { file, line: 1 },
            counted: 0,
            depth: 0,
            elements: 0,
        }
    }

    /// The current position.
    pub(super) fn place(&self) -> XmlPosition<'a> {
        self.place
    }

    /// The next token. The end requires that every element is closed.
    pub(super) fn next(&mut self) -> Result<Token<'a>, FormatError> {
        loop {
            self.move_to(self.reader.buffer_position());
            let event = self.reader.read_event().map_err(|error| {
                self.move_to(self.reader.error_position());
                self.place.fail(error.to_string(), "well-formed XML")
            })?;
            if let Some(token) = self.token(event)? {
                return Ok(token);
            }
        }
    }

    fn move_to(&mut self, position: u64) {
        let position = (position as usize).clamp(self.counted, self.text.len());
        let passed = &self.text.as_bytes()[self.counted..position];
        self.place.line += passed.iter().filter(|&&byte| byte == b'\n').count();
        self.counted = position;
    }

    fn token(&mut self, event: Event<'_>) -> Result<Option<Token<'a>>, FormatError> {
        match event {
            Event::Start(start) => self.open(&start).map(Some),
            Event::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                Ok(Some(Token::Close))
            }
            Event::Text(text) => self.text(text.xml10_content().into_owned()),
            Event::CData(text) => self.text(text.xml10_content().into_owned()),
            Event::GeneralRef(reference) => {
                let text = self.resolve(&reference)?;
                self.text(text)
            }
            Event::DocType(kind) if kind.contains('[') => {
                let expected = "a document type without definitions of its own";
                Err(self.place.fail("a document type with '['", expected))
            }
            Event::Eof if self.depth > 0 => {
                let found = format!("the end with {} elements open", self.depth);
                Err(self.place.fail(found, "every element closed"))
            }
            Event::Eof if self.elements == 0 => Err(self.place.fail("no element", "<topology>")),
            Event::Eof => Ok(Some(Token::End)),
            _ => Ok(None),
        }
    }

    fn open(&mut self, start: &BytesStart<'_>) -> Result<Token<'a>, FormatError> {
        if self.depth == 0 && self.elements > 0 {
            return Err(self.place.fail("a second root element", "the end of the file"));
        }
        if self.depth == DEPTH_MAX {
            return Err(self.place.fail("elements nested deeper", format!("at most {DEPTH_MAX}")));
        }
        self.depth += 1;
        self.elements += 1;
        let name = start.name().into_inner().to_owned();
        Ok(Token::Open(Element { name, attributes: self.attributes(start)?, place: self.place }))
    }

    fn attributes(&self, start: &BytesStart<'_>) -> Result<Vec<(String, String)>, FormatError> {
        let mut attributes = Vec::new();
        for attribute in start.attributes() {
            if attributes.len() == ATTRIBUTES_MAX {
                let expected = format!("at most {ATTRIBUTES_MAX}");
                return Err(self.place.fail("an element with more attributes", expected));
            }
            let fail = |found: String| self.place.fail(found, "attributes such as name=\"value\"");
            let attribute = attribute.map_err(|error| fail(error.to_string()))?;
            let value = attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .map_err(|error| fail(error.to_string()))?;
            attributes.push((attribute.key.into_inner().to_owned(), value.into_owned()));
        }
        Ok(attributes)
    }

    fn text(&self, text: String) -> Result<Option<Token<'a>>, FormatError> {
        if self.depth == 0 && !text.trim().is_empty() {
            return Err(self.place.fail_at(text.trim(), "the XML that 'lstopo --of xml' writes"));
        }
        Ok((self.depth > 0).then_some(Token::Text(text)))
    }

    fn resolve(&self, reference: &BytesRef<'_>) -> Result<String, FormatError> {
        let expected = "one of &lt; &gt; &amp; &apos; &quot; or a numbered character";
        let fail = || self.place.fail(format!("'&{:.40};'", &**reference), expected);
        match reference.resolve_char_ref() {
            Ok(Some(character)) => Ok(character.to_string()),
            Ok(None) => resolve_predefined_entity(reference).map(str::to_owned).ok_or_else(fail),
            Err(_) => Err(fail()),
        }
    }
}

//! Reads CSV records, even invalid ones, with the lines they begin in.

use std::io::{self, BufRead};

/// The characters that cut a file into records and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CsvSyntax {
    pub(super) delimiter: u8,
    pub(super) quote: Option<u8>,
    pub(super) escape: Option<u8>,
    pub(super) comment: Option<u8>,
    /// Whether a backslash outside of quotes takes its meaning from the next byte, as in PostgreSQL's text
    /// format; the value keeps both.
    pub(super) backslashes: bool,
}

impl Default for CsvSyntax {
    fn default() -> Self {
        Self { delimiter: b',', quote: Some(b'"'), escape: None, comment: None, backslashes: false }
    }
}

/// A fault in the quotes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuoteFlaw {
    /// The file ends in a quoted value.
    Unterminated,
    /// A closing quote is not followed by a delimiter.
    Stray,
}

/// The values of one record.
#[derive(Clone, Debug, Default)]
pub(super) struct CsvRecord {
    bytes: Vec<u8>,
    /// Where each value ends.
    ends: Vec<usize>,
    /// Which values have quotes around them.
    quoted: Vec<bool>,
    /// The line it begins in, from 1.
    pub(super) line: u64,
    pub(super) flaw: Option<QuoteFlaw>,
    /// Whether a value has a line break.
    pub(super) has_line_break: bool,
}

impl CsvRecord {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn value(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start..self.ends[at]]
    }

    pub(super) fn text(&self, at: usize) -> String {
        String::from_utf8_lossy(self.value(at)).into_owned()
    }

    pub(super) fn is_quoted(&self, at: usize) -> bool {
        self.quoted[at]
    }

    pub(super) fn has_quotes(&self) -> bool {
        self.quoted.contains(&true)
    }

    /// Whether the line is empty.
    pub(super) fn is_blank(&self) -> bool {
        self.bytes.is_empty() && self.ends.len() == 1 && !self.quoted[0]
    }

    fn clear(&mut self, line: u64) {
        self.bytes.clear();
        self.ends.clear();
        self.quoted.clear();
        *self = Self { line, flaw: None, has_line_break: false, ..std::mem::take(self) };
    }

    fn end_value(&mut self, quoted: bool) {
        self.ends.push(self.bytes.len());
        self.quoted.push(quoted);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    RecordStart,
    ValueStart,
    Value,
    /// After a backslash outside of quotes.
    Backslash,
    Quoted,
    /// After an escape within quotes.
    Escaped,
    /// After a quote within quotes.
    QuoteSeen,
    /// After something that follows a closing quote.
    AfterQuotes,
    Comment,
}

/// Reads records.
pub(super) struct RecordReader<R> {
    input: R,
    syntax: CsvSyntax,
    /// Lines that are read.
    line: u64,
    /// Bytes that a record may have.
    max: usize,
    /// Whether a line feed belongs to the carriage return before it.
    skip_line_feed: bool,
    begun: bool,
}

impl<R: BufRead> RecordReader<R> {
    pub(super) fn new(input: R, syntax: CsvSyntax, max: usize) -> Self {
        Self { input, syntax, line: 0, max, skip_line_feed: false, begun: false }
    }

    /// Skips lines without parsing them.
    pub(super) fn skip_lines(&mut self, lines: usize) -> io::Result<()> {
        for _ in 0..lines {
            let mut line = Vec::new();
            if self.input.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            self.line += 1;
            self.begun = true;
        }
        Ok(())
    }

    fn skip_mark(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.begun, true)
            && self.input.fill_buf()?.starts_with(b"\xef\xbb\xbf")
        {
            self.input.consume(3);
        }
        Ok(())
    }

    /// Reads the next record; false at the end.
    ///
    /// # Errors
    /// If the file cannot be read, or a record is too long.
    pub(super) fn read(&mut self, record: &mut CsvRecord) -> io::Result<bool> {
        self.skip_mark()?;
        record.clear(self.line + 1);
        let mut place = Place::RecordStart;
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                return Ok(self.end(record, place));
            }
            let (mut used, mut ended) = (0, false);
            while used < chunk.len() && !ended {
                let byte = chunk[used];
                used += 1;
                if std::mem::take(&mut self.skip_line_feed) && byte == b'\n' {
                    continue;
                }
                if matches!(byte, b'\n' | b'\r')
                    && !matches!(place, Place::Quoted | Place::Escaped | Place::Backslash)
                {
                    self.skip_line_feed = byte == b'\r';
                    self.line += 1;
                    if place == Place::Comment {
                        (place, record.line) = (Place::RecordStart, self.line + 1);
                        continue;
                    }
                    record.end_value(matches!(place, Place::QuoteSeen | Place::AfterQuotes));
                    ended = true;
                } else {
                    place = step(&self.syntax, record, place, byte);
                    self.line +=
                        u64::from(matches!(place, Place::Quoted | Place::Value) && byte == b'\n');
                }
            }
            self.input.consume(used);
            if ended {
                return Ok(true);
            }
            if record.bytes.len() > self.max {
                return Err(io::Error::other(format!(
                    "line {} is longer than {} bytes, the limit that max_line_size sets",
                    record.line, self.max
                )));
            }
        }
    }

    fn end(&mut self, record: &mut CsvRecord, place: Place) -> bool {
        match place {
            Place::RecordStart | Place::Comment => return false,
            Place::Quoted | Place::Escaped => {
                record.flaw.get_or_insert(QuoteFlaw::Unterminated);
                record.end_value(true);
            }
            _ => record.end_value(matches!(place, Place::QuoteSeen | Place::AfterQuotes)),
        }
        self.line += 1;
        true
    }
}

/// Handles a byte that does not end a record.
fn step(syntax: &CsvSyntax, record: &mut CsvRecord, place: Place, byte: u8) -> Place {
    let CsvSyntax { delimiter, quote, escape, comment, backslashes } = *syntax;
    match place {
        Place::Comment => Place::Comment,
        Place::RecordStart if Some(byte) == comment => Place::Comment,
        Place::RecordStart | Place::ValueStart | Place::Value if backslashes && byte == b'\\' => {
            record.bytes.push(byte);
            Place::Backslash
        }
        Place::RecordStart | Place::ValueStart if Some(byte) == quote => Place::Quoted,
        Place::RecordStart | Place::ValueStart | Place::Value | Place::AfterQuotes
            if byte == delimiter =>
        {
            record.end_value(place == Place::AfterQuotes);
            Place::ValueStart
        }
        Place::RecordStart | Place::ValueStart | Place::Value | Place::Backslash => {
            record.bytes.push(byte);
            Place::Value
        }
        Place::AfterQuotes => {
            record.bytes.push(byte);
            Place::AfterQuotes
        }
        Place::Quoted if Some(byte) == escape && escape != quote => Place::Escaped,
        Place::Quoted if Some(byte) == quote => Place::QuoteSeen,
        Place::Quoted | Place::Escaped => {
            record.has_line_break |= byte == b'\n' || byte == b'\r';
            record.bytes.push(byte);
            Place::Quoted
        }
        Place::QuoteSeen if byte == delimiter => {
            record.end_value(true);
            Place::ValueStart
        }
        Place::QuoteSeen if Some(byte) == quote && escape.is_none_or(|it| Some(it) == quote) => {
            record.bytes.push(byte);
            Place::Quoted
        }
        Place::QuoteSeen => {
            record.flaw.get_or_insert(QuoteFlaw::Stray);
            record.bytes.push(byte);
            Place::AfterQuotes
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn records(text: &str, syntax: CsvSyntax) -> Vec<(u64, Vec<String>)> {
        // A small buffer, so that records cross its ends.
        let input = BufReader::with_capacity(3, text.as_bytes());
        let mut reader = RecordReader::new(input, syntax, 1000);
        let (mut record, mut all) = (CsvRecord::default(), Vec::new());
        while reader.read(&mut record).expect("readable text") {
            all.push((record.line, (0..record.len()).map(|at| record.text(at)).collect()));
        }
        all
    }

    fn plain(text: &str) -> Vec<(u64, Vec<String>)> {
        records(text, CsvSyntax::default())
    }

    fn row(line: u64, values: &[&str]) -> (u64, Vec<String>) {
        (line, values.iter().map(|it| (*it).to_owned()).collect())
    }

    #[test]
    fn records_have_their_values_and_lines() {
        let text = "\u{feff}a,b\r\n1,\"x,\"\"y\"\"\n2\"\n\n,\rlast";
        let expected = [
            row(1, &["a", "b"]),
            row(2, &["1", "x,\"y\"\n2"]),
            row(4, &[""]),
            row(5, &["", ""]),
            row(6, &["last"]),
        ];
        assert_eq!(plain(text), expected);
        assert_eq!(plain(""), []);
        assert_eq!(plain("a\n"), [row(1, &["a"])]);
    }

    #[test]
    fn comments_escapes_and_other_quotes_are_recognised() {
        let syntax = CsvSyntax {
            delimiter: b';',
            quote: Some(b'\''),
            escape: Some(b'\\'),
            comment: Some(b'#'),
            ..CsvSyntax::default()
        };
        let text = "# one\n'a;\\'b';2\n# two\n#three\n3;4";
        assert_eq!(records(text, syntax), [row(2, &["a;'b", "2"]), row(5, &["3", "4"])]);
    }

    #[test]
    fn a_backslash_of_text_keeps_delimiters_and_line_ends_in_values() {
        let syntax =
            CsvSyntax { delimiter: b'\t', quote: None, backslashes: true, ..CsvSyntax::default() };
        let text = "a\\\tb\tc\\\nd\n\\N\t\\\\\ne\\";
        let expected = [row(1, &["a\\\tb", "c\\\nd"]), row(3, &["\\N", "\\\\"]), row(4, &["e\\"])];
        assert_eq!(records(text, syntax), expected);
    }

    #[test]
    fn faulty_quotes_are_reported() {
        let flaw = |text: &str| {
            let mut reader = RecordReader::new(text.as_bytes(), CsvSyntax::default(), 1000);
            let mut record = CsvRecord::default();
            reader.read(&mut record).expect("readable text").then_some(record.flaw).flatten()
        };
        assert_eq!(flaw("a,\"b"), Some(QuoteFlaw::Unterminated));
        assert_eq!(flaw("a,\"b\"c,d\n"), Some(QuoteFlaw::Stray));
        assert_eq!(flaw("a,b\"c,d\n"), None);
    }

    #[test]
    fn an_endless_record_is_refused() {
        let text = "x".repeat(5000);
        let input = BufReader::with_capacity(100, text.as_bytes());
        let mut reader = RecordReader::new(input, CsvSyntax::default(), 1000);
        let told = reader.read(&mut CsvRecord::default()).expect_err("it is too long").to_string();
        assert!(told.contains("line 1 is longer than 1000 bytes"), "{told}");
    }
}

//! The text of a range: `[1,5)`, `(,"2024-01-01 00:00:00"]`, `empty`; of a multirange: `{[1,3),[5,7)}`.

use datafusion::arrow::array::timezone::Tz;

use super::form::{RangeForm, RangeType};
use super::set::{RangeBound, RangeSet};
use crate::failure::FunctionFailure;
use crate::temporal::StatementClock;

impl RangeForm {
    /// Reads a value.
    ///
    /// # Errors
    /// If a text is not a value of the type.
    pub fn read(self, text: &str, clock: StatementClock<'_>) -> Result<RangeSet, FunctionFailure> {
        let mut reader = Reader { rest: text, of: self.of, clock };
        let found = if self.is_multi { reader.multirange() } else { reader.alone() };
        found.map_err(|failure| failure.told(self, text))
    }

    /// Returns the text of a value, in a time zone if it has times with one.
    pub fn text(self, set: &RangeSet, zone: Option<Tz>) -> String {
        let mut out = Vec::new();
        if self.is_multi {
            out.push(b'{');
        } else if set.is_empty() {
            out.extend_from_slice(b"empty");
        }
        for (at, (lower, upper)) in set.bounds().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.push(if lower.is_inclusive { b'[' } else { b'(' });
            self.write_bound(&lower, zone, &mut out);
            out.push(b',');
            self.write_bound(&upper, zone, &mut out);
            out.push(if upper.is_inclusive { b']' } else { b')' });
        }
        if self.is_multi {
            out.push(b'}');
        }
        String::from_utf8(out).unwrap_or_default()
    }

    fn write_bound(self, bound: &RangeBound, zone: Option<Tz>, out: &mut Vec<u8>) {
        let Some(value) = &bound.value else { return };
        let start = out.len();
        self.of.write_point(value, zone, out);
        // Only dates and times have a character that could be misread, a space.
        if out[start..].contains(&b' ') {
            out.insert(start, b'"');
            out.push(b'"');
        }
    }

    /// Returns the text of a value as it is stored.
    ///
    /// # Errors
    /// If a text is not a value of the type.
    pub fn canonical(
        self,
        text: &str,
        clock: StatementClock<'_>,
    ) -> Result<String, FunctionFailure> {
        Ok(self.text(&self.read(text, clock)?, None))
    }
}

/// Why a text cannot be read.
enum Unread {
    Malformed,
    Failed(FunctionFailure),
}

impl Unread {
    fn told(self, form: RangeForm, text: &str) -> FunctionFailure {
        let what = if form.is_multi { "multirange" } else { "range" };
        match self {
            Self::Malformed => {
                let message = format!("malformed {what} literal: \"{text}\"");
                FunctionFailure { state: "22P02", message }
            }
            Self::Failed(failure) => failure,
        }
    }
}

struct Reader<'t> {
    rest: &'t str,
    of: RangeType,
    clock: StatementClock<'t>,
}

impl Reader<'_> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    /// Takes a character if it is the next one.
    fn takes(&mut self, wanted: char) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn ends(&mut self) -> Result<(), Unread> {
        self.skip_blanks();
        if self.rest.is_empty() { Ok(()) } else { Err(Unread::Malformed) }
    }

    fn alone(&mut self) -> Result<RangeSet, Unread> {
        let range = self.range()?;
        self.ends()?;
        Ok(range)
    }

    fn range(&mut self) -> Result<RangeSet, Unread> {
        const EMPTY: &str = "empty";
        self.skip_blanks();
        let word = self.rest.get(..EMPTY.len());
        if word.is_some_and(|word| word.eq_ignore_ascii_case(EMPTY)) {
            self.rest = &self.rest[EMPTY.len()..];
            return Ok(RangeSet::default());
        }
        let is_from = self.takes('[');
        if !is_from && !self.takes('(') {
            return Err(Unread::Malformed);
        }
        let lower = self.bound()?;
        if !self.takes(',') {
            return Err(Unread::Malformed);
        }
        let upper = self.bound()?;
        let is_to = self.takes(']');
        if !is_to && !self.takes(')') {
            return Err(Unread::Malformed);
        }
        let (lower, upper) = (self.value(lower)?, self.value(upper)?);
        let lower = RangeBound { value: lower, is_inclusive: is_from };
        let upper = RangeBound { value: upper, is_inclusive: is_to };
        RangeSet::of_bounds(self.of, lower, upper).map_err(Unread::Failed)
    }

    fn value(&self, text: Option<String>) -> Result<Option<super::point::RangePoint>, Unread> {
        let read = |text: String| self.of.read_point(&text, self.clock);
        text.map(read).transpose().map_err(Unread::Failed)
    }

    /// The text of a bound, without its quotes and backslashes; None if nothing is there.
    fn bound(&mut self) -> Result<Option<String>, Unread> {
        if self.rest.starts_with([',', ')', ']']) {
            return Ok(None);
        }
        let (mut text, mut is_quoted) = (String::new(), false);
        let mut letters = self.rest.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                ',' | ')' | ']' if !is_quoted => {
                    self.rest = &self.rest[at..];
                    return Ok(Some(text));
                }
                '\\' => text.push(letters.next().ok_or(Unread::Malformed)?.1),
                '"' if is_quoted && letters.as_str().starts_with('"') => {
                    letters.next();
                    text.push('"');
                }
                '"' => is_quoted = !is_quoted,
                other => text.push(other),
            }
        }
        Err(Unread::Malformed)
    }

    fn multirange(&mut self) -> Result<RangeSet, Unread> {
        self.skip_blanks();
        if !self.takes('{') {
            return Err(Unread::Malformed);
        }
        let mut ranges = Vec::new();
        self.skip_blanks();
        while !self.takes('}') {
            if !ranges.is_empty() && !self.takes(',') {
                return Err(Unread::Malformed);
            }
            ranges.push(self.range()?);
            self.skip_blanks();
        }
        self.ends()?;
        Ok(RangeSet::union(ranges))
    }
}

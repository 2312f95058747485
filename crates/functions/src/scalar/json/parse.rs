//! The JSON parser. Like DuckDB's it accepts trailing commas, NaN and Infinity, but not for JSONB,
//! whose objects have unique keys in order.

use std::borrow::Cow;

use super::value::{Json, JsonFailure, order_keys};

/// Maximum nesting depth.
pub(super) const DEPTH_MAX: usize = 1000;

/// Parses a text.
pub(super) fn parse(text: &str) -> Result<Json<'_>, String> {
    Parser { text, at: 0, is_jsonb: false, has_zero: false }.whole()
}

/// Parses a text as JSONB.
pub(super) fn parse_jsonb(text: &str) -> Result<Json<'_>, JsonFailure> {
    let mut parser = Parser { text, at: 0, is_jsonb: true, has_zero: false };
    let value = parser.whole();
    value.map_err(|why| match parser.has_zero {
        true => {
            let why = "unsupported Unicode escape sequence: \\u0000 cannot be converted to text";
            ("22P05", why.to_owned())
        }
        false => ("22P02", why),
    })
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    is_jsonb: bool,
    /// Whether it stopped at the character zero, which SQL text cannot contain.
    has_zero: bool,
}

impl<'a> Parser<'a> {
    fn whole(&mut self) -> Result<Json<'a>, String> {
        let value = self.value(0)?;
        self.blanks();
        match self.at == self.text.len() {
            true => Ok(value),
            false => self.fails("unexpected characters after the value"),
        }
    }

    fn fails<T>(&self, why: &str) -> Result<T, String> {
        let (line, at) = (self.text, self.at);
        let shown: String = line.chars().take(60).collect();
        let more = if shown.len() < line.len() { "…" } else { "" };
        Err(format!("malformed JSON at byte {at}: {why}, in '{shown}{more}'"))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn takes(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn value(&mut self, depth: usize) -> Result<Json<'a>, String> {
        if depth > DEPTH_MAX {
            return self.fails("lists and objects are nested more than 1000 deep");
        }
        self.blanks();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.string().map(Json::Text),
            Some(b'-' | b'0'..=b'9') if !self.text[self.at..].starts_with("-I") => self.number(),
            Some(_) => self.word(),
            None => self.fails("expected a value"),
        }
    }

    fn word(&mut self) -> Result<Json<'a>, String> {
        const WORDS: [(&str, Json<'static>); 6] = [
            ("null", Json::Null),
            ("true", Json::Flag(true)),
            ("false", Json::Flag(false)),
            ("NaN", Json::Number("NaN")),
            ("Infinity", Json::Number("Infinity")),
            ("-Infinity", Json::Number("-Infinity")),
        ];
        let rest = &self.text[self.at..];
        // JSONB has no NaN or infinity.
        let mut words = WORDS.into_iter().take(if self.is_jsonb { 3 } else { WORDS.len() });
        match words.find(|(word, _)| rest.starts_with(word)) {
            Some((word, value)) => {
                self.at += word.len();
                Ok(value)
            }
            None => self.fails("expected a value"),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json<'a>, String> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.blanks();
            if self.takes(b']') {
                return Ok(Json::List(items));
            }
            items.push(self.value(depth + 1)?);
            self.separator(b']', "expected ',' or ']'")?;
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>, String> {
        self.at += 1;
        let mut pairs = Vec::new();
        loop {
            self.blanks();
            if self.takes(b'}') {
                if self.is_jsonb {
                    order_keys(&mut pairs);
                }
                return Ok(Json::Object(pairs));
            }
            if self.peek() != Some(b'"') {
                return self.fails("expected a key in quotes");
            }
            let key = self.string()?;
            self.blanks();
            if !self.takes(b':') {
                return self.fails("expected ':'");
            }
            pairs.push((key, self.value(depth + 1)?));
            self.separator(b'}', "expected ',' or '}'")?;
        }
    }

    /// Skips the separator between values; stops before the end character.
    fn separator(&mut self, end: u8, expected: &str) -> Result<(), String> {
        self.blanks();
        if !self.takes(b',') {
            return if self.peek() == Some(end) { Ok(()) } else { self.fails(expected) };
        }
        self.blanks();
        match self.is_jsonb && self.peek() == Some(end) {
            true => self.fails("expected a value"),
            false => Ok(()),
        }
    }

    fn number(&mut self) -> Result<Json<'a>, String> {
        let start = self.at;
        self.takes(b'-');
        let digits = |parser: &mut Self| {
            let start = parser.at;
            while matches!(parser.peek(), Some(b'0'..=b'9')) {
                parser.at += 1;
            }
            parser.at - start
        };
        let leads_with_zero = self.peek() == Some(b'0');
        let whole = digits(self);
        if whole == 0 || (leads_with_zero && whole > 1) {
            return self.fails("expected a number");
        }
        if self.takes(b'.') && digits(self) == 0 {
            return self.fails("expected a digit");
        }
        if self.takes(b'e') || self.takes(b'E') {
            let _sign = self.takes(b'+') || self.takes(b'-');
            if digits(self) == 0 {
                return self.fails("expected a digit");
            }
        }
        Ok(Json::Number(&self.text[start..self.at]))
    }

    fn string(&mut self) -> Result<Cow<'a, str>, String> {
        self.at += 1;
        let start = self.at;
        let mut owned: Option<String> = None;
        let mut from = start;
        loop {
            match self.peek() {
                None => return self.fails("unterminated string"),
                Some(b'"') => break,
                Some(b'\\') => {
                    let text = owned.get_or_insert_default();
                    text.push_str(&self.text[from..self.at]);
                    let one = self.escaped()?;
                    owned.get_or_insert_default().push(one);
                    from = self.at;
                }
                Some(byte) if byte < b' ' => return self.fails("a control character in a string"),
                Some(_) => self.at += 1,
            }
        }
        let rest = &self.text[from..self.at];
        self.at += 1;
        Ok(match owned {
            Some(text) => Cow::Owned(text + rest),
            None => Cow::Borrowed(rest),
        })
    }

    /// Parses an escaped character.
    fn escaped(&mut self) -> Result<char, String> {
        self.at += 2;
        Ok(match self.text.as_bytes().get(self.at - 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let high = self.code()?;
                let code = match high {
                    0xd800..=0xdbff if self.text[self.at..].starts_with("\\u") => {
                        self.at += 2;
                        let low = self.code()?;
                        match low {
                            0xdc00..=0xdfff => 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00),
                            _ => high,
                        }
                    }
                    code => code,
                };
                self.has_zero = code == 0 && self.is_jsonb;
                match char::from_u32(code).filter(|_| !self.has_zero) {
                    Some(one) => one,
                    None => return self.fails("unpaired surrogate"),
                }
            }
            _ => {
                self.at = (self.at - 1).min(self.text.len());
                return self.fails("unknown escape");
            }
        })
    }

    fn code(&mut self) -> Result<u32, String> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let code = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match code {
            Some(code) => {
                self.at += 4;
                Ok(code)
            }
            None => self.fails("expected four hexadecimal digits"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_json_is_an_error_with_its_position() {
        for text in [
            "",
            " ",
            "{",
            "[",
            "\"",
            "\"\\",
            "\"\\u12",
            "\"\\ud800\"",
            "{a:1}",
            "[1 2]",
            "01",
            "1.",
            "-",
            "1e",
            "tru",
            "{\"a\"}",
            "{\"a\":}",
            "[,]",
            "\"\u{1}\"",
            "1 2",
            "\"\\x\"",
            "\"\\ä\"",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&"[".repeat(100_000)).is_err());
        assert!(parse(&format!("{}{}", "[".repeat(900), "]".repeat(900))).is_ok());
    }

    #[test]
    fn values_are_written_as_they_were_read() {
        for (text, written) in [
            (" { \"a\" : [ 1 , 2.50 , ] } ", "{\"a\":[1,2.5]}"),
            ("\"\\u00e4\\ud83e\\udd86\\n\"", "\"ä🦆\\n\""),
            ("12345678901234567890123", "12345678901234567890123"),
            ("1e400", "1e400"),
            ("[true,false,null]", "[true,false,null]"),
        ] {
            let mut out = String::new();
            parse(text).unwrap().write(&mut out);
            assert_eq!(out, written);
        }
    }
}

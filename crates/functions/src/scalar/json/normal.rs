//! Checks in one pass, without building a value, whether a text already is JSONB, as nearly all texts from tables are.
//! If in doubt, the answer is no.

use super::parse::DEPTH_MAX;

/// Maximum number of digits before and after a number's point, as in PostgreSQL.
pub(super) const WHOLE_DIGITS_MAX: usize = 131_072;
pub(super) const PLACES_MAX: usize = 16_383;

/// Whether a text is the canonical text of its value.
pub(super) fn is_normal(text: &str) -> bool {
    let mut reader = NormalReader { bytes: text.as_bytes(), at: 0 };
    reader.value(0) && reader.at == text.len()
}

struct NormalReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> NormalReader<'a> {
    fn takes(&mut self, what: &[u8]) -> bool {
        let is_there = self.bytes[self.at..].starts_with(what);
        self.at += if is_there { what.len() } else { 0 };
        is_there
    }

    fn value(&mut self, depth: usize) -> bool {
        match self.bytes.get(self.at) {
            Some(b'{') => depth < DEPTH_MAX && self.object(depth),
            Some(b'[') => depth < DEPTH_MAX && self.list(depth),
            Some(b'"') => self.string().is_some(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.takes(b"null") || self.takes(b"true") || self.takes(b"false"),
        }
    }

    fn list(&mut self, depth: usize) -> bool {
        self.at += 1;
        if self.takes(b"]") {
            return true;
        }
        loop {
            if !self.value(depth + 1) {
                return false;
            }
            if !self.takes(b", ") {
                return self.takes(b"]");
            }
        }
    }

    fn object(&mut self, depth: usize) -> bool {
        self.at += 1;
        if self.takes(b"}") {
            return true;
        }
        let mut before: Option<&[u8]> = None;
        loop {
            let Some(key) = self.string() else { return false };
            let follows = |before: &[u8]| (before.len(), before) < (key.len(), key);
            // A key with escapes differs in length from its text.
            if key.contains(&b'\\') || !before.is_none_or(follows) {
                return false;
            }
            before = Some(key);
            if !self.takes(b": ") || !self.value(depth + 1) {
                return false;
            }
            if !self.takes(b", ") {
                return self.takes(b"}");
            }
        }
    }

    /// Scans a string's contents; None if it contains an unnecessary escape.
    fn string(&mut self) -> Option<&'a [u8]> {
        if !self.takes(b"\"") {
            return None;
        }
        let start = self.at;
        loop {
            match self.bytes.get(self.at)? {
                b'"' => break,
                b'\\' => self.escape()?,
                byte if *byte < b' ' => return None,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Some(&self.bytes[start..self.at - 1])
    }

    fn escape(&mut self) -> Option<()> {
        let rest = &self.bytes[self.at..];
        self.at += match rest.get(1)? {
            b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            b'u' => match rest.get(2..6)? {
                // Characters with a short escape, and zero, which JSONB does not allow.
                b"0000" | b"0008" | b"0009" | b"000a" | b"000c" | b"000d" => return None,
                [b'0', b'0', b'0' | b'1', b'0'..=b'9' | b'a'..=b'f'] => 6,
                _ => return None,
            },
            _ => return None,
        };
        Some(())
    }

    fn digits(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        &rest[..count]
    }

    fn number(&mut self) -> bool {
        let is_negative = self.takes(b"-");
        let whole = self.digits();
        let places = if self.takes(b".") { Some(self.digits()) } else { None };
        let is_zero = || whole == b"0" && places.is_none_or(|all| all.iter().all(|it| *it == b'0'));
        let is_written_so = (whole == b"0" || whole.first().is_some_and(|first| *first != b'0'))
            && places.is_none_or(|places| !places.is_empty() && places.len() <= PLACES_MAX);
        is_written_so && whole.len() <= WHOLE_DIGITS_MAX && !(is_negative && is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::super::jsonb::canonical;
    use super::*;

    #[test]
    fn texts_become_those_that_postgresql_prints() {
        let zeros = format!("1{}", "0".repeat(400));
        for (text, printed) in [
            ("{\"b\":1,\"aa\":[1,2],\"b\":{\"x\":null}}", "{\"b\": {\"x\": null}, \"aa\": [1, 2]}"),
            (
                "{\"bb\":1,\"a\":2,\"ab\":3,\"é\":4,\"\":5}",
                "{\"\": 5, \"a\": 2, \"ab\": 3, \"bb\": 1, \"é\": 4}",
            ),
            ("[1.0,-0,-0.0,1e2,1E-3,1.50,1.5e3]", "[1.0, 0, 0.0, 100, 0.001, 1.50, 1500]"),
            ("[1.234e1,0e5,0.00e1,12.30e1, 1e-2,0.0e-3]", "[12.34, 0, 0.0, 123.0, 0.01, 0.0000]"),
            ("[-0.05e1,0.01e5,-12e-1,0.005e1]", "[-0.5, 1000, -1.2, 0.05]"),
            ("\"\\u0001\\u001F\\u007f\\/é\\u00e9\\u000a\"", "\"\\u0001\\u001f\u{7f}/éé\\n\""),
            ("{\"\\\"\":1,\"a\":[ ],\"b\":{ }}", "{\"\\\"\": 1, \"a\": [], \"b\": {}}"),
            ("1e400", zeros.as_str()),
            (" true ", "true"),
            ("0e131073", "0"),
        ] {
            assert_eq!(canonical(text).as_deref(), Ok(printed), "{text}");
            assert!(!is_normal(text), "{text}");
            assert_eq!(canonical(printed).as_deref(), Ok(printed), "{text}");
        }
        for normal in
            ["{\"a\": 1, \"b\": [1, -2.50, \"x\\n\\u001f\"], \"aa\": {}}", "null", "\"\"", "[]"]
        {
            assert!(is_normal(normal), "{normal}");
        }
    }

    #[test]
    fn what_jsonb_cannot_hold_is_refused() {
        for (text, state) in [
            ("\"\\u0000\"", "22P05"),
            ("{\"a\\u0000\": 1}", "22P05"),
            ("\"\\ud800\"", "22P02"),
            ("[1,]", "22P02"),
            ("{\"a\": 1,}", "22P02"),
            ("NaN", "22P02"),
            ("[-Infinity]", "22P02"),
            ("", "22P02"),
            ("01", "22P02"),
            ("1e131072", "22003"),
            ("1e-16384", "22003"),
            ("0e-16384", "22003"),
            ("1e99999999999", "22003"),
        ] {
            assert!(!is_normal(text), "{text}");
            assert_eq!(canonical(text).map_err(|(state, _)| state).err(), Some(state), "{text}");
        }
        assert!(canonical("1e131071").is_ok() && canonical("1e-16383").is_ok());
    }
}

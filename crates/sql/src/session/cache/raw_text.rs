//! The text of a statement with its values removed, without parsing: two texts that differ only in numbers and strings
//! have the same key, and are parsed and planned once.

/// A text without its values.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::session) struct RawText {
    /// The text with a mark in the place of each value.
    pub(in crate::session) key: String,
    pub(in crate::session) values: Vec<RawValue>,
}

/// A value in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::session) struct RawValue {
    pub(in crate::session) text: String,
    pub(in crate::session) is_number: bool,
    /// Line and column, in characters from 1, as the parser counts them.
    pub(in crate::session) place: (u64, u64),
}

/// The marks for a number and for a string. Texts that contain them are left to the parser.
const NUMBER: char = '\u{1}';
const STRING: char = '\u{2}';

/// Longer texts are not worth caching.
const BYTES_MAX: usize = 4096;

impl RawText {
    /// The text without its values; `None` if it needs the parser: for comments, quoted names, parameters, strings with
    /// a prefix, numbers with an exponent.
    pub(in crate::session) fn parse(sql: &str) -> Option<Self> {
        if sql.len() > BYTES_MAX {
            return None;
        }
        let mut scan = RawScan { rest: sql, place: (1, 1), key: String::new(), values: Vec::new() };
        while let Some(next) = scan.rest.chars().next() {
            match next {
                'a'..='z' | 'A'..='Z' | '_' => scan.word()?,
                '0'..='9' => scan.number()?,
                '\'' => scan.string()?,
                '-' if scan.rest.starts_with("--") => return None,
                '/' if scan.rest.starts_with("/*") => return None,
                ' ' | '\t' | '\r' | '\n' | '(' | ')' | ',' | '=' | '<' | '>' | '!' | '+' | '-'
                | '*' | '/' | '%' | '.' | ';' => scan.copy(next.len_utf8()),
                _ => return None,
            }
        }
        let RawScan { key, values, .. } = scan;
        Some(Self { key, values })
    }
}

struct RawScan<'a> {
    rest: &'a str,
    place: (u64, u64),
    key: String,
    values: Vec<RawValue>,
}

impl<'a> RawScan<'a> {
    fn copy(&mut self, bytes: usize) {
        let taken = self.take(bytes);
        self.key.push_str(taken);
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        for letter in taken.chars() {
            self.place = match letter {
                '\n' => (self.place.0 + 1, 1),
                _ => (self.place.0, self.place.1 + 1),
            };
        }
        self.rest = rest;
        taken
    }

    /// A name or a keyword; a string directly after it would be of another kind.
    fn word(&mut self) -> Option<()> {
        let end = self.length(|it| it.is_ascii_alphanumeric() || it == '_');
        self.copy(end);
        self.ends_here(&['\''])
    }

    fn number(&mut self) -> Option<()> {
        if self.key.ends_with('.') {
            return None;
        }
        let mut end = self.length(|it| it.is_ascii_digit());
        if self.rest[end..].starts_with('.') {
            let behind = &self.rest[end + 1..];
            end += 1 + behind.find(|it: char| !it.is_ascii_digit()).unwrap_or(behind.len());
        }
        self.value(end, true);
        self.ends_here(&['\'', '.'])
    }

    fn string(&mut self) -> Option<()> {
        let end = self.rest[1..].find('\'')? + 2;
        if self.rest[..end].contains([NUMBER, STRING, '\\']) {
            return None;
        }
        self.value(end, false);
        // Two quotes are one, and a string directly after a string is part of it.
        if self.rest.trim_start().starts_with('\'') {
            return None;
        }
        self.ends_here(&[])
    }

    fn value(&mut self, bytes: usize, is_number: bool) {
        let place = self.place;
        let taken = self.take(bytes);
        let text = if is_number { taken } else { &taken[1..taken.len() - 1] };
        self.values.push(RawValue { text: text.to_owned(), is_number, place });
        self.key.push(if is_number { NUMBER } else { STRING });
    }

    /// Checks that the token ends here.
    fn ends_here(&self, also: &[char]) -> Option<()> {
        let goes_on = |it: char| it.is_alphanumeric() || it == '_' || also.contains(&it);
        (!self.rest.starts_with(goes_on)).then_some(())
    }

    fn length(&self, belongs: impl Fn(char) -> bool) -> usize {
        self.rest.find(|it| !belongs(it)).unwrap_or(self.rest.len())
    }
}

#[cfg(test)]
mod tests {
    use super::RawText;

    fn key(sql: &str) -> Option<String> {
        Some(RawText::parse(sql)?.key.replace('\u{1}', "#").replace('\u{2}', "$"))
    }

    #[test]
    fn values_are_cut_out_and_names_are_not() {
        let sql = "UPDATE t1 SET a2 = a2 + -7.5\n WHERE k = 'x;y'";
        assert_eq!(key(sql).as_deref(), Some("UPDATE t1 SET a2 = a2 + -#\n WHERE k = $"));
        let values = RawText::parse(sql).unwrap().values;
        let values: Vec<_> = values.iter().map(|it| (it.text.as_str(), it.place)).collect();
        assert_eq!(values, [("7.5", (1, 26)), ("x;y", (2, 12))]);
        assert_eq!(key("SELECT 'größe', 1").as_deref(), Some("SELECT $, #"));
        assert_eq!(RawText::parse("SELECT 'größe', 1").unwrap().values[1].place, (1, 17));
    }

    #[test]
    fn complex_tokens_are_left_to_the_parser() {
        for sql in [
            "SELECT 1 -- 2",
            "SELECT /* 1 */ 2",
            "SELECT \"a 1\"",
            "SELECT $1",
            "SELECT E'a'",
            "SELECT 1e3",
            "SELECT 0x1F",
            "SELECT .5",
            "SELECT t.5",
            "SELECT 'it''s'",
            "SELECT 'a' 'b'",
            "SELECT 'a'\n'b'",
            "SELECT 'a",
            "SELECT 1a",
            "SELECT 1.2.3",
            "SELECT '\u{1}'",
            "SELECT \u{1}",
            "SELECT x'00'",
            "SELECT größe",
            "SELECT ?",
            "SELECT a::INT",
            "SELECT [1]",
            "SELECT 'a\\' = ''",
        ] {
            assert_eq!(key(sql), None, "{sql}");
        }
    }
}

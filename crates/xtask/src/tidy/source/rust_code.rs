//! Rust sources with comments and literals separated from code, so that a rule about calls does not
//! fire on a sentence. Every text keeps its length and its lines: what does not count is blank.

use std::ops::Range;

/// Views of one source.
#[derive(Debug)]
pub(crate) struct RustCode {
    /// Code only: comments and the insides of literals are blank.
    pub(crate) bare: String,
    /// Code and literals: comments are blank.
    pub(crate) literal: String,
    /// Byte ranges of items under `#[cfg(test)]`.
    tests: Vec<Range<usize>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ByteKind {
    Code,
    Comment,
    Literal,
}

impl RustCode {
    pub(crate) fn parse(text: &str) -> Self {
        let kinds = Lexer { text: text.as_bytes(), at: 0 }.kinds();
        let bare = keep(text, &kinds, |kind| kind == ByteKind::Code);
        let literal = keep(text, &kinds, |kind| kind != ByteKind::Comment);
        let tests = test_items(&bare);
        Self { bare, literal, tests }
    }

    /// Whether the byte at `at` lies in an item under `#[cfg(test)]`.
    pub(crate) fn is_test(&self, at: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&at))
    }

    /// Places in the code where `pattern` stands and is not the tail of a longer name.
    pub(crate) fn find(&self, pattern: &str) -> Vec<usize> {
        find_words(&self.bare, pattern)
    }

    /// Line of a byte, from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        line_of(&self.bare, at)
    }
}

/// Line of a byte, from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count()
}

/// Places where `pattern` occurs and is neither the tail nor, when it ends in a letter, the head of
/// a longer name.
pub(crate) fn find_words(text: &str, pattern: &str) -> Vec<usize> {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let ends_in_name = pattern.ends_with(is_name);
    let starts_with_name = pattern.starts_with(is_name);
    text.match_indices(pattern)
        .map(|(at, _)| at)
        .filter(|at| !starts_with_name || !text[..*at].ends_with(is_name))
        .filter(|at| !ends_in_name || !text[at + pattern.len()..].starts_with(is_name))
        .collect()
}

/// The text with every byte whose kind does not count replaced by a blank.
fn keep(text: &str, kinds: &[ByteKind], counts: impl Fn(ByteKind) -> bool) -> String {
    let bytes = text.bytes().zip(kinds);
    let kept = bytes.map(|(byte, kind)| if byte == b'\n' || counts(*kind) { byte } else { b' ' });
    String::from_utf8_lossy(&kept.collect::<Vec<u8>>()).into_owned()
}

/// Ranges from each `#[cfg(test)]` to the end of the item it stands on.
fn test_items(bare: &str) -> Vec<Range<usize>> {
    let starts = bare.match_indices("#[cfg(test)]").map(|(at, _)| at);
    starts.map(|start| start..item_end(bare, start)).collect()
}

/// End of the item that starts at `start`: its closing brace, or its semicolon when that comes first.
fn item_end(bare: &str, start: usize) -> usize {
    let mut depth = 0usize;
    for (at, byte) in bare.bytes().enumerate().skip(start) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return at + 1,
            b'}' => depth -= 1,
            b';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    bare.len()
}

struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
}

impl Lexer<'_> {
    /// The kind of every byte. Quotes count as code, so that `"` around a blanked text stays visible.
    fn kinds(mut self) -> Vec<ByteKind> {
        let mut kinds = vec![ByteKind::Code; self.text.len()];
        while self.at < self.text.len() {
            let start = self.at;
            let (kind, range) = self.next();
            kinds[range].fill(kind);
            debug_assert!(self.at > start, "the lexer moves on");
        }
        kinds
    }

    /// Moves over the next byte of code, comment or literal; gives what to mark.
    fn next(&mut self) -> (ByteKind, Range<usize>) {
        let start = self.at;
        let rest = &self.text[start..];
        if rest.starts_with(b"//") {
            self.at += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
            return (ByteKind::Comment, start..self.at);
        }
        if rest.starts_with(b"/*") {
            self.at += block_comment_len(rest);
            return (ByteKind::Comment, start..self.at);
        }
        if let Some((open, close)) = self.raw_string() {
            return self.literal(open, close);
        }
        match rest[0] {
            b'"' => self.literal(1, 1 + quoted_len(&rest[1..], b'"')),
            b'\'' => match char_len(&rest[1..]) {
                Some(len) => self.literal(1, 1 + len),
                None => self.code(), // a lifetime
            },
            _ => self.code(),
        }
    }

    fn code(&mut self) -> (ByteKind, Range<usize>) {
        self.at += 1;
        (ByteKind::Code, self.at - 1..self.at)
    }

    /// A literal whose inside runs from `open` to `close`, counted from here; one or more closing
    /// bytes follow and are code.
    fn literal(&mut self, open: usize, close: usize) -> (ByteKind, Range<usize>) {
        let inside = self.at + open..(self.at + close).min(self.text.len());
        self.at = (inside.end + 1).min(self.text.len());
        (ByteKind::Literal, inside)
    }

    /// Inside of a raw string (`r"…"`, `br##"…"##`, `cr"…"`) that starts here.
    fn raw_string(&self) -> Option<(usize, usize)> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if self.at > 0 && is_name(self.text[self.at - 1]) {
            return None;
        }
        let rest = &self.text[self.at..];
        let prefix = [&b"r"[..], b"br", b"cr"].into_iter().find(|prefix| {
            rest.starts_with(prefix) && matches!(rest.get(prefix.len()), Some(b'#' | b'"'))
        })?;
        let hashes = rest[prefix.len()..].iter().take_while(|b| **b == b'#').count();
        let open = prefix.len() + hashes + 1;
        if rest.get(open - 1) != Some(&b'"') {
            return None; // a raw name such as r#type
        }
        let mut end = vec![b'"'];
        end.resize(1 + hashes, b'#');
        let len = rest[open..].windows(end.len()).position(|window| window == end);
        Some((open, open + len.unwrap_or(rest.len() - open)))
    }
}

/// Length of a block comment, which may hold others.
fn block_comment_len(text: &[u8]) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Length up to the closing quote that is not escaped.
fn quoted_len(text: &[u8], quote: u8) -> usize {
    let mut at = 0;
    while at < text.len() && text[at] != quote {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    at.min(text.len())
}

/// Length of a character literal's inside, or None if the quote starts a lifetime.
fn char_len(text: &[u8]) -> Option<usize> {
    if text.first() == Some(&b'\\') {
        return Some(quoted_len(text, b'\''));
    }
    let first = std::str::from_utf8(&text[..text.len().min(4)]);
    let letter_len = match first {
        Ok(letters) => letters.chars().next()?.len_utf8(),
        Err(error) if error.valid_up_to() > 0 => {
            std::str::from_utf8(&text[..error.valid_up_to()]).ok()?.chars().next()?.len_utf8()
        }
        Err(_) => return None,
    };
    (text.get(letter_len) == Some(&b'\'')).then_some(letter_len)
}

#[cfg(test)]
mod tests {
    use super::RustCode;

    #[test]
    fn comments_and_literals_are_blank_and_keep_their_lines() {
        let code = RustCode::parse("a(); // b()\n/* c() /* d() */ */ e(\"f() \\\" g()\");\n");
        assert_eq!(code.find("a("), [0]);
        for hidden in ["b(", "c(", "d(", "f(", "g("] {
            assert_eq!(code.find(hidden), [], "{hidden}");
        }
        assert_eq!(code.line(code.find("e(")[0]), 2);
        assert!(code.literal.contains("f()") && !code.literal.contains("b()"));
    }

    #[test]
    fn raw_strings_and_characters_end_where_rust_ends_them() {
        let code =
            RustCode::parse("x(r#\"y() \" y()\"#); z('\"'); fn w<'a>(b'\\'': u8) { v('é') }");
        assert_eq!(code.find("y("), []);
        assert_eq!(code.find("z(").len(), 1);
        assert_eq!(code.find("v(").len(), 1);
        assert_eq!(code.find("r#"), [2]);
    }

    #[test]
    fn a_name_inside_a_longer_name_is_not_found() {
        let code = RustCode::parse("eprintln!(); println!(); unsafe_op(); unsafe {}");
        assert_eq!(code.find("println!").len(), 1);
        assert_eq!(code.find("unsafe").len(), 1);
    }

    #[test]
    fn test_items_are_known_as_such() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { if x {} }\n}\n#[cfg(test)]\nmod t;\nfn c() {}";
        let code = RustCode::parse(text);
        let is_test = |name: &str| code.is_test(code.find(name)[0]);
        assert_eq!([is_test("a("), is_test("b("), is_test("c(")], [false, true, false]);
    }

    #[test]
    fn unfinished_sources_do_not_panic() {
        for text in ["\"", "'", "/*", "r#\"", "b'", "'\\", "\"\\", "r", "#[cfg(test)]"] {
            RustCode::parse(text);
        }
    }
}

//! Rewrites JSON values for their columns: a column of text gets the text of JSON, and of a string the string itself.
//! Everything else stays unchanged, so that numbers keep their digits.

use datafusion::arrow::datatypes::{DataType, Field, Fields};

use super::table::WHOLE;

/// Writes a value, which must be valid JSON, for the columns of a row.
pub(super) fn write_row(text: &[u8], columns: &Fields, out: &mut Vec<u8>) {
    let mut value = Rewriter { text, at: 0, out };
    match value.peek() {
        b'{' => value.object(columns),
        _ => value.copy(),
    }
    out.push(b'\n');
}

/// Writes a value for the one column that holds it whole.
pub(super) fn write_whole(text: &[u8], column: Option<&Field>, out: &mut Vec<u8>) {
    out.push(b'{');
    push_text(WHOLE, out);
    out.push(b':');
    let mut value = Rewriter { text, at: 0, out };
    match column {
        Some(column) => value.value(column.data_type()),
        None => value.out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b"}\n");
}

struct Rewriter<'a> {
    text: &'a [u8],
    at: usize,
    out: &'a mut Vec<u8>,
}

impl<'a> Rewriter<'a> {
    /// The next byte after white space; 0 at the end.
    fn peek(&mut self) -> u8 {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied().unwrap_or(0)
    }

    /// The next value as it is written.
    fn skip(&mut self) -> &'a [u8] {
        self.peek();
        let from = self.at;
        let mut depth = 0_usize;
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'"' => self.at = end_of_string(self.text, self.at),
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' | b':' | b'}' | b']' if depth == 0 => break,
                _ if byte.is_ascii_whitespace() && depth == 0 => break,
                _ => {
                    self.at += 1;
                    continue;
                }
            }
            if depth == 0 {
                break;
            }
        }
        self.text.get(from..self.at).unwrap_or_default()
    }

    fn copy(&mut self) {
        let value = self.skip();
        self.out.extend_from_slice(value);
    }

    fn value(&mut self, to: &DataType) {
        match (self.peek(), to) {
            (b'"' | b'n', _) => self.copy(),
            (_, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8) => {
                let text = compact(self.skip());
                push_text(&String::from_utf8_lossy(&text), self.out);
            }
            (b'[', DataType::List(of) | DataType::LargeList(of)) => self.array(of.data_type()),
            (b'{', DataType::Struct(fields)) => self.object(fields),
            _ => self.copy(),
        }
    }

    fn array(&mut self, of: &DataType) {
        self.at += 1;
        self.out.push(b'[');
        while !matches!(self.peek(), b']' | 0) {
            let before = self.at;
            self.value(of);
            if self.peek() == b',' {
                self.at += 1;
                self.out.push(b',');
            }
            if self.at == before {
                break;
            }
        }
        self.at += 1;
        self.out.push(b']');
    }

    /// The fields of an object.
    fn object(&mut self, fields: &Fields) {
        self.at += 1;
        self.out.push(b'{');
        let mut is_first = true;
        while !matches!(self.peek(), b'}' | 0) {
            let before = self.at;
            let key = self.skip();
            let name: Option<String> = serde_json::from_slice(key).ok();
            if self.peek() == b':' {
                self.at += 1;
            }
            let field = fields.iter().find(|field| Some(field.name()) == name.as_ref());
            match field {
                Some(field) => {
                    if !std::mem::take(&mut is_first) {
                        self.out.push(b',');
                    }
                    self.out.extend_from_slice(key);
                    self.out.push(b':');
                    self.value(field.data_type());
                }
                None => {
                    self.skip();
                }
            }
            if self.peek() == b',' {
                self.at += 1;
            }
            if self.at == before {
                break;
            }
        }
        self.at += 1;
        self.out.push(b'}');
    }
}

/// The position after the string that begins here.
fn end_of_string(text: &[u8], from: usize) -> usize {
    let mut at = from + 1;
    while let Some(byte) = text.get(at) {
        at += match byte {
            b'"' => return at + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    text.len()
}

/// A value without white space, its strings without unnecessary escapes.
fn compact(text: &[u8]) -> Vec<u8> {
    let (mut out, mut at) = (Vec::with_capacity(text.len()), 0);
    while let Some(&byte) = text.get(at) {
        if byte == b'"' {
            let end = end_of_string(text, at);
            match serde_json::from_slice::<String>(&text[at..end]) {
                Ok(string) => push_text(&string, &mut out),
                Err(_) => out.extend_from_slice(&text[at..end]),
            }
            at = end;
            continue;
        }
        if !byte.is_ascii_whitespace() {
            out.push(byte);
        }
        at += 1;
    }
    out
}

/// A text as a string of JSON.
fn push_text(text: &str, out: &mut Vec<u8>) {
    // Writing to a Vec cannot fail.
    let _ = serde_json::to_writer(out, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> String {
        let list = DataType::new_list(DataType::Utf8, true);
        let inner = DataType::Struct(Fields::from(vec![Field::new("t", DataType::Utf8, true)]));
        let columns = Fields::from(vec![
            Field::new("d", DataType::Decimal128(38, 10), true),
            Field::new("t", DataType::Utf8, true),
            Field::new("l", list, true),
            Field::new("s", inner, true),
        ]);
        let mut out = Vec::new();
        write_row(text.as_bytes(), &columns, &mut out);
        String::from_utf8(out).expect("it is text")
    }

    #[test]
    fn texts_are_those_of_json_and_numbers_keep_their_digits() {
        for (text, wanted) in [
            (
                r#"{ "d" : 1234567890123456789.0123456789 , "t": 1.50 }"#,
                r#"{"d":1234567890123456789.0123456789,"t":"1.50"}"#,
            ),
            (r#"{"t":{"a": [1, "x y\u0041\""] }}"#, r#"{"t":"{\"a\":[1,\"x yA\\\"\"]}"}"#),
            (
                r#"{"t":"s\n","l":[1,null, "a",[true]]}"#,
                r#"{"t":"s\n","l":["1",null,"a","[true]"]}"#,
            ),
            (r#"{"x":{"t":[1]},"s":{"u":[],"t":false},"l":[]}"#, r#"{"s":{"t":"false"},"l":[]}"#),
            (r#"{"\u0074":null,"s":7}"#, r#"{"\u0074":null,"s":7}"#),
            ("[1, 2]", "[1, 2]"),
            ("{}", "{}"),
        ] {
            assert_eq!(row(text), format!("{wanted}\n"), "{text}");
        }
    }

    #[test]
    fn a_whole_value_is_one_column() {
        let column = Field::new(WHOLE, DataType::Utf8, true);
        let mut out = Vec::new();
        write_whole(br#" [1, "a"] "#, Some(&column), &mut out);
        assert_eq!(out, format!("{{\"{WHOLE}\":\"[1,\\\"a\\\"]\"}}\n").into_bytes());
    }

    #[test]
    fn any_bytes_are_accepted() {
        for text in ["", "{", "[", "\"", "\"\\", "{\"t\"", "{\"t\":", "{\"t\":}", "[,]", "}", ":"] {
            let _ = row(text);
        }
        for text in
            ["{]", "{\"l\":[:]}", "{\"l\":[[", "{\"s\":{", "{\"s\":{\"t\":[", "{,", "{\"l\":[,"]
        {
            let _ = row(text);
        }
    }
}

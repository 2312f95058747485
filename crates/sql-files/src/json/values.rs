//! Reads JSON values one after the other, in an array, in lines or over several lines, with the lines
//! they begin in.

use std::io::{self, BufRead};

/// Cuts a file into its top-level values without parsing them.
pub(super) struct ValueReader<R> {
    input: R,
    line: u64,
    max: usize,
    /// Whether the values are in an array.
    in_array: bool,
    begun: bool,
    ended: bool,
}

/// Why a file cannot be cut.
#[derive(Debug)]
pub(super) enum ValueError {
    Io(io::Error),
    /// The line, and the fault there.
    Wrong(u64, String),
}

impl From<io::Error> for ValueError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl<R: BufRead> ValueReader<R> {
    /// The values of a file; with `unwrap`, the elements of a top-level array.
    pub(super) fn new(mut input: R, unwrap: bool, max: usize) -> io::Result<Self> {
        if input.fill_buf()?.starts_with(b"\xef\xbb\xbf") {
            input.consume(3);
        }
        Ok(Self { input, line: 1, max, in_array: unwrap, begun: false, ended: false })
    }

    /// Whether the top-level array was closed.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// The next byte after white space.
    fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let blanks = chunk.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let lines = chunk[..blanks].iter().filter(|byte| **byte == b'\n').count();
            let found = chunk.get(blanks).copied();
            self.line += lines as u64;
            self.input.consume(blanks);
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    /// Reads the text of the next value. Returns the line it begins in, or `None` at the end.
    pub(super) fn read(&mut self, text: &mut Vec<u8>) -> Result<Option<u64>, ValueError> {
        text.clear();
        if self.ended {
            return Ok(None);
        }
        if !std::mem::replace(&mut self.begun, true) && self.in_array {
            match self.peek()? {
                Some(b'[') => self.input.consume(1),
                _ => self.in_array = false,
            }
        }
        let mut next = self.peek()?;
        if next == Some(b',') {
            self.input.consume(1);
            next = self.peek()?;
        }
        match next {
            Some(b']') if self.in_array => {
                self.input.consume(1);
                self.ended = true;
                match self.peek()? {
                    None => Ok(None),
                    Some(_) => self.wrong(
                        "something follows the end of the array; read_json with format = \
                         'newline_delimited' reads several values",
                    ),
                }
            }
            None if self.in_array => self.wrong("the file is truncated: its array is not closed"),
            None => Ok(None),
            Some(_) => self.value(text).map(Some),
        }
    }

    fn wrong<T>(&self, what: &str) -> Result<T, ValueError> {
        Err(ValueError::Wrong(self.line, what.to_owned()))
    }

    fn value(&mut self, text: &mut Vec<u8>) -> Result<u64, ValueError> {
        let begun = self.line;
        let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                return match depth > 0 || in_string {
                    true => Err(ValueError::Wrong(
                        begun,
                        "the file is truncated: the value that begins here is not closed"
                            .to_owned(),
                    )),
                    false => Ok(begun),
                };
            }
            let (mut used, mut ended) = (0, false);
            for &byte in chunk {
                if in_string {
                    in_string = escaped || byte != b'"';
                    escaped = !escaped && byte == b'\\';
                    ended = !in_string && depth == 0;
                    used += 1;
                } else {
                    match byte {
                        b'"' => in_string = true,
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' if depth > 0 => depth -= 1,
                        // A scalar ends before the separator.
                        b',' | b']' | b'}' if depth == 0 => break,
                        _ if byte.is_ascii_whitespace() && depth == 0 => break,
                        _ => {}
                    }
                    used += 1;
                    ended = depth == 0 && matches!(byte, b'}' | b']');
                }
                self.line += u64::from(byte == b'\n');
                if ended {
                    break;
                }
            }
            text.extend_from_slice(&chunk[..used]);
            let is_whole = used < chunk.len() || ended;
            self.input.consume(used);
            if is_whole && text.is_empty() {
                return self.wrong("expected a value");
            }
            if is_whole {
                return Ok(begun);
            }
            if text.len() > self.max {
                return Err(ValueError::Wrong(
                    begun,
                    format!(
                        "a value is longer than {} bytes, the limit that maximum_object_size sets",
                        self.max
                    ),
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn values(text: &str) -> Result<Vec<(u64, String)>, ValueError> {
        let input = BufReader::with_capacity(2, text.as_bytes());
        let mut reader = ValueReader::new(input, true, 100)?;
        let (mut bytes, mut all) = (Vec::new(), Vec::new());
        while let Some(line) = reader.read(&mut bytes)? {
            all.push((line, String::from_utf8_lossy(&bytes).into_owned()));
        }
        Ok(all)
    }

    fn told(text: &str) -> String {
        match values(text).expect_err("an invalid value") {
            ValueError::Wrong(line, what) => format!("{line}: {what}"),
            ValueError::Io(error) => error.to_string(),
        }
    }

    #[test]
    fn values_are_found_in_arrays_lines_and_over_lines() {
        let value = |line, text: &str| (line, text.to_owned());
        let two = [value(1, "{\"a\":1}"), value(2, "{\"a\":\"}]\\\"\"}")];
        assert_eq!(values("{\"a\":1}\n{\"a\":\"}]\\\"\"}\n").expect("lines"), two);
        assert_eq!(values("[{\"a\":1},\n{\"a\":\"}]\\\"\"}]").expect("an array"), two);
        assert_eq!(values("{\"a\":\n[1]}\n\n{}").expect("pretty").len(), 2);
        assert_eq!(values("1 \"x\"\nnull").expect("scalars").len(), 3);
        assert_eq!(values("  ").expect("nothing"), []);
        assert_eq!(values("[]").expect("nothing"), []);
    }

    #[test]
    fn errors_name_their_line() {
        assert!(told("[{}\n").contains("2: the file is truncated: its array is not closed"));
        assert!(told("{}\n{\"a\": 1").contains("2: the file is truncated"));
        assert!(told("[{}] x").contains("1: something follows the end of the array"));
        assert!(told("{}\n}").contains("2: expected a value"));
        assert!(told(&format!("\"{}\"", "x".repeat(200))).contains("longer than 100 bytes"));
    }
}

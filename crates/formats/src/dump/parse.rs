//! Reads a dump as a [`Root`] in memory.

use std::iter::Peekable;
use std::sync::Arc;

use atoll_sys::{FILE_BYTES_MAX, MemoryTree, Root, TreeError};

use super::{FIRST_LINE, LAST_LINE};
use crate::FormatError;
use atoll_topology::{CpuId, CpuSet};

const STATEMENT: &str = "a file, then '= line', ':', 'hex bytes' or 'dir'";
const NAME: &str =
    "an absolute path without '..', at most one set of numbers in braces such as {0-3}";

/// The machine of a dump; `file` names the dump in messages.
pub fn open(text: &str, file: &str) -> Result<Root, FormatError> {
    let mut parser =
        Parser { file, lines: text.lines().enumerate().peekable(), tree: MemoryTree::default() };
    parser.first_line()?;
    parser.statements()?;
    Ok(Root::of_tree(file, parser.tree))
}

struct Parser<'a, I: Iterator<Item = (usize, &'a str)>> {
    file: &'a str,
    lines: Peekable<I>,
    tree: MemoryTree,
}

impl<'a, I: Iterator<Item = (usize, &'a str)>> Parser<'a, I> {
    fn first_line(&mut self) -> Result<(), FormatError> {
        match self.lines.next() {
            Some((_, FIRST_LINE)) => Ok(()),
            other => {
                Err(self.fail(0, other.map_or("", |(_, line)| line), &format!("'{FIRST_LINE}'")))
            }
        }
    }

    fn statements(&mut self) -> Result<(), FormatError> {
        let mut last = 0;
        while let Some((index, line)) = self.lines.next() {
            last = index;
            match line.trim_end() {
                LAST_LINE => return Ok(()),
                "" => {}
                comment if comment.starts_with('#') => {}
                _ => self.statement(index, line)?,
            }
        }
        let expected = format!("'{LAST_LINE}' as the last line; the file is cut short");
        Err(self.fail(last + 1, "nothing more", &expected))
    }

    fn statement(&mut self, index: usize, line: &str) -> Result<(), FormatError> {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (kind, value) = rest.split_once(' ').unwrap_or((rest, ""));
        let contents = match kind {
            "=" => Some(format!("{value}\n").into_bytes()),
            ":" if value.is_empty() => Some(self.block()),
            "hex" => Some(
                hex(value).ok_or_else(|| self.fail(index, value, "pairs of hexadecimal digits"))?,
            ),
            "dir" if value.is_empty() => None,
            _ => return Err(self.fail(index, line, STATEMENT)),
        };
        if contents.as_ref().is_some_and(|bytes| bytes.len() as u64 > FILE_BYTES_MAX) {
            return Err(self.fail(
                index,
                "a larger file",
                &format!("at most {FILE_BYTES_MAX} bytes in a file"),
            ));
        }
        self.add(index, name, contents.map(Arc::from))
    }

    /// The lines of a file, up to the first without `|`.
    fn block(&mut self) -> Vec<u8> {
        let mut text = String::new();
        while let Some((_, line)) = self.lines.next_if(|(_, line)| line.starts_with('|')) {
            text.push_str(line.strip_prefix("| ").unwrap_or(&line[1..]));
            text.push('\n');
        }
        text.into_bytes()
    }

    fn add(
        &mut self,
        index: usize,
        name: &str,
        contents: Option<Arc<[u8]>>,
    ) -> Result<(), FormatError> {
        let Some((before, braces)) = name.split_once('{') else {
            return self.add_one(index, unescaped(name), contents);
        };
        let Some((numbers, behind)) = braces.split_once('}') else {
            return Err(self.fail(index, name, NAME));
        };
        let numbers =
            CpuSet::parse(numbers).map_err(|error| self.fail(index, &error.to_string(), NAME))?;
        for CpuId(number) in numbers.iter() {
            let name = unescaped(&format!("{before}{number}{behind}"));
            self.add_one(index, name, contents.clone())?;
        }
        Ok(())
    }

    fn add_one(
        &mut self,
        index: usize,
        name: Option<String>,
        contents: Option<Arc<[u8]>>,
    ) -> Result<(), FormatError> {
        let Some(name) = name else {
            return Err(self.fail(index, "a name with a wrong '\\' or brace", NAME));
        };
        let added = match contents {
            Some(contents) => self.tree.add_file(&name, contents),
            None => self.tree.add_directory(&name),
        };
        added.map_err(|error| match error {
            TreeError::Name => self.fail(index, &name, NAME),
            TreeError::Twice => self.fail(index, &name, "each file once"),
            other => self.fail(index, &other.to_string(), "a machine of fewer files"),
        })
    }

    fn fail(&self, index: usize, found: &str, expected: &str) -> FormatError {
        FormatError {
            file: self.file.to_owned(),
            line: Some(index + 1),
            found: found.chars().take(80).collect(),
            expected: expected.to_owned(),
        }
    }
}

/// Bytes from pairs of digits, which spaces may separate.
fn hex(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    for word in text.split_ascii_whitespace() {
        let (pairs, []) = word.as_bytes().as_chunks::<2>() else { return None };
        for [high, low] in pairs {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            bytes.push(u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?);
        }
    }
    Some(bytes)
}

/// Unescapes a name. Returns None if an escape is invalid or a brace is left over.
fn unescaped(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match byte {
            b'{' | b'}' => return None,
            b'\\' => {
                let (digits, behind) = rest.split_at_checked(3)?;
                bytes.push(u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok()?);
                rest = behind;
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

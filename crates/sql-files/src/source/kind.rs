//! Detects the kind of a file by the ending of its name, else by its first bytes.

use std::io::Read;

use datafusion::common::{Result, exec_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;

use crate::source::found::SourceFile;
use atoll_sql_parse::syntax::{FileKind, kind_of_name};

/// Bytes of the content that are looked at.
const HEAD: usize = 4096;

/// Detects the compression and the kind of a file; `expected` is the kind that the statement assumes.
///
/// # Errors
/// If it is empty, cannot be read, or is of another kind.
pub(crate) fn recognise(file: &mut SourceFile, expected: Option<FileKind>) -> Result<FileKind> {
    let raw = head(file, &mut file.open()?)?;
    file.compression = compression_of(&raw);
    let head = match file.compression.is_compressed() {
        true => head(file, &mut file.open_content()?)?,
        false => raw,
    };
    if head.is_empty() {
        return exec_err!("'{}' is empty", file.name());
    }
    let name = file.name();
    let found = match kind_of_content(&head) {
        Content::Kind(kind) => kind,
        Content::Text => match expected.or(kind_of_name(&name)) {
            Some(kind @ (FileKind::Csv | FileKind::Json)) => kind,
            _ => kind_of_text(&head),
        },
        Content::Other(what) => {
            return exec_err!("'{name}' is {what}");
        }
    };
    match expected {
        Some(expected) if expected != found => exec_err!(
            "'{name}' is {}; read it with {}",
            match found {
                FileKind::Parquet => "a Parquet file",
                FileKind::Arrow => "an Arrow file",
                FileKind::Json | FileKind::Csv => "text, unlike its name or the function",
            },
            found.function()
        ),
        _ => Ok(found),
    }
}

fn head(file: &SourceFile, content: &mut dyn Read) -> Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    let read = content.take(HEAD as u64).read_to_end(&mut head);
    match read {
        // The beginning shows the kind; a truncated file is reported when all of it is read.
        Err(_) if !head.is_empty() => Ok(head),
        Err(error) => Err(file.failed(&error)),
        Ok(_) => Ok(head),
    }
}

fn compression_of(head: &[u8]) -> FileCompressionType {
    match head {
        [0x1f, 0x8b, ..] => FileCompressionType::GZIP,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => FileCompressionType::ZSTD,
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, ..] => FileCompressionType::BZIP2,
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => FileCompressionType::XZ,
        _ => FileCompressionType::UNCOMPRESSED,
    }
}

enum Content {
    Kind(FileKind),
    Text,
    Other(&'static str),
}

fn kind_of_content(head: &[u8]) -> Content {
    const UTF_16: &str = "text in UTF-16 instead of UTF-8; convert it, for example with \
                          iconv -f UTF-16 -t UTF-8";
    match head {
        [b'P', b'A', b'R', b'1', ..] => Content::Kind(FileKind::Parquet),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Content::Kind(FileKind::Arrow),
        // An Arrow stream begins with a continuation mark.
        [0xff, 0xff, 0xff, 0xff, ..] => Content::Kind(FileKind::Arrow),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Content::Other(UTF_16),
        [b'P', b'K', 3, 4, ..] => {
            Content::Other("a zip archive or an Excel workbook; unpack it, or save it as CSV")
        }
        _ if head.starts_with(b"SQLite format 3") => {
            Content::Other("a database of SQLite; export its tables as CSV")
        }
        _ if head.iter().skip(1).step_by(2).take(200).filter(|byte| **byte == 0).count() > 20
            || head.iter().step_by(2).take(200).filter(|byte| **byte == 0).count() > 20
                && head.is_ascii() =>
        {
            Content::Other(UTF_16)
        }
        _ if head.iter().filter(|byte| **byte == 0).count() > 1 => {
            Content::Other("neither Parquet, Arrow nor text")
        }
        _ => Content::Text,
    }
}

fn kind_of_text(head: &[u8]) -> FileKind {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let rest = text.trim_ascii_start();
    match rest {
        [b'{', rest @ ..] if matches!(rest.trim_ascii_start(), [b'"' | b'}', ..]) => FileKind::Json,
        [b'[', rest @ ..] if matches!(rest.trim_ascii_start(), [b'{' | b']', ..]) => FileKind::Json,
        _ => FileKind::Csv,
    }
}

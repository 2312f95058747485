//! The functions over files, by name.

use super::file_kind::FileKind;

/// The function with which COPY … FROM reads a file.
pub const COPY_FROM: &str = "copy_from";

/// A function over files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FileFunction {
    /// Reads the rows of files.
    Read(FileKind),
    /// Reads the file of COPY … FROM.
    Copy,
    /// Lists files, or their contents other than rows.
    Listing(Listing),
}

impl FileFunction {
    /// The function of a name in any case.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "read_csv" | "read_csv_auto" => FileFunction::Read(FileKind::Csv),
            "read_parquet" | "parquet_scan" => FileFunction::Read(FileKind::Parquet),
            "read_json" | "read_json_auto" | "read_ndjson" | "read_ndjson_auto" => {
                FileFunction::Read(FileKind::Json)
            }
            COPY_FROM => FileFunction::Copy,
            "read_arrow" | "read_feather" | "read_ipc" => FileFunction::Read(FileKind::Arrow),
            name => FileFunction::Listing(Listing::named(name)?),
        })
    }
}

/// Whether a function reads or lists files.
pub fn is_file_function(name: &str) -> bool {
    FileFunction::named(name).is_some()
}

/// The output of a function that lists files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Listing {
    /// Names of files.
    Glob,
    /// Whole files as texts.
    Text,
    /// Whole files as bytes.
    Blob,
    /// How a CSV file is written.
    SniffedCsv,
    /// Columns of Parquet files.
    ParquetSchema,
    /// Column chunks of Parquet files.
    ParquetMetadata,
    /// Footers of Parquet files.
    ParquetFileMetadata,
}

impl Listing {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "glob" => Listing::Glob,
            "read_text" => Listing::Text,
            "read_blob" => Listing::Blob,
            "sniff_csv" => Listing::SniffedCsv,
            "parquet_schema" => Listing::ParquetSchema,
            "parquet_metadata" => Listing::ParquetMetadata,
            "parquet_file_metadata" => Listing::ParquetFileMetadata,
            _ => return None,
        })
    }
}

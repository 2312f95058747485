//! The kind of a file by its name or by the name of a format.

use datafusion::datasource::file_format::file_compression_type::FileCompressionType;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// CSV, with any delimiter.
    Csv,
    /// JSON, one object a line or an array of them.
    Json,
    /// Parquet.
    Parquet,
    /// Arrow's IPC format, of files and of streams.
    Arrow,
}

impl FileKind {
    /// The function that reads such files.
    pub fn function(self) -> &'static str {
        match self {
            Self::Csv => "read_csv",
            Self::Json => "read_json",
            Self::Parquet => "read_parquet",
            Self::Arrow => "FROM 'file.arrow'",
        }
    }

    /// The kind of a format's name or of an ending.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "csv" | "tsv" | "tab" | "psv" => Self::Csv,
            "json" | "jsonl" | "ndjson" | "geojson" => Self::Json,
            "parquet" | "pq" | "parq" => Self::Parquet,
            "arrow" | "arrows" | "ipc" | "feather" => Self::Arrow,
            _ => return None,
        })
    }
}

/// The compression of a name: that of COPY's option, or of an ending.
pub fn compression_named(name: &str) -> Option<FileCompressionType> {
    Some(match name.to_ascii_lowercase().as_str() {
        "gz" | "gzip" => FileCompressionType::GZIP,
        "zst" | "zstd" => FileCompressionType::ZSTD,
        "bz2" | "bzip2" => FileCompressionType::BZIP2,
        "xz" => FileCompressionType::XZ,
        "none" | "uncompressed" => FileCompressionType::UNCOMPRESSED,
        _ => return None,
    })
}

/// The kind that the name implies.
pub fn kind_of_name(name: &str) -> Option<FileKind> {
    let file = name.rsplit('/').next().unwrap_or(name);
    let file = match file.rsplit_once('.') {
        Some((before, ending)) if compression_named(ending).is_some() => before,
        _ => file,
    };
    FileKind::named(file.rsplit_once('.')?.1)
}

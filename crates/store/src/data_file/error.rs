//! Why a file of a data directory cannot be used.

use atoll_placement::PlacementError;

use super::DATA_FORMAT_VERSION;
use crate::codec::DecodeError;
use crate::files::{FileError, FileErrorKind};

/// Why a file of a data directory, other than the log, cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum DataFileError {
    /// A call of the file layer failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is damaged.
    #[error("{file} is damaged at {place}: {reason}; restore the file from a copy")]
    Damaged {
        /// The file, by its name in the data directory.
        file: String,
        /// Where in it.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// A file of another database.
    #[error("{file} is a file of another database; move it out of this data directory")]
    Foreign {
        /// The file.
        file: String,
    },
    /// A file written by a later version of Atoll.
    #[error(
        "{file} has version {version} of the data format; this version of Atoll reads up to version \
         {DATA_FORMAT_VERSION}: open the database with the version that wrote it, or a later one"
    )]
    NewerFormat {
        /// The file.
        file: String,
        /// Its version.
        version: u32,
    },
    /// No memory for the contents of the file, or none left within the limit.
    #[error("no memory for {file}: {reason}")]
    Memory {
        /// The file.
        file: String,
        /// Why not.
        reason: PlacementError,
    },
    /// Columns of a type that cannot be stored in a file.
    #[error("values of type {data_type} cannot be kept in a file")]
    Type {
        /// The type.
        data_type: String,
    },
}

impl DataFileError {
    /// The error for a damaged file.
    pub(crate) fn damaged(file: &str, place: &str, reason: &str) -> Self {
        Self::Damaged { file: file.to_owned(), place: place.to_owned(), reason: reason.to_owned() }
    }

    /// The error for a file whose payload cannot be read.
    pub(crate) fn of_decoding(file: &str, error: &DecodeError) -> Self {
        let reason = format!("{}: {}", error.what, error.reason);
        Self::damaged(file, &format!("byte {} of its header", error.at), &reason)
    }

    /// Whether the file is missing or damaged.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } | Self::Foreign { .. } => true,
            Self::File(error) => {
                matches!(error.kind, FileErrorKind::NotFound | FileErrorKind::Ended)
            }
            Self::NewerFormat { .. } | Self::Memory { .. } | Self::Type { .. } => false,
        }
    }

    /// Whether it works again when space is free.
    pub fn is_no_space(&self) -> bool {
        matches!(self, Self::File(error) if error.is_no_space())
    }
}

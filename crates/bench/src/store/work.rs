//! The measurements.

use clap::ValueEnum;
use serde::Serialize;

/// A kind of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum StoreWork {
    /// One row in its own transaction
    Insert,
    /// One row by its key in its own transaction
    Update,
    /// One row by its key, through a prepared statement
    Select,
    /// One row by a secondary index, through a prepared statement
    Lookup,
    /// CREATE TABLE AS, INSERT … SELECT and CREATE INDEX
    Bulk,
    /// A checkpoint after 1 % of the rows changed
    Checkpoint,
    /// Opening the directory
    Recovery,
}

impl StoreWork {
    /// Its name in results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Select => "select",
            Self::Lookup => "lookup",
            Self::Bulk => "bulk",
            Self::Checkpoint => "checkpoint",
            Self::Recovery => "recovery",
        }
    }

    /// The statement of one row; None if it is about whole tables.
    pub(super) fn statement(self) -> Option<&'static str> {
        match self {
            Self::Insert => Some("INSERT INTO item VALUES ($1, 0, 'item', $1)"),
            Self::Update => Some("UPDATE item SET value = value + 1 WHERE id = $1"),
            Self::Select => Some("SELECT value FROM item WHERE id = $1"),
            Self::Lookup => Some("SELECT value FROM item WHERE code = $1"),
            Self::Bulk | Self::Checkpoint | Self::Recovery => None,
        }
    }

    pub(super) fn is_write(self) -> bool {
        matches!(self, Self::Insert | Self::Update)
    }

    /// Whether it needs a secondary index.
    pub(super) fn is_lookup(self) -> bool {
        self == Self::Lookup
    }
}

/// Secondary indexes of the table of single rows, of which a database has the first few.
pub(super) const INDEXES: [&str; 2] =
    ["CREATE INDEX item_code ON item (code)", "CREATE INDEX item_value ON item (value, code)"];

/// A database with a table of single rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowStore {
    pub(super) durability: StoreDurability,
    /// How many of [`INDEXES`] it has.
    pub(super) indexes: u8,
}

/// What acknowledged commits survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum StoreDurability {
    /// A power cut
    Fsync,
    /// Only what is in a checkpoint
    Off,
}

impl StoreDurability {
    /// Its name in SQL, in results and for rivals.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::Off => "off",
        }
    }
}

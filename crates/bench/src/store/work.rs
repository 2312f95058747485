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
    /// CREATE TABLE AS and INSERT … SELECT
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
            Self::Bulk => "bulk",
            Self::Checkpoint => "checkpoint",
            Self::Recovery => "recovery",
        }
    }

    /// The statement of one row; None if it is about whole tables.
    pub(super) fn statement(self) -> Option<&'static str> {
        match self {
            Self::Insert => Some("INSERT INTO item VALUES ($1, 0, 'item')"),
            Self::Update => Some("UPDATE item SET value = value + 1 WHERE id = $1"),
            Self::Select => Some("SELECT value FROM item WHERE id = $1"),
            Self::Bulk | Self::Checkpoint | Self::Recovery => None,
        }
    }

    pub(super) fn is_write(self) -> bool {
        matches!(self, Self::Insert | Self::Update)
    }
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

//! Ids of objects of a database: each is given once.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// The id with this number.
            pub const fn new(number: u64) -> Self {
                Self(number)
            }

            /// Its number.
            pub const fn get(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// A table of a database. A rename does not change it.
    TableId
);
id!(
    /// A sequence of a database. A rename does not change it.
    SequenceId
);
id!(
    /// A row of a table for its lifetime: an UPDATE keeps it. Rows are read in the order of their ids.
    RowId
);
id!(
    /// Number of commits that a version of a database has seen.
    Epoch
);
id!(
    /// The file of a chunk: its rows never change, so neither does the file.
    ChunkFileId
);

/// Ids from here on belong to temporary tables and sequences of sessions, which no file and no log contains. They
/// fit into a signed number, as SQL has them.
const TEMPORARY: u64 = 1 << 62;

macro_rules! temporary {
    ($name:ident) => {
        impl $name {
            /// The temporary id with this number.
            pub(crate) const fn temporary(number: u64) -> Self {
                Self(TEMPORARY | number)
            }

            /// Whether it belongs to a session and ends with it.
            pub const fn is_temporary(self) -> bool {
                self.0 >= TEMPORARY
            }
        }
    };
}

temporary!(TableId);
temporary!(SequenceId);

impl RowId {
    /// The next id.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

//! Numbers that name things of a database for good: none is ever given twice.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// The one with this number.
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
    /// A table of a database, whatever its name is.
    TableId
);
id!(
    /// A sequence of a database, whatever its name is.
    SequenceId
);
id!(
    /// A row of a table, as long as it lives: an UPDATE keeps it. Rows are read in the order of their ids.
    RowId
);
id!(
    /// Number of commits that a version of a database has seen.
    Epoch
);
id!(
    /// The file that holds a chunk: its rows never change, so neither does the file.
    ChunkFileId
);

/// Numbers from here on are those of temporary tables and sequences: of sessions, which no file and no log names. They
/// fit into a signed number, as SQL has them.
const TEMPORARY: u64 = 1 << 62;

macro_rules! temporary {
    ($name:ident) => {
        impl $name {
            /// The temporary one of this number.
            pub(crate) const fn temporary(number: u64) -> Self {
                Self(TEMPORARY | number)
            }

            /// Whether it is a session's, and ends with it.
            pub const fn is_temporary(self) -> bool {
                self.0 >= TEMPORARY
            }
        }
    };
}

temporary!(TableId);
temporary!(SequenceId);

impl RowId {
    /// The id behind it.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

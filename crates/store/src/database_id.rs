//! The id of a data directory.

use std::fmt;

/// A database's id, drawn at random when it is created. Every file of the database contains it, so that
/// a file of another database is refused instead of read.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DatabaseId(pub [u8; 16]);

impl DatabaseId {
    /// A new id. Returns an error if the kernel returns no random numbers.
    pub fn random() -> std::io::Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseId({self})")
    }
}

//! The entries of a dump: paths and their contents.

/// An existing file or directory, and the position of its pattern's first number in its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DumpPath {
    pub(super) path: String,
    /// The offset of the number, and the number.
    pub(super) number: Option<(usize, u32)>,
}

/// What a path holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum DumpEntry {
    File(Vec<u8>),
    Directory,
    /// A file that could not be read, and why.
    Refused(&'static str),
}

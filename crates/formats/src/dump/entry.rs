//! What a dump is made of: places, and what is there.

/// A file or directory that is there, and where in its path the first number of its pattern stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DumpPath {
    pub(super) path: String,
    /// Where the number begins, and the number.
    pub(super) number: Option<(usize, u32)>,
}

/// What is at a place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum DumpEntry {
    File(Vec<u8>),
    Directory,
    /// A file that could not be read, and why.
    Refused(&'static str),
}

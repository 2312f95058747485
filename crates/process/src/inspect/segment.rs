//! An object in memory that several processes may map, as seen by one of them.

use super::bytes::NodeBytes;
use super::procfs::maps::{MappingKind, ProcessMapping, SegmentId};

/// An object. The kind is part of its key: the kernel numbers System V segments separately, on the
/// same device as other shared memory.
pub(super) type ObjectKey = (MappingKind, SegmentId);

/// Maximum number of mappings of one object by one process that are kept.
const VIEWS_MAX: usize = 1024;

/// A range of an object, at an address in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MappedRange {
    pub(super) start: u64,
    /// Its offset in the object, in bytes.
    pub(super) offset: u64,
    pub(super) length: u64,
}

impl MappedRange {
    pub(super) fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

/// A process's mappings of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Segment {
    /// Resident bytes.
    pub(super) bytes: NodeBytes,
    /// Its mappings.
    pub(super) views: Vec<MappedRange>,
    /// Whether these are all its mappings.
    pub(super) is_whole: bool,
    /// Page size in bytes, if it is not the base page.
    pub(super) page_size: u64,
}

impl Segment {
    pub(super) fn new(page_size: u64) -> Self {
        Self { bytes: NodeBytes::new(), views: Vec::new(), is_whole: true, page_size }
    }

    /// Adds a mapping. One that continues the last is merged with it.
    pub(super) fn view(&mut self, mapping: &ProcessMapping) {
        let ProcessMapping { start, offset, .. } = *mapping;
        let length = mapping.end - start;
        let count = self.views.len();
        match self.views.last_mut() {
            Some(last) if last.start + last.length == start && last.end() == offset => {
                last.length += length;
            }
            _ if count < VIEWS_MAX => self.views.push(MappedRange { start, offset, length }),
            _ => self.is_whole = false,
        }
    }
}

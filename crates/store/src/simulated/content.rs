//! The contents of a simulated file: as read, as on disk, and what may have reached the disk
//! between.

use std::collections::{BTreeMap, BTreeSet};

use atoll_sys::SplitMix64;

/// The unit that a disk writes completely or not at all.
const SECTOR: usize = 512;

/// How much of the unsynced data a power cut leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Survival {
    Nothing,
    Everything,
    /// Each sector in any of its versions.
    Any,
}

/// The bytes of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct SimulatedContent {
    seen: Vec<u8>,
    disk: Vec<u8>,
    /// Sectors that the next sync writes.
    dirty: BTreeSet<usize>,
    /// Sectors that may be on disk in another version than the last synced one: the versions.
    versions: BTreeMap<usize, Vec<[u8; SECTOR]>>,
    /// Lengths that the file may have on disk.
    lengths: Vec<usize>,
    is_length_dirty: bool,
}

impl Survival {
    pub(super) fn random(random: &mut SplitMix64) -> Self {
        match random.below(6) {
            0 => Self::Nothing,
            1 => Self::Everything,
            _ => Self::Any,
        }
    }
}

impl SimulatedContent {
    pub(super) fn bytes(&self) -> u64 {
        self.seen.len() as u64
    }

    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> Option<()> {
        let start = usize::try_from(offset).ok()?;
        buffer.copy_from_slice(self.seen.get(start..start.checked_add(buffer.len())?)?);
        Some(())
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let start = offset as usize;
        let end = start + bytes.len();
        if end > self.seen.len() {
            self.set_length(end);
        }
        self.seen[start..end].copy_from_slice(bytes);
        for sector in start / SECTOR..end.div_ceil(SECTOR) {
            self.touch(sector);
        }
    }

    pub(super) fn truncate(&mut self, bytes: u64) {
        let bytes = bytes as usize;
        let shorter = bytes < self.seen.len();
        self.set_length(bytes);
        if shorter && !bytes.is_multiple_of(SECTOR) {
            self.touch(bytes / SECTOR);
        }
    }

    pub(super) fn sync(&mut self) {
        if std::mem::take(&mut self.is_length_dirty) {
            self.disk.resize(self.seen.len(), 0);
            self.lengths.clear();
        }
        for sector in std::mem::take(&mut self.dirty) {
            let version = self.sector(sector);
            put(&mut self.disk, sector, &version);
            self.versions.remove(&sector);
        }
    }

    /// The effect of a failed sync: the kernel considers everything written.
    pub(super) fn forget_dirty(&mut self) {
        self.dirty.clear();
        self.is_length_dirty = false;
    }

    /// The file after a power cut.
    pub(super) fn crash(&self, survival: Survival, random: &mut SplitMix64) -> Self {
        let mut disk = self.disk.clone();
        match (survival, self.lengths.len()) {
            (_, 0) | (Survival::Nothing, _) => {}
            (Survival::Everything, count) => disk.resize(self.lengths[count - 1], 0),
            (Survival::Any, count) => {
                let chosen = random.below(count as u64 + 1) as usize;
                disk.resize(*self.lengths.get(chosen).unwrap_or(&disk.len()), 0);
            }
        }
        for (sector, versions) in &self.versions {
            let chosen = match survival {
                Survival::Nothing => None,
                Survival::Everything => versions.last(),
                Survival::Any => versions.get(random.below(versions.len() as u64 + 1) as usize),
            };
            if let Some(version) = chosen {
                put(&mut disk, *sector, version);
            }
        }
        Self { seen: disk.clone(), disk, ..Self::default() }
    }

    fn set_length(&mut self, bytes: usize) {
        self.seen.resize(bytes, 0);
        self.lengths.push(bytes);
        self.is_length_dirty = true;
    }

    fn touch(&mut self, sector: usize) {
        self.dirty.insert(sector);
        let version = self.sector(sector);
        self.versions.entry(sector).or_default().push(version);
    }

    /// A sector as read, with zeros after the file's end.
    fn sector(&self, sector: usize) -> [u8; SECTOR] {
        let mut version = [0; SECTOR];
        let start = (sector * SECTOR).min(self.seen.len());
        let end = (start + SECTOR).min(self.seen.len());
        version[..end - start].copy_from_slice(&self.seen[start..end]);
        version
    }
}

/// Copies a sector into a file, up to the end of the file.
fn put(bytes: &mut [u8], sector: usize, version: &[u8; SECTOR]) {
    let start = (sector * SECTOR).min(bytes.len());
    let end = (start + SECTOR).min(bytes.len());
    bytes[start..end].copy_from_slice(&version[..end - start]);
}

//! Nesting of regions.

/// Regions by number.
const REGIONS: usize = atoll_marker::REGIONS as usize;

/// Regions opened and closed so far.
pub(crate) struct Regions {
    /// How often each was entered but not left.
    inside: [u64; REGIONS],
    /// How often each went from closed to open.
    opened: [u64; REGIONS],
    /// Open regions, in the order in which they opened.
    open: Vec<u8>,
    /// All regions ever opened, in the order of their first opening.
    pub(crate) known: Vec<u8>,
}

impl Regions {
    pub(crate) fn new() -> Self {
        Self { inside: [0; REGIONS], opened: [0; REGIONS], open: vec![], known: vec![] }
    }

    pub(crate) fn open(&mut self, number: u8) {
        let Some(inside) = self.inside.get_mut(usize::from(number)) else { return };
        *inside += 1;
        if *inside > 1 {
            return;
        }
        self.open.push(number);
        self.opened[usize::from(number)] += 1;
        if !self.known.contains(&number) {
            self.known.push(number);
        }
    }

    /// Leaves a region; one that is not open stays closed.
    pub(crate) fn close(&mut self, number: u8) {
        let Some(inside) = self.inside.get_mut(usize::from(number)) else { return };
        if *inside == 1 {
            self.open.retain(|open| *open != number);
        }
        *inside = inside.saturating_sub(1);
    }

    /// The most recently opened of the open regions.
    pub(crate) fn current(&self) -> Option<u8> {
        self.open.last().copied()
    }

    /// Times a region went from closed to open.
    pub(crate) fn times(&self, number: u8) -> u64 {
        self.opened[usize::from(number)]
    }
}

//! Words whose equal values are adjacent: a group for each run.

use atoll_placement::{Arena, PlacementError};
use atoll_topology::NodeId;

use crate::kernel::groups::GroupIds;
use crate::kernel::placed_vec::PlacedVec;

/// Groups of words, one for each run, numbered as they come.
#[derive(Debug)]
pub(in crate::aggregate) struct Ordered {
    words: PlacedVec<u64>,
}

impl Ordered {
    pub(in crate::aggregate) fn new(arena: &Arena, home: Option<NodeId>) -> Self {
        Self { words: PlacedVec::new(arena, home) }
    }

    /// Removes all groups.
    pub(in crate::aggregate) fn restart(&mut self) {
        self.words.clear();
    }

    pub(in crate::aggregate) fn groups(&self) -> usize {
        self.words.len()
    }

    /// Finds the groups; a word that differs from the one before starts a group.
    pub(in crate::aggregate) fn find(
        &mut self,
        words: &[u64],
        ids: &mut GroupIds,
    ) -> Result<(), PlacementError> {
        let Some(first) = words.first() else {
            ids.number(0);
            return Ok(());
        };
        let before = self.words.len();
        // Every row may start a group; unused space is truncated afterwards.
        self.words.grow(before + words.len() + 1, 0)?;
        let groups = self.words.as_mut_slice();
        let mut last = if before == 0 { !*first } else { groups[before - 1] };
        let mut count = before;
        ids.count_up(words, |word| {
            groups[count] = word;
            count += usize::from(word != last);
            last = word;
            count as u32 - 1
        });
        self.words.truncate(count);
        Ok(())
    }

    /// Words of all groups.
    pub(in crate::aggregate) fn words(&self) -> &[u64] {
        self.words.as_slice()
    }
}

//! Finds rows of a block that have the same view, and so the same string: rows decoded from a chunk's dictionary, and
//! short strings. Each string is then hashed and looked up once for a block.

use crate::hash;

/// Remembered views, as a power of two.
const PLACES_BITS: u32 = 12;
/// Blocks to skip after one in which fewer than a quarter of the rows were repeats.
const BLOCKS_SKIPPED: u32 = 15;
/// Marks null: no string is that long.
const NULL: u128 = u128::MAX;

/// Which rows of a block repeat others.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    places: Vec<Place>,
    block: u32,
    skipped: u32,
    views: Vec<u128>,
    keys: Vec<u32>,
}

/// A view seen in a block, and the number of its key.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    view: u128,
    block: u32,
    key: u32,
}

impl Repeats {
    /// Looks for repeats among the rows of a block; returns false if it skipped the block.
    pub(super) fn find(&mut self, rows: &[u128], is_null: impl Fn(usize) -> bool) -> bool {
        if self.skipped > 0 {
            self.skipped -= 1;
            return false;
        }
        self.begin();
        let Self { places, block, views, keys, .. } = self;
        for (row, view) in rows.iter().enumerate() {
            let view = if is_null(row) { NULL } else { *view };
            let at = hash::then(view as u64, (view >> 64) as u64) >> (u64::BITS - PLACES_BITS);
            let place = &mut places[at as usize];
            if (place.view, place.block) != (view, *block) {
                *place = Place { view, block: *block, key: views.len() as u32 };
                views.push(view);
            }
            keys.push(place.key);
        }
        if views.len() * 4 > rows.len() * 3 {
            self.skipped = BLOCKS_SKIPPED;
        }
        true
    }

    /// Starts a block without seen views.
    fn begin(&mut self) {
        self.block = self.block.wrapping_add(1);
        if self.block == 0 || self.places.is_empty() {
            (self.places, self.block) = (vec![Place::default(); 1 << PLACES_BITS], 1);
        }
        self.views.clear();
        self.keys.clear();
    }

    /// The distinct views, and perhaps some duplicates.
    pub(super) fn views(&self) -> &[u128] {
        &self.views
    }

    /// Key number of each row.
    pub(super) fn keys(&self) -> &[u32] {
        &self.keys
    }
}

/// Whether a view marks null.
pub(super) fn is_null(view: u128) -> bool {
    view == NULL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_the_same_view_have_one_key_and_nulls_another() {
        let mut repeats = Repeats::default();
        for block in 0..3_u128 {
            let rows: Vec<u128> = (0..400).map(|row| (row * row % 7 + block) << 96 | 5).collect();
            assert!(repeats.find(&rows, |row| row % 10 == 0));
            assert_eq!(repeats.keys().len(), rows.len());
            for (row, (view, key)) in rows.iter().zip(repeats.keys()).enumerate() {
                let found = repeats.views()[*key as usize];
                assert_eq!(is_null(found), row % 10 == 0);
                assert!(is_null(found) || found == *view);
            }
            assert!(repeats.views().len() <= 8, "{} views", repeats.views().len());
        }
    }

    #[test]
    fn it_does_not_look_for_a_while_where_few_rows_repeat_others() {
        let mut repeats = Repeats::default();
        let rows: Vec<u128> = (0..4000).map(|row| row << 96 | 5).collect();
        assert!(repeats.find(&rows, |_| false));
        assert!((0..BLOCKS_SKIPPED).all(|_| !repeats.find(&rows, |_| false)));
        assert!(repeats.find(&rows, |_| false));
    }
}

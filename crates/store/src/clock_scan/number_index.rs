//! Queries filed under a test of a column of numbers.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::candidates::Candidates;
use super::filter::{OrderedSlots, Slot, SlotTable, rows_passing};
use super::query::{NumberTest, QueryNumber};
use super::times::ScanPart;
use super::values::{BlockColumn, BlockValues, with_numbers};
use crate::table::Zone;

/// Up to this many bytes of values, comparing with one test after another is faster than lookups: this many tests of
/// bytes, half as many of 16-bit numbers. A lookup takes as long as some 48 bytes in vector registers.
pub(super) const FEW_BYTES: usize = 48;

/// Queries by value and by interval of a column of numbers.
#[derive(Debug, Default)]
pub(super) struct NumberIndex {
    by_key: HashMap<i64, Vec<QueryNumber>>,
    /// By first and last key.
    intervals: BTreeMap<(i64, i64), Vec<QueryNumber>>,
    keys: Option<KeyFilter>,
    stretches: Option<Stretches>,
}

#[derive(Debug)]
struct KeyFilter {
    /// By the hash of keys.
    hashed: SlotTable,
    /// By the lowest bits of keys.
    low_bits: SlotTable,
    /// Smallest and largest key.
    ends: (i64, i64),
}

/// The keys cut at the ends of all intervals: within a stretch, the same queries want every key.
#[derive(Debug)]
struct Stretches {
    taken: SlotTable,
    slots: OrderedSlots,
    /// First key of each stretch, rising.
    starts: Vec<i64>,
    /// Queries of each stretch.
    queries: Vec<Vec<QueryNumber>>,
    ends: (i64, i64),
}

impl NumberIndex {
    /// Files a query. NOT IN cannot be filed.
    pub(super) fn file(&mut self, query: QueryNumber, test: &NumberTest) {
        match test {
            NumberTest::In(keys) => {
                for key in keys {
                    self.by_key.entry(*key).or_default().push(query);
                }
            }
            NumberTest::Between(low, high) if low > high => {}
            NumberTest::Between(low, high) => {
                self.intervals.entry((*low, *high)).or_default().push(query);
            }
            NumberTest::NotIn(_) => debug_assert!(false, "NOT IN is not filed"),
        }
    }

    /// Prepares it for lookups.
    pub(super) fn finish(&mut self) {
        let keys = || self.by_key.keys().copied();
        if let (Some(low), Some(high)) = (keys().min(), keys().max()) {
            let (mut hashed, mut low_bits) = (SlotTable::new(), SlotTable::new());
            for key in keys() {
                hashed.take(Slot::of_key(key));
                low_bits.take(Slot::of_number(key as u16));
            }
            self.keys = Some(KeyFilter { hashed, low_bits, ends: (low, high) });
        }
        self.stretches = Stretches::from_intervals(&self.intervals);
    }

    /// Whether queries may match rows of a block with this zone.
    pub(super) fn meets(&self, zone: Option<Zone>) -> bool {
        let keys = self.keys.as_ref().map(|keys| keys.ends);
        let stretches = self.stretches.as_ref().map(|stretches| stretches.ends);
        keys.into_iter().chain(stretches).any(|ends| meets(ends, zone))
    }

    /// Adds the rows of a block that queries match; `hits` is scratch space.
    pub(super) fn look_up(
        &self,
        column: &BlockColumn<'_>,
        zone: Option<Zone>,
        hits: &mut Vec<u32>,
        found: &mut Candidates,
    ) {
        let few = FEW_BYTES / column.value_bytes();
        if let Some(keys) = self.keys.as_ref().filter(|keys| meets(keys.ends, zone)) {
            if self.by_key.len() <= few {
                for (key, queries) in &self.by_key {
                    one_by_one((*key, *key), queries, column, zone, hits, found);
                }
            } else {
                self.by_slots(keys, column, hits, found);
            }
        }
        if let Some(stretches) = self.stretches.as_ref().filter(|all| meets(all.ends, zone)) {
            if self.intervals.len() <= few {
                for (ends, queries) in &self.intervals {
                    one_by_one(*ends, queries, column, zone, hits, found);
                }
            } else {
                stretches.look_up(column, hits, found);
            }
        }
    }

    fn by_slots(
        &self,
        keys: &KeyFilter,
        column: &BlockColumn<'_>,
        hits: &mut Vec<u32>,
        found: &mut Candidates,
    ) {
        hits.clear();
        match column.value_bytes() {
            1 | 2 => hits_of(&keys.low_bits, column, |key| Slot::of_number(key as u16), hits),
            _ => hits_of(&keys.hashed, column, Slot::of_key, hits),
        }
        found.clock.end(ScanPart::Numbers);
        for row in hits.iter() {
            if let Some(queries) = column.key(*row as usize).and_then(|k| self.by_key.get(&k)) {
                found.add(*row, queries);
            }
        }
        found.clock.end(ScanPart::Lookups);
    }
}

/// Adds the rows of a block whose keys are in an interval, for these queries.
fn one_by_one(
    (low, high): (i64, i64),
    queries: &[QueryNumber],
    column: &BlockColumn<'_>,
    zone: Option<Zone>,
    hits: &mut Vec<u32>,
    found: &mut Candidates,
) {
    if !meets((low, high), zone) {
        return;
    }
    hits.clear();
    rows_between(column, low, high, hits);
    if column.nulls.is_some() {
        hits.retain(|row| !column.is_null(*row as usize));
    }
    found.add_rows(hits, queries);
}

/// Adds the rows whose keys are in an interval, including NULLs.
fn rows_between(column: &BlockColumn<'_>, low: i64, high: i64, hits: &mut Vec<u32>) {
    /// In the type of the values, so that as many as possible are compared at once.
    macro_rules! narrow {
        ($values:expr, $number:ty, $unsigned:ty) => {{
            let (min, max) = (i64::from(<$number>::MIN), i64::from(<$number>::MAX));
            if low <= max && high >= min {
                let (low, high) = (low.max(min) as $number, high.min(max) as $number);
                if low == high {
                    rows_passing($values, |value| value == low, hits);
                } else {
                    // One comparison of unsigned numbers, which wrap below the lowest.
                    let width = high.wrapping_sub(low) as $unsigned;
                    let passes = |value: $number| value.wrapping_sub(low) as $unsigned <= width;
                    rows_passing($values, passes, hits);
                }
            }
        }};
    }
    match &column.values {
        BlockValues::I8(values) => narrow!(values, i8, u8),
        BlockValues::I16(values) => narrow!(values, i16, u16),
        BlockValues::I32(values) => narrow!(values, i32, u32),
        BlockValues::U8(values) => narrow!(values, u8, u8),
        BlockValues::U16(values) => narrow!(values, u16, u16),
        BlockValues::U32(values) => narrow!(values, u32, u32),
        BlockValues::Bool(bits) => {
            let between = |bit: bool| low <= i64::from(bit) && i64::from(bit) <= high;
            hits.extend((0..).zip(bits.iter()).filter(|(_, bit)| between(*bit)).map(|(at, _)| at));
        }
        values => with_numbers!(
            values,
            |values, key| rows_passing(
                values,
                |value| {
                    let key = key(value);
                    (low <= key) & (key <= high)
                },
                hits
            ),
            ()
        ),
    }
}

/// Whether keys of an interval may be in a block.
fn meets((low, high): (i64, i64), zone: Option<Zone>) -> bool {
    zone.is_none_or(|zone| low <= zone.max && zone.min <= high)
}

fn hits_of(
    taken: &SlotTable,
    column: &BlockColumn<'_>,
    slot: impl Fn(i64) -> Slot,
    hits: &mut Vec<u32>,
) {
    if let BlockValues::Bool(bits) = &column.values {
        let values: Vec<u8> = bits.iter().map(u8::from).collect();
        return taken.hits(&values, |value| slot(value.into()), hits);
    }
    with_numbers!(
        &column.values,
        |values, key| taken.hits(values, |value| slot(key(value)), hits),
        ()
    );
}

impl Stretches {
    fn from_intervals(intervals: &BTreeMap<(i64, i64), Vec<QueryNumber>>) -> Option<Self> {
        let lows = intervals.keys().map(|(low, _)| *low);
        // The first key after an interval; nothing is after the last key.
        let behind = intervals.keys().filter_map(|(_, high)| high.checked_add(1));
        let mut starts: Vec<i64> = lows.clone().chain(behind).collect();
        starts.sort_unstable();
        starts.dedup();
        let mut queries = vec![Vec::new(); starts.len()];
        for ((low, high), of) in intervals {
            let first = starts.partition_point(|start| start < low);
            let last = starts.partition_point(|start| start <= high);
            queries[first..last].iter_mut().for_each(|all| all.extend(of));
        }
        let ends = (lows.min()?, intervals.keys().map(|(_, high)| *high).max()?);
        // Open ends would squeeze all others into a slot or two.
        let bounds = || {
            let all = intervals.keys().flat_map(|(low, high)| [*low, *high]);
            all.filter(|end| *end != i64::MIN && *end != i64::MAX)
        };
        let slots = match (bounds().min(), bounds().max()) {
            (Some(low), Some(high)) => {
                OrderedSlots::between(low.saturating_sub(1), high.saturating_add(1))
            }
            _ => OrderedSlots::between(0, 0),
        };
        let mut taken = SlotTable::new();
        for (low, high) in intervals.keys() {
            taken.take_from_to(slots.slot(*low), slots.slot(*high));
        }
        Some(Self { taken, slots, starts, queries, ends })
    }

    fn look_up(&self, column: &BlockColumn<'_>, hits: &mut Vec<u32>, found: &mut Candidates) {
        hits.clear();
        hits_of(&self.taken, column, |key| self.slots.slot(key), hits);
        found.clock.end(ScanPart::Numbers);
        for row in hits.iter() {
            if let Some(key) = column.key(*row as usize) {
                found.add(*row, self.queries_of(key));
            }
        }
        found.clock.end(ScanPart::Lookups);
    }

    fn queries_of(&self, key: i64) -> &[QueryNumber] {
        match self.starts.partition_point(|start| *start <= key) {
            0 => &[],
            after => &self.queries[after - 1],
        }
    }
}

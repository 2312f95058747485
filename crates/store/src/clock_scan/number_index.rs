//! Queries filed under what they ask of a column of numbers.

use hashbrown::HashMap;

use super::batch::QueryNumber;
use super::filter::{OrderedSlots, Slot, SlotTable};
use super::query::NumberTest;
use super::values::{BlockColumn, BlockValues, with_numbers};
use crate::table::Zone;

/// Queries by value and by interval of a column of numbers.
#[derive(Debug, Default)]
pub(super) struct NumberIndex {
    by_key: HashMap<i64, Vec<QueryNumber>>,
    intervals: Vec<(i64, i64, QueryNumber)>,
    keys: Option<KeyFilter>,
    stretches: Option<Stretches>,
}

#[derive(Debug)]
struct KeyFilter {
    taken: SlotTable,
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
    /// Files a query. NOT IN has no place in it.
    pub(super) fn file(&mut self, query: QueryNumber, test: &NumberTest) {
        match test {
            NumberTest::In(keys) => {
                for key in keys {
                    self.by_key.entry(*key).or_default().push(query);
                }
            }
            NumberTest::Between(low, high) if low > high => {}
            NumberTest::Between(low, high) => self.intervals.push((*low, *high, query)),
            NumberTest::NotIn(_) => debug_assert!(false, "NOT IN is not filed"),
        }
    }

    /// Makes it ready to be asked.
    pub(super) fn finish(&mut self) {
        let keys = || self.by_key.keys().copied();
        if let (Some(low), Some(high)) = (keys().min(), keys().max()) {
            let mut taken = SlotTable::new();
            keys().for_each(|key| taken.take(Slot::of_key(key)));
            self.keys = Some(KeyFilter { taken, ends: (low, high) });
        }
        self.stretches = Stretches::of(&self.intervals);
    }

    /// Whether queries may want rows of a block with this zone.
    pub(super) fn meets(&self, zone: Option<Zone>) -> bool {
        let keys = self.keys.as_ref().map(|keys| keys.ends);
        let stretches = self.stretches.as_ref().map(|stretches| stretches.ends);
        keys.into_iter().chain(stretches).any(|ends| meets(ends, zone))
    }

    /// Adds the rows of a block that queries want, with the queries; `hits` is room to work in.
    pub(super) fn look_up(
        &self,
        column: &BlockColumn<'_>,
        zone: Option<Zone>,
        hits: &mut Vec<u32>,
        mut found: impl FnMut(u32, &[QueryNumber]),
    ) {
        if let Some(keys) = self.keys.as_ref().filter(|keys| meets(keys.ends, zone)) {
            hits.clear();
            hits_of(&keys.taken, column, Slot::of_key, hits);
            for row in hits.iter() {
                if let Some(queries) = column.key(*row as usize).and_then(|k| self.by_key.get(&k)) {
                    found(*row, queries);
                }
            }
        }
        if let Some(stretches) = self.stretches.as_ref().filter(|all| meets(all.ends, zone)) {
            hits.clear();
            hits_of(&stretches.taken, column, |key| stretches.slots.slot(key), hits);
            for row in hits.iter() {
                let Some(key) = column.key(*row as usize) else { continue };
                match stretches.queries_of(key) {
                    [] => {}
                    queries => found(*row, queries),
                }
            }
        }
    }
}

/// Whether keys from one to another may be in a block.
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
    fn of(intervals: &[(i64, i64, QueryNumber)]) -> Option<Self> {
        let lows = intervals.iter().map(|(low, ..)| *low);
        // The first key behind an interval; nothing is behind the last key.
        let behind = intervals.iter().filter_map(|(_, high, _)| high.checked_add(1));
        let mut starts: Vec<i64> = lows.chain(behind).collect();
        starts.sort_unstable();
        starts.dedup();
        let mut queries = vec![Vec::new(); starts.len()];
        for (low, high, query) in intervals {
            let first = starts.partition_point(|start| start < low);
            let last = starts.partition_point(|start| start <= high);
            queries[first..last].iter_mut().for_each(|all| all.push(*query));
        }
        let low = intervals.iter().map(|(low, ..)| *low).min()?;
        let high = intervals.iter().map(|(_, high, _)| *high).max()?;
        // Open ends would leave all others in a slot or two.
        let bounds = || {
            let all = intervals.iter().flat_map(|(low, high, _)| [*low, *high]);
            all.filter(|end| *end != i64::MIN && *end != i64::MAX)
        };
        let slots = match (bounds().min(), bounds().max()) {
            (Some(low), Some(high)) => {
                OrderedSlots::between(low.saturating_sub(1), high.saturating_add(1))
            }
            _ => OrderedSlots::between(0, 0),
        };
        let mut taken = SlotTable::new();
        for (low, high, _) in intervals {
            taken.take_from_to(slots.slot(*low), slots.slot(*high));
        }
        Some(Self { taken, slots, starts, queries, ends: (low, high) })
    }

    fn queries_of(&self, key: i64) -> &[QueryNumber] {
        match self.starts.partition_point(|start| *start <= key) {
            0 => &[],
            after => &self.queries[after - 1],
        }
    }
}

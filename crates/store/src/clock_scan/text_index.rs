//! Queries filed under a test of a column of strings.

use arrow_array::builder::make_view;
use arrow_array::{Array, StringViewArray};
use hashbrown::HashMap;

use super::candidates::Candidates;
use super::filter::{Slot, SlotTable, rows_passing};
use super::number_index::FEW_BYTES;
use super::query::{QueryNumber, TextTest};
use super::times::ScanPart;
use super::values::{BlockColumn, BlockValues};

/// Queries by value and by interval or prefix of a column of strings.
#[derive(Debug, Default)]
pub(super) struct TextIndex {
    by_value: HashMap<Box<str>, Vec<QueryNumber>>,
    /// Intervals and prefixes, tested one after another.
    others: Vec<(TextTest, QueryNumber)>,
    /// The values by the part that views contain.
    heads: Option<SlotTable>,
    /// The values by their last bytes: views of long strings contain only their beginning.
    tails: Option<SlotTable>,
}

/// The matches in a dictionary: the queries for each of its codes.
#[derive(Debug)]
pub(super) struct CodeQueries {
    /// For each code.
    queries: Vec<Vec<QueryNumber>>,
    /// Codes with queries.
    wanted: Vec<u16>,
    /// Their slots; `None` if there are no such codes.
    taken: Option<SlotTable>,
}

impl TextIndex {
    /// Files a query. NOT IN cannot be filed.
    pub(super) fn file(&mut self, query: QueryNumber, test: &TextTest) {
        match test {
            TextTest::In(values) => {
                for value in values {
                    self.by_value.entry(value.clone()).or_default().push(query);
                }
            }
            TextTest::Between(..) | TextTest::Prefix(_) => self.others.push((test.clone(), query)),
            TextTest::NotIn(_) => debug_assert!(false, "NOT IN is not filed"),
        }
    }

    /// Prepares it for lookups.
    pub(super) fn finish(&mut self) {
        for value in self.by_value.keys() {
            self.heads.get_or_insert_with(SlotTable::new).take(Slot::of_key(head_of(value)));
            self.tails.get_or_insert_with(SlotTable::new).take(Slot::of_key(tail_of(value)));
        }
    }

    /// Looks up all values of a dictionary.
    pub(super) fn ask(&self, dictionary: &StringViewArray) -> CodeQueries {
        let mut queries = vec![Vec::new(); dictionary.len()];
        let (mut wanted, mut taken): (Vec<u16>, Option<SlotTable>) = Default::default();
        for (code, value) in dictionary.iter().enumerate() {
            let Some(value) = value else { continue };
            self.queries_of(value, &mut queries[code]);
            if !queries[code].is_empty() {
                wanted.push(code as u16);
                taken.get_or_insert_with(SlotTable::new).take(Slot::of_number(code as u16));
            }
        }
        CodeQueries { queries, wanted, taken }
    }

    fn queries_of(&self, value: &str, into: &mut Vec<QueryNumber>) {
        into.extend(self.by_value.get(value).into_iter().flatten());
        let passes = |(test, query): &(TextTest, QueryNumber)| test.passes(value).then_some(*query);
        into.extend(self.others.iter().filter_map(passes));
    }

    /// Whether queries are filed.
    pub(super) fn is_empty(&self) -> bool {
        self.by_value.is_empty() && self.others.is_empty()
    }

    /// Adds the rows of a block of strings without a dictionary that queries match; `hits` is scratch space.
    pub(super) fn look_up(
        &self,
        column: &BlockColumn<'_>,
        hits: &mut Vec<u32>,
        found: &mut Candidates,
    ) {
        let BlockValues::Text(views) = &column.values else { return };
        if self.by_value.len() <= FEW_BYTES / column.value_bytes() {
            for (value, queries) in &self.by_value {
                hits.clear();
                rows_equal(views, value, hits);
                hits.retain(|row| column.text(*row as usize) == Some(value));
                found.add_rows(hits, queries);
            }
        } else if let (Some(heads), Some(tails)) = (&self.heads, &self.tails) {
            hits.clear();
            heads.hits(views.views(), |view| Slot::of_key(head_of_view(view)), hits);
            found.clock.end(ScanPart::Text);
            for row in hits.iter() {
                let Some(value) = column.text(*row as usize) else { continue };
                if tails.has(Slot::of_key(tail_of(value)))
                    && let Some(queries) = self.by_value.get(value)
                {
                    found.add(*row, queries);
                }
            }
            found.clock.end(ScanPart::Lookups);
        }
        for (test, query) in &self.others {
            for row in 0..views.len() {
                if column.text(row).is_some_and(|value| test.passes(value)) {
                    found.add(row as u32, &[*query]);
                }
            }
        }
    }
}

impl CodeQueries {
    /// Whether no query matches a value of the dictionary.
    pub(super) fn is_empty(&self) -> bool {
        self.taken.is_none()
    }

    /// Adds the rows of a block of codes that queries match; `hits` is scratch space.
    pub(super) fn look_up(
        &self,
        column: &BlockColumn<'_>,
        hits: &mut Vec<u32>,
        found: &mut Candidates,
    ) {
        let Some(taken) = &self.taken else { return };
        if self.wanted.len() <= FEW_BYTES / column.value_bytes() {
            for wanted in &self.wanted {
                hits.clear();
                match &column.values {
                    BlockValues::Codes8(codes, _) => {
                        rows_passing(codes, |code| u16::from(code) == *wanted, hits);
                    }
                    BlockValues::Codes16(codes, _) => {
                        rows_passing(codes, |code| code == *wanted, hits);
                    }
                    _ => return,
                }
                if column.nulls.is_some() {
                    hits.retain(|row| !column.is_null(*row as usize));
                }
                found.add_rows(hits, &self.queries[usize::from(*wanted)]);
            }
            return;
        }
        hits.clear();
        let code: &dyn Fn(usize) -> usize = match &column.values {
            BlockValues::Codes8(codes, _) => {
                taken.hits(codes, |code| Slot::of_number(code.into()), hits);
                &|row| codes[row].into()
            }
            BlockValues::Codes16(codes, _) => {
                taken.hits(codes, Slot::of_number, hits);
                &|row| codes[row].into()
            }
            _ => return,
        };
        found.clock.end(ScanPart::Text);
        for row in hits.iter() {
            if !column.is_null(*row as usize) {
                found.add(*row, &self.queries[code(*row as usize)]);
            }
        }
        found.clock.end(ScanPart::Lookups);
    }
}

/// Adds the rows whose strings may equal one, judging by their views.
fn rows_equal(strings: &StringViewArray, wanted: &str, hits: &mut Vec<u32>) {
    let view = make_view(wanted.as_bytes(), 0, 0);
    if wanted.len() <= INLINE_MAX as usize {
        rows_passing(strings.views(), |own| own == view, hits);
    } else {
        // Length and first four bytes; the rest of the view is the address of the text.
        rows_passing(strings.views(), |own| own as u64 == view as u64, hits);
    }
}

/// Strings of up to this many bytes are in their views.
const INLINE_MAX: u32 = 12;

/// The part of a string that its view contains: all of a short one, or the length and
/// the first four bytes of a long one.
#[inline(always)]
fn head_of_view(view: u128) -> i64 {
    let (low, high) = (view as u64, (view >> 64) as u64);
    let rest = if low as u32 <= INLINE_MAX { high } else { 0 };
    (low ^ rest.wrapping_mul(0xff51_afd7_ed55_8ccd)) as i64
}

/// The same for a string.
fn head_of(value: &str) -> i64 {
    // The rest of the view of a long string differs if its text is in another buffer.
    head_of_view(make_view(value.as_bytes(), 0, 0))
}

/// The last eight bytes of a string.
fn tail_of(value: &str) -> i64 {
    let last = value.as_bytes().last_chunk();
    last.map_or(0, |bytes| i64::from_le_bytes(*bytes))
}

//! Rows sorted by their words, and by the columns that are not packed whole where words are equal.

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::{SortOptions, partition};
use datafusion::arrow::row::{RowConverter, SortField};
use datafusion::error::Result;

use super::key::{KeyBounds, KeyPacking, Word};
use super::rows::{KeptRows, OrderedRows, RowNumber};

/// Packed words with their rows.
pub(super) type Packed<W> = Vec<(W, RowNumber)>;

/// How the keys of these rows are packed.
pub(super) fn packing(kept: &KeptRows, order: &KeyOrder) -> KeyPacking {
    let mut bounds = vec![KeyBounds::default(); order.options.len()];
    for batch in &kept.batches {
        for (bounds, keys) in bounds.iter_mut().zip(&batch.keys) {
            bounds.merge(&KeyBounds::of(keys));
        }
    }
    KeyPacking::new(&bounds, &order.options, order.partition)
}

/// The words of these batches.
pub(super) fn packed<W: Word>(
    kept: &KeptRows,
    batches: std::ops::Range<usize>,
    packing: &KeyPacking,
) -> Packed<W> {
    let rows = kept.batches[batches.clone()].iter().map(|kept| kept.batch.num_rows()).sum();
    let (mut all, mut words) = (Vec::with_capacity(rows), Vec::new());
    for number in batches {
        let batch = &kept.batches[number];
        words.clear();
        packing.pack::<W>(&batch.keys, batch.batch.num_rows(), &mut words);
        let numbered = words.iter().enumerate();
        all.extend(numbered.map(|(row, word)| (*word, RowNumber::new(number, row))));
    }
    all
}

/// Words that cut all rows in `parts` parts of about the same size.
pub(super) fn cuts<W: Word>(packed: &[Packed<W>], parts: usize) -> Vec<W> {
    const SAMPLE: usize = 4096;
    let rows: usize = packed.iter().map(Vec::len).sum();
    let step = (rows / SAMPLE).max(1);
    let words = packed.iter().flat_map(|packed| packed.iter().step_by(step));
    let mut sample: Vec<W> = words.map(|(word, _)| *word).collect();
    sample.sort_unstable();
    let cut = |part: usize| sample[part * sample.len() / parts];
    if sample.is_empty() { vec![] } else { (1..parts).map(cut).collect() }
}

/// The rows whose words are within this part of the cuts.
pub(super) fn part_of<W: Word>(packed: &[Packed<W>], cuts: &[W], part: usize) -> Packed<W> {
    let (from, to) = (part.checked_sub(1).and_then(|at| cuts.get(at)), cuts.get(part));
    if part > cuts.len() {
        return vec![];
    }
    let is_in =
        |word: &W| from.is_none_or(|from| *word >= *from) && to.is_none_or(|to| *word < *to);
    packed.iter().flatten().filter(|(word, _)| is_in(word)).copied().collect()
}

/// The order that is asked for.
#[derive(Clone, Debug)]
pub(super) struct KeyOrder {
    /// Of each key column.
    pub(super) options: Vec<SortOptions>,
    /// How many of them are partition keys.
    pub(super) partition: usize,
}

/// Puts rows in order.
pub(super) fn ordered<W: Word>(
    kept: &KeptRows,
    mut packed: Packed<W>,
    packing: &KeyPacking,
    order: &KeyOrder,
) -> Result<OrderedRows> {
    if packed.is_empty() {
        return Ok(OrderedRows::default());
    }
    sort_packed(&mut packed);
    let mut peers: Vec<bool> = Vec::with_capacity(packed.len());
    peers.extend(packed.first().map(|_| false));
    peers.extend(packed.windows(2).map(|two| two[0].0 == two[1].0));
    if packing.whole() < order.options.len() {
        order_ties(kept, &mut packed, &mut peers, packing.whole(), order)?;
    }
    let rows: Vec<RowNumber> = packed.iter().map(|(_, row)| *row).collect();
    let starts = match packing.after_partition() {
        Some(bits) => {
            let begins = |at: &usize| {
                *at == 0 || packed[*at - 1].0.without(bits) != packed[*at].0.without(bits)
            };
            (0..packed.len()).filter(begins).map(|at| at as u32).collect()
        }
        None => {
            drop(packed);
            let keys = (0..order.partition)
                .map(|at| kept.gather(|kept| &kept.keys[at], None, &rows))
                .collect::<Result<Vec<ArrayRef>>>()?;
            partition(&keys)?.ranges().into_iter().map(|range| range.start as u32).collect()
        }
    };
    Ok(OrderedRows { rows, peers, starts })
}

/// Sorts packed words. The stable sort only merges runs that are sorted already, such as those of several inputs; for
/// others the unstable one is faster and takes no memory. No two elements are equal, so both give the same order.
fn sort_packed<W: Word>(packed: &mut Packed<W>) {
    const RUN_ROWS: usize = 1024;
    let most = packed.len() / RUN_ROWS;
    let descents = packed.windows(2).filter(|two| two[0] > two[1]);
    match descents.take(most + 1).count() <= most {
        true => packed.sort(),
        false => packed.sort_unstable(),
    }
}

/// Orders rows of equal words by the columns from `whole` on.
fn order_ties<W: Word>(
    kept: &KeptRows,
    packed: &mut Packed<W>,
    peers: &mut [bool],
    whole: usize,
    order: &KeyOrder,
) -> Result<()> {
    let is_tied = |at: usize| peers[at] || peers.get(at + 1).copied().unwrap_or_default();
    let tied: Vec<usize> = (0..packed.len()).filter(|at| is_tied(*at)).collect();
    if tied.is_empty() {
        return Ok(());
    }
    let numbers: Vec<RowNumber> = tied.iter().map(|at| packed[*at].1).collect();
    let columns = (whole..order.options.len())
        .map(|at| kept.gather(|kept| &kept.keys[at], None, &numbers))
        .collect::<Result<Vec<ArrayRef>>>()?;
    let fields = columns
        .iter()
        .zip(&order.options[whole..])
        .map(|(column, options)| SortField::new_with_options(column.data_type().clone(), *options));
    let rows = RowConverter::new(fields.collect())?.convert_columns(&columns)?;
    let mut from = 0;
    while from < tied.len() {
        let more = tied[from + 1..].iter().take_while(|at| peers[**at]).count();
        let mut run: Vec<usize> = (from..=from + more).collect();
        run.sort_by(|a, b| rows.row(*a).cmp(&rows.row(*b)));
        let first = tied[from];
        let word = packed[first].0;
        for (at, row) in run.iter().enumerate() {
            packed[first + at] = (word, numbers[*row]);
            peers[first + at] = at > 0 && rows.row(run[at - 1]) == rows.row(*row);
        }
        from += run.len();
    }
    Ok(())
}

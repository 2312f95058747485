//! The smallest or largest text of each group.
//!
//! DataFusion's (55.2, `min_max_bytes.rs`) looks each row's group up in a hash table. Here the first four bytes of the
//! best text so far are beside those of others, and decide about most rows without a look at the texts.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, StringViewArray, StringViewBuilder,
};
use datafusion::error::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};

use crate::masked::masked;

/// The best text of each group.
#[derive(Debug)]
pub(super) struct TextExtreme {
    /// How a text must compare to the best so far to replace it.
    better: Ordering,
    best: Vec<Option<String>>,
    /// The first bytes of these.
    heads: Vec<u32>,
    /// Bytes of all texts.
    bytes: usize,
}

/// The first four bytes of a text, in the order of its bytes; zeros after its end. A view has them itself.
#[inline]
fn head(view: u128) -> u32 {
    ((view >> 32) as u32).swap_bytes()
}

impl TextExtreme {
    pub(super) fn new(better: Ordering) -> Self {
        Self { better, best: vec![], heads: vec![], bytes: 0 }
    }

    #[inline]
    fn replaces(&self, texts: &StringViewArray, row: usize, group: usize) -> bool {
        let Some(best) = &self.best[group] else { return true };
        match head(texts.views()[row]).cmp(&self.heads[group]) {
            Ordering::Equal => texts.value(row).cmp(best) == self.better,
            order => order == self.better,
        }
    }

    fn replace(&mut self, texts: &StringViewArray, row: usize, group: usize) {
        let text = texts.value(row);
        self.heads[group] = head(texts.views()[row]);
        let best = self.best[group].get_or_insert_default();
        self.bytes -= best.capacity();
        best.clear();
        best.push_str(text);
        self.bytes += best.capacity();
    }
}

impl GroupsAccumulator for TextExtreme {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.best.resize(total_num_groups, None);
        self.heads.resize(total_num_groups, 0);
        let texts = values[0].as_string_view();
        let nulls = texts.nulls().filter(|nulls| nulls.null_count() > 0);
        for (row, &group) in group_indices.iter().enumerate() {
            let is_wanted = nulls.is_none_or(|nulls| nulls.is_valid(row))
                && opt_filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
            if is_wanted && self.replaces(texts, row, group) {
                self.replace(texts, row, group);
            }
        }
        Ok(())
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.update_batch(values, group_indices, None, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let best = emit_to.take_needed(&mut self.best);
        emit_to.take_needed(&mut self.heads);
        self.bytes -= best.iter().flatten().map(String::capacity).sum::<usize>();
        let mut texts = StringViewBuilder::with_capacity(best.len());
        best.iter().for_each(|text| texts.append_option(text.as_ref()));
        Ok(Arc::new(texts.finish()))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit_to)?])
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let texts = values[0].as_string_view();
        let nulls = masked(texts, opt_filter);
        let texts =
            StringViewArray::try_new(texts.views().clone(), texts.data_buffers().to_vec(), nulls)?;
        Ok(vec![Arc::new(texts)])
    }

    fn size(&self) -> usize {
        self.best.capacity() * size_of::<Option<String>>()
            + self.heads.capacity() * size_of::<u32>()
            + self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the rows one after the other.
    fn slow(
        better: Ordering,
        rows: &[(usize, Option<&str>)],
        groups: usize,
    ) -> Vec<Option<String>> {
        let best = |group| {
            let texts = rows.iter().filter(|(of, _)| *of == group).filter_map(|(_, text)| *text);
            let best = match better {
                Ordering::Less => texts.min(),
                _ => texts.max(),
            };
            best.map(str::to_owned)
        };
        (0..groups).map(best).collect()
    }

    #[test]
    fn the_best_texts_are_those_of_a_slow_search() {
        let texts = [
            None,
            Some(""),
            Some("a"),
            Some("a\0"),
            Some("abcd"),
            Some("abcde"),
            Some("ä long text that is not inside of its view"),
            Some("ä long text that is not inside of its wiew"),
            Some("zzzz\u{10ffff}"),
            Some("\0"),
        ];
        for better in [Ordering::Less, Ordering::Greater] {
            for seed in 0..200_usize {
                let row = |at: usize| {
                    let mixed = (seed * 31 + at * 17) ^ (at * at * 7 + seed);
                    (mixed % 5, texts[(mixed / 5) % texts.len()])
                };
                let rows: Vec<_> = (0..seed % 40).map(row).collect();
                let (mut parts, mut last) = (Vec::new(), TextExtreme::new(better));
                for part in rows.chunks(7) {
                    let values: StringViewArray = part.iter().map(|(_, text)| *text).collect();
                    let groups: Vec<usize> = part.iter().map(|(group, _)| *group).collect();
                    let mut first = TextExtreme::new(better);
                    first.update_batch(&[Arc::new(values)], &groups, None, 6).unwrap();
                    parts.extend(first.state(EmitTo::All).unwrap());
                    assert_eq!(first.bytes, 0);
                }
                for part in parts {
                    last.merge_batch(&[part], &[0, 1, 2, 3, 4, 5], 6).unwrap();
                }
                if rows.is_empty() {
                    continue;
                }
                let (first, rest) =
                    (last.evaluate(EmitTo::First(2)).unwrap(), last.evaluate(EmitTo::All).unwrap());
                let found = first.as_string_view().iter().chain(rest.as_string_view());
                let found: Vec<_> = found.map(|text| text.map(str::to_owned)).collect();
                assert_eq!(found, slow(better, &rows, 6), "{rows:?}");
            }
        }
    }

    #[test]
    fn rows_that_are_filtered_out_do_not_count() {
        let values: ArrayRef = Arc::new(StringViewArray::from(vec!["a", "b"]));
        let filter = BooleanArray::from(vec![Some(false), Some(true)]);
        let mut least = TextExtreme::new(Ordering::Less);
        let state = least.convert_to_state(&[Arc::clone(&values)], Some(&filter)).unwrap();
        assert_eq!(state[0].as_string_view().iter().collect::<Vec<_>>(), [None, Some("b")]);
        least.update_batch(&[values], &[0, 0], Some(&filter), 1).unwrap();
        assert_eq!(least.evaluate(EmitTo::All).unwrap().as_string_view().value(0), "b");
    }
}

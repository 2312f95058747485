//! Chunks along which the values of a column never fall.
//!
//! A table loaded in the order of a key is one chain of such chunks. Rows that were updated or restored
//! are in chunks between or after those of the load: they form a few other chains, and the table can still be cut at
//! values of the key.

use std::sync::Arc;

use super::chunk::Chunk;

/// More chains are not worth reading side by side.
const CHAINS_MAX: usize = 8;

/// A column of whole numbers without nulls, with the chunks of a table divided into a few chains: along each chain the
/// values of the column never fall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RisingColumn {
    /// The column.
    pub column: usize,
    /// Numbers of the chunks of each chain, in the order of the table.
    pub chains: Vec<Vec<usize>>,
}

impl RisingColumn {
    /// Divides chunks into as few chains as possible. Returns None if values fall within a chunk or chains are many.
    pub(super) fn from_chunks(chunks: &[Arc<Chunk>], column: usize) -> Option<Self> {
        Self::of_ends(chunks.iter().map(|chunk| chunk.stats[column].rising), column)
    }

    /// The same for the first and the last value of each chunk.
    fn of_ends(ends: impl Iterator<Item = Option<(i64, i64)>>, column: usize) -> Option<Self> {
        let (mut chains, mut lasts): (Vec<Vec<usize>>, Vec<i64>) = (Vec::new(), Vec::new());
        for (number, ends) in ends.enumerate() {
            let (first, last) = ends?;
            // The chain that ends closest before it, so that the other chains can take chunks that begin earlier.
            let fitting = (0..lasts.len()).filter(|chain| lasts[*chain] <= first);
            match fitting.max_by_key(|chain| lasts[*chain]) {
                Some(chain) => {
                    chains[chain].push(number);
                    lasts[chain] = last;
                }
                None if chains.len() == CHAINS_MAX => return None,
                None => {
                    chains.push(vec![number]);
                    lasts.push(last);
                }
            }
        }
        (!chains.is_empty()).then_some(Self { column, chains })
    }

    /// Whether the values never fall from the first row of the table to the last.
    pub fn is_whole(&self) -> bool {
        self.chains.len() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chains(ends: &[(i64, i64)]) -> Option<Vec<Vec<usize>>> {
        Some(RisingColumn::of_ends(ends.iter().map(|ends| Some(*ends)), 0)?.chains)
    }

    #[test]
    fn chunks_that_rise_from_one_to_the_next_are_one_chain() {
        assert_eq!(chains(&[(1, 5), (5, 5), (6, 9)]), Some(vec![vec![0, 1, 2]]));
        assert_eq!(chains(&[]), None);
    }

    #[test]
    fn newer_values_and_rows_that_came_back_are_other_chains() {
        let changed = [(0, 99), (50, 50), (100, 199), (150, 160), (200, 299), (5, 290)];
        assert_eq!(chains(&changed), Some(vec![vec![0, 2, 4], vec![1, 3], vec![5]]));
    }

    #[test]
    fn a_chunk_that_falls_or_too_many_chains_are_none() {
        let ends = [Some((1, 2)), None];
        assert_eq!(RisingColumn::of_ends(ends.into_iter(), 0), None);
        let falling: Vec<(i64, i64)> = (0..=CHAINS_MAX as i64).map(|at| (-at, -at)).collect();
        assert_eq!(chains(&falling[1..]).map(|chains| chains.len()), Some(CHAINS_MAX));
        assert_eq!(chains(&falling), None);
    }
}

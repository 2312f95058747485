//! One worker's rows, block by block, into its table.

use arrow_row::Rows;

use super::input::{Morsel, Ready};
use super::keys::Encoder;
use super::lane::{Block, Lane, Scratch};
use super::packing::{self, Packing};
use super::table::Table;
use crate::PrimitiveError;

/// Room for the blocks that are worked on.
#[derive(Debug, Default)]
pub(super) struct Feed {
    keys: packing::Scratch,
    lanes: Vec<Scratch>,
}

/// How keys come to a table.
#[derive(Clone, Debug)]
pub(super) enum KeyForm {
    /// There are none.
    None,
    Packed(Packing),
    Encoded(Encoder),
}

/// A key that its packing does not hold.
#[derive(Debug)]
pub(super) enum Fed {
    All,
    /// A dense table does not hold the block from this row on; the table has the rows before.
    Outside(usize),
}

impl Feed {
    /// Blocks of value lanes.
    pub(super) fn blocks<'a>(
        lanes: &'a mut Vec<Scratch>,
        of: &'a [Lane],
        start: usize,
        len: usize,
    ) -> Vec<Block<'a>> {
        lanes.resize_with(of.len().max(lanes.len()), Scratch::default);
        let both = of.iter().zip(lanes.iter_mut());
        both.map(|(lane, scratch)| lane.block(start, len, scratch)).collect()
    }

    /// Feeds a morsel to a table in blocks of `block_rows`, asking `check` before each.
    pub(super) fn feed(
        &mut self,
        table: &mut Table,
        (part, morsel): (&Ready, Morsel),
        form: &KeyForm,
        block_rows: usize,
        check: &dyn Fn() -> Result<(), PrimitiveError>,
    ) -> Result<Fed, PrimitiveError> {
        let encoded = self.encode(form, part, morsel)?;
        let end = morsel.start + morsel.len;
        for start in (morsel.start..end).step_by(block_rows.max(1)) {
            check()?;
            let len = block_rows.min(end - start);
            let values = Self::blocks(&mut self.lanes, &part.lanes, start, len);
            match form {
                KeyForm::None => table.update_all(len, &values)?,
                KeyForm::Packed(packing) => {
                    let lanes = part.key_lanes.as_deref().unwrap_or_default();
                    let words = packing.pack(lanes, start, len, &mut self.keys);
                    let words = words.map_err(|_| outside())?;
                    if !table.update_words(words, &values)? {
                        return Ok(Fed::Outside(start));
                    }
                }
                KeyForm::Encoded(_) => {
                    let rows = encoded.as_ref().expect("encoded above");
                    table.update_encoded(rows, (start - morsel.start, len), &values)?;
                }
            }
        }
        Ok(Fed::All)
    }

    fn encode(
        &self,
        form: &KeyForm,
        part: &Ready,
        morsel: Morsel,
    ) -> Result<Option<Rows>, PrimitiveError> {
        let KeyForm::Encoded(encoder) = form else { return Ok(None) };
        let cut = |key: &arrow_array::ArrayRef| key.slice(morsel.start, morsel.len);
        encoder.encode(&part.keys.iter().map(cut).collect::<Vec<_>>()).map(Some)
    }
}

/// A packing is made for all keys of an input, so a key outside of it is a change of the input while
/// it is read.
pub(super) fn outside() -> PrimitiveError {
    PrimitiveError::Shape {
        what: "a key".into(),
        found: "one outside of the range found before".into(),
        expected: "an input that does not change while it is read".into(),
    }
}

//! One worker's radix partitioning.

use std::fmt;

use atoll_topology::NodeId;

use super::{FanOut, Pieces};
use crate::kernel::scatter::Scatter;
use crate::{Context, PrimitiveError};

/// Partitions rows of `W` 64-bit words. Each worker has its own; its pieces are on the worker's node.
///
/// ```
/// # use std::sync::Arc;
/// # use atoll_placement::{Arena, LiveKernel};
/// # use atoll_runtime::{Runtime, RuntimeOptions};
/// # use atoll_topology::Machine;
/// use atoll_primitives::partition::{FanOut, Partitioner};
/// use atoll_primitives::{Context, hash};
/// # let machine = Arc::new(Machine::discover()?);
/// # let kernel = Arc::new(LiveKernel::new());
/// # let arena = Arena::new(machine.clone(), kernel.clone(), None);
/// # let context = Context::new(Runtime::start(machine, kernel, RuntimeOptions::default())?, arena);
/// let (keys, values) = ([7_u64, 8, 7], [1_u64, 2, 3]);
/// let mut partitioner = Partitioner::new(&context, None, FanOut::of_bits(4), keys.len())?;
/// let fan_out = partitioner.fan_out();
/// partitioner.extend(3, |row| (fan_out.digit(hash::word(keys[row])), [keys[row], values[row]]))?;
/// let pieces = partitioner.finish()?;
/// let of_seven = pieces.blocks(fan_out.digit(hash::word(7))).flatten();
/// assert_eq!(of_seven.filter(|[key, _]| *key == 7).map(|[_, value]| value).sum::<u64>(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Partitioner<const W: usize>(Scatter<W>, FanOut);

impl<const W: usize> Partitioner<W> {
    /// A partitioner with pieces on a node, or without one, where the calling thread's memory is. `rows` is the
    /// expected number of rows, 0 if unknown.
    ///
    /// # Errors
    /// [`PrimitiveError::Memory`].
    pub fn new(
        context: &Context,
        home: Option<NodeId>,
        fan_out: FanOut,
        rows: usize,
    ) -> Result<Self, PrimitiveError> {
        let buffer_rows = context.tuning().buffer_rows;
        Ok(Self(Scatter::new(context.arena(), home, fan_out, buffer_rows, rows)?, fan_out))
    }

    /// Number of pieces.
    pub fn fan_out(&self) -> FanOut {
        self.1
    }

    /// Adds `rows` rows; `row` returns the piece and the words of each, called once and in order. Bits of the piece's
    /// number beyond the fan-out are cut off.
    ///
    /// # Errors
    /// [`PrimitiveError::Memory`]; some of the rows were added then.
    #[inline]
    pub fn extend(
        &mut self,
        rows: usize,
        row: impl FnMut(usize) -> (usize, [u64; W]),
    ) -> Result<(), PrimitiveError> {
        Ok(self.0.extend(rows, row)?)
    }

    /// Returns the pieces.
    ///
    /// # Errors
    /// [`PrimitiveError::Memory`], for the last rows of each piece.
    pub fn finish(self) -> Result<Pieces<W>, PrimitiveError> {
        Ok(self.0.finish()?)
    }
}

impl<const W: usize> fmt::Debug for Partitioner<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partitioner").field("fan_out", &self.1).finish_non_exhaustive()
    }
}

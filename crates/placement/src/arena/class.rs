//! Size classes: which block a buffer gets, and how blocks are cut from regions.

/// Smallest step between block sizes, and the alignment of every block: a cache line, which is also
/// what Arrow asks for.
const STEP_MIN: usize = 64;

/// Blocks from this size on have a region of their own; smaller ones share. It is the huge page of
/// x86-64, so that shared regions consist of whole huge pages.
const REGION_UNIT: usize = 2 << 20;

/// Largest buffer: far beyond any machine, and small enough that no sum of sizes overflows.
pub(crate) const BUFFER_BYTES_MAX: usize = 1 << 46;

/// Size of a block and of the region it is cut from.
///
/// Sizes are `m · 2^j` with m from 9 to 16, eight steps to each doubling: a block is less than an
/// eighth larger than what it holds. A region of blocks smaller than 2 MiB is `m · 2 MiB` long, so
/// that `2^(21-j)` blocks fill it without a rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Class {
    /// Size of a block in bytes, a multiple of 64.
    pub(super) block_len: usize,
    /// Blocks in a region.
    pub(super) blocks: u32,
}

impl Class {
    /// The smallest class that holds `bytes`; `None` above [`BUFFER_BYTES_MAX`].
    pub(super) fn for_bytes(bytes: usize) -> Option<Self> {
        if bytes > BUFFER_BYTES_MAX {
            return None;
        }
        let step = step_of(bytes);
        let block_len = bytes.max(1).next_multiple_of(step);
        let blocks = if block_len < REGION_UNIT { REGION_UNIT / step } else { 1 };
        Some(Self { block_len, blocks: blocks as u32 })
    }

    /// Length of a region in bytes.
    pub(super) fn region_len(self) -> usize {
        self.block_len * self.blocks as usize
    }
}

/// `2^j`: an eighth of the power of two below `bytes`, at least a cache line.
fn step_of(bytes: usize) -> usize {
    let below = bytes.saturating_sub(1).checked_ilog2().unwrap_or(0);
    (1_usize << below.saturating_sub(3)).max(STEP_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes() -> impl Iterator<Item = usize> {
        (0..46).flat_map(|power| [(1_usize << power) - 1, 1 << power, (1 << power) + 1])
    }

    #[test]
    fn a_block_holds_what_was_asked_with_at_most_an_eighth_of_slack() {
        for bytes in sizes() {
            let block = Class::for_bytes(bytes).unwrap().block_len;
            assert!(block >= bytes && block.is_multiple_of(64), "{bytes}: {block}");
            assert!(block - bytes <= (bytes / 8).max(64), "{bytes}: {block}");
        }
    }

    #[test]
    fn regions_are_filled_without_a_rest_and_end_at_a_page() {
        for bytes in sizes() {
            let class = Class::for_bytes(bytes).unwrap();
            let whole = class.region_len();
            if class.blocks > 1 {
                assert!(
                    whole.is_multiple_of(REGION_UNIT) && whole <= 16 * REGION_UNIT,
                    "{bytes}: {whole}"
                );
            } else {
                assert!(whole >= REGION_UNIT && whole.is_multiple_of(65_536), "{bytes}: {whole}");
            }
        }
    }

    #[test]
    fn a_class_holds_its_own_block_exactly() {
        for bytes in sizes() {
            let class = Class::for_bytes(bytes).unwrap();
            assert_eq!(Class::for_bytes(class.block_len), Some(class));
        }
    }

    #[test]
    fn absurd_sizes_have_no_class() {
        assert!(Class::for_bytes(BUFFER_BYTES_MAX).is_some());
        assert_eq!(Class::for_bytes(BUFFER_BYTES_MAX + 1), None);
        assert_eq!(Class::for_bytes(usize::MAX), None);
    }
}

//! Sets of numbers in the kernel's format: bit `n` of an array of words is number `n`.

/// Largest number in a bitmap. Linux builds have at most 1024 nodes and 8192 cpus; the limit keeps hostile input from
/// demanding gigabytes of zeros.
pub const BITMAP_NUMBER_MAX: u32 = 65_535;

/// A set of node or cpu numbers, in the kernel's layout and never longer than its highest number
/// needs (`mbind` refuses masks longer than a page).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bitmap {
    words: Vec<u64>,
}

/// A number beyond [`BITMAP_NUMBER_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("number {number} is above {BITMAP_NUMBER_MAX}, the largest node or cpu number accepted")]
pub struct BitmapError {
    /// The number as given.
    pub number: u32,
}

impl Bitmap {
    /// The bitmap of these numbers, in any order.
    pub fn from_numbers(numbers: impl IntoIterator<Item = u32>) -> Result<Self, BitmapError> {
        let mut words = Vec::new();
        for number in numbers {
            if number > BITMAP_NUMBER_MAX {
                return Err(BitmapError { number });
            }
            let word = number as usize / 64;
            if words.len() <= word {
                words.resize(word + 1, 0);
            }
            words[word] |= 1 << (number % 64);
        }
        Ok(Self { words })
    }

    /// An empty bitmap with room for numbers below `bits`, for the kernel to fill.
    pub(super) fn with_room(bits: usize) -> Self {
        Self { words: vec![0; bits.div_ceil(64)] }
    }

    /// The words, lowest numbers first.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    pub(super) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Bits that the words hold.
    pub(super) fn bits(&self) -> usize {
        self.words.len() * 64
    }

    /// The numbers in ascending order.
    pub fn numbers(&self) -> Vec<u32> {
        let mut numbers = Vec::new();
        for (at, word) in self.words.iter().enumerate() {
            let mut left = *word;
            while left != 0 {
                numbers.push(at as u32 * 64 + left.trailing_zeros());
                left &= left - 1;
            }
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_in_rising_order_without_doubles() {
        let bitmap = Bitmap::from_numbers([64, 0, 63, 64, BITMAP_NUMBER_MAX]).unwrap();
        assert_eq!(bitmap.numbers(), [0, 63, 64, BITMAP_NUMBER_MAX]);
        assert_eq!(bitmap.words()[..2], [1 | 1 << 63, 1]);
    }

    #[test]
    fn a_bitmap_is_no_longer_than_its_highest_number_needs() {
        assert_eq!(Bitmap::from_numbers([]).unwrap().words().len(), 0);
        assert_eq!(Bitmap::from_numbers([63]).unwrap().words().len(), 1);
        assert_eq!(Bitmap::from_numbers([64]).unwrap().words().len(), 2);
    }

    #[test]
    fn a_number_beyond_the_bound_is_an_error_not_an_allocation() {
        assert_eq!(Bitmap::from_numbers([0, u32::MAX]), Err(BitmapError { number: u32::MAX }));
    }
}

//! Sets as hexadecimal masks: `0x0000ffff,0xffffffff` as hwloc writes them, `ffff,ffffffff` as the
//! kernel does. Each word has 32 bits and the last holds the smallest numbers; hwloc writes `0x0` for
//! the empty set, and `0x0` or nothing at all for a word of zeros.

use crate::{IdSet, SET_NUMBER_MAX};

/// A description of masks for messages.
pub const EXPECTED: &str = "a mask such as 0x0000ffff,0xffffffff";

/// Maximum number of words of a mask: numbers up to [`SET_NUMBER_MAX`].
const WORDS_MAX: usize = (SET_NUMBER_MAX as usize + 1) / 32;

/// Parses a mask. Returns None if it is invalid. Leading words of zeros are allowed, as the kernel writes them for
/// cpus that could be added.
pub fn parse<T: From<u32> + Into<u32> + Copy>(text: &str) -> Option<IdSet<T>> {
    let mut set = IdSet::new();
    for (index, word) in text.trim().rsplit(',').enumerate() {
        if word.is_empty() && index > 0 {
            continue;
        }
        let digits = word.strip_prefix("0x").unwrap_or(word);
        if !(1..=8).contains(&digits.len())
            || !digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        {
            return None;
        }
        let bits = u32::from_str_radix(digits, 16).ok()?;
        if bits != 0 && index >= WORDS_MAX {
            return None;
        }
        insert(&mut set, index as u32, bits);
    }
    Some(set)
}

fn insert<T: From<u32> + Into<u32> + Copy>(set: &mut IdSet<T>, index: u32, bits: u32) {
    for bit in (0..32).filter(|bit| bits >> bit & 1 == 1) {
        set.insert(T::from(index * 32 + bit));
    }
}

/// A set as hwloc writes it.
pub fn write<T: From<u32> + Into<u32> + Copy>(set: &IdSet<T>) -> String {
    let Some(last) = set.last() else { return "0x0".to_owned() };
    let mut words = vec![0u32; last.into() as usize / 32 + 1];
    for id in set.iter() {
        let number: u32 = id.into();
        words[number as usize / 32] |= 1 << (number % 32);
    }
    let word = |word: &u32| if *word == 0 { "0x0".to_owned() } else { format!("0x{word:08x}") };
    words.iter().rev().map(word).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuSet;

    fn set(list: &str) -> CpuSet {
        CpuSet::parse(list).unwrap()
    }

    #[test]
    fn masks_of_hwloc_and_of_the_kernel_are_sets() {
        for (mask, list) in [
            ("0x0", ""),
            ("0x00000003", "0-1"),
            ("0x00000100,0x0", "40"),
            ("00000000,00000000,ff000001\n", "0,24-31"),
            ("f", "0-3"),
            ("0x00000001,,0x00000001", "0,64"),
        ] {
            assert_eq!(parse(mask), Some(set(list)), "{mask}");
        }
    }

    #[test]
    fn what_is_no_mask_or_too_large_is_refused() {
        let wide = format!("1{}", ",00000000".repeat(WORDS_MAX));
        let zeros = format!("0{}", ",00000000".repeat(WORDS_MAX));
        for mask in ["", "0x", "0xf...f", "0x123456789", "-1", "+1", "1,", "0xg", &wide] {
            assert_eq!(parse::<crate::CpuId>(mask), None, "{mask}");
        }
        assert_eq!(parse(&zeros), Some(CpuSet::new()));
    }

    #[test]
    fn a_set_is_written_as_hwloc_does_and_read_back() {
        for (list, mask) in
            [("", "0x0"), ("0-15", "0x0000ffff"), ("32", "0x00000001,0x0"), ("65535", "")]
        {
            let written = write(&set(list));
            assert!(mask.is_empty() || written == mask, "{written}");
            assert_eq!(parse(&written), Some(set(list)));
        }
    }
}

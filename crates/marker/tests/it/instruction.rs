//! Bytes to markers and back.

use atoll_marker::{LEN, Marker};

/// Every marker there is.
pub(crate) fn all() -> Vec<Marker> {
    let mut all = vec![Marker::Ready];
    all.extend((0..64).flat_map(|number| [Marker::Open(number), Marker::Close(number)]));
    all.extend((0..64).map(Marker::Witness));
    all.extend((0..16).flat_map(|number| [Marker::Tag(number), Marker::Say(number)]));
    all
}

#[test]
fn a_marker_is_a_nop_of_seven_bytes_that_says_what_it_said() {
    for marker in all() {
        let bytes = marker.encode();
        assert_eq!(bytes[..3], [0x0f, 0x1f, 0x80], "nopl disp32(%rax)");
        assert_eq!(Marker::decode(&bytes), Some(marker));
    }
}

#[test]
fn of_all_numbers_and_kinds_just_the_markers_are_understood() {
    let understood: Vec<Marker> = (0..=u16::MAX)
        .filter_map(|word| {
            let [number, kind] = word.to_le_bytes();
            Marker::decode(&[0x0f, 0x1f, 0x80, number, kind, 0x01, 0xa7])
        })
        .collect();
    assert_eq!(understood.len(), all().len());
    assert!(all().iter().all(|marker| understood.contains(marker)));
}

#[test]
fn an_instruction_that_differs_in_one_bit_or_in_length_is_no_marker_or_another_one() {
    for marker in all() {
        let bytes = marker.encode();
        for bit in 0..8 * LEN {
            let mut other = bytes;
            other[bit / 8] ^= 1 << (bit % 8);
            let understood = Marker::decode(&other);
            assert_ne!(understood, Some(marker));
            let is_say_or_kind = (3..5).contains(&(bit / 8));
            assert!(understood.is_none() || is_say_or_kind, "{other:x?} taken for {understood:?}");
        }
        for len in 0..LEN {
            assert_eq!(Marker::decode(&bytes[..len]), None);
        }
        assert_eq!(Marker::decode(&[&bytes[..], &[0x90]].concat()), None);
    }
}

use std::collections::BTreeSet;

use atoll_topology::{CpuId, CpuSet, SET_NUMBER_MAX};
use proptest::prelude::*;

fn numbers(set: &CpuSet) -> BTreeSet<u32> {
    set.iter().map(|cpu| cpu.0).collect()
}

proptest! {
    #[test]
    fn a_set_survives_display_and_parse(ids in prop::collection::btree_set(0..=SET_NUMBER_MAX, 0..200)) {
        let set: CpuSet = ids.iter().copied().map(CpuId).collect();
        let read = CpuSet::parse(&set.to_string()).unwrap();
        prop_assert_eq!(numbers(&read), ids);
    }

    #[test]
    fn dense_sets_survive_display_and_parse(ids in prop::collection::btree_set(0u32..40, 0..40)) {
        let set: CpuSet = ids.iter().copied().map(CpuId).collect();
        prop_assert_eq!(numbers(&CpuSet::parse(&set.to_string()).unwrap()), ids);
    }

    #[test]
    fn ranges_in_any_order_overlapping_or_not_are_all_in_the_set(
        ranges in prop::collection::vec((0u32..60, 0u32..10), 1..8)
    ) {
        let text: Vec<String> = ranges.iter().map(|(first, more)| format!("{first}-{}", first + more)).collect();
        let expected: BTreeSet<u32> = ranges.iter().flat_map(|&(first, more)| first..=first + more).collect();
        prop_assert_eq!(numbers(&CpuSet::parse(&text.join(",")).unwrap()), expected);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[-,0-9 a-z\\n\u{e9}]{0,40}") {
        if let Err(error) = CpuSet::parse(&text) {
            prop_assert!(error.to_string().contains("is not a set"));
        }
    }
}

#[test]
fn a_set_is_displayed_in_its_shortest_form() {
    assert_eq!(CpuSet::parse(" 3,1-2,8,10-10\n").unwrap().to_string(), "1-3,8,10");
    assert_eq!(CpuSet::parse("\n").unwrap().to_string(), "");
}

#[test]
fn numbers_out_of_bounds_and_ranges_backwards_are_refused_with_the_reason() {
    let message = |text| CpuSet::parse(text).unwrap_err().to_string();
    assert!(message("65536").contains("65536 is above 65535"), "{}", message("65536"));
    assert!(message("0-4294967295").contains("is above 65535"));
    assert!(message("3-1").contains("the range 3-1 runs backwards"));
    assert!(message("1,,2").contains("'' is not a number"));
    assert!(message("-1").contains("not a number"));
}

#[test]
fn a_list_that_repeats_the_largest_range_costs_no_more_than_its_length() {
    let list = vec!["0-65535"; 100_000].join(",");
    assert_eq!(CpuSet::parse(&list).unwrap().len(), 65_536);
}

#[test]
fn a_long_text_is_cut_in_the_error() {
    let error = CpuSet::parse(&"x".repeat(1_000_000)).unwrap_err();
    assert!(error.to_string().len() < 300);
}

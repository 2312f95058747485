use std::collections::BTreeSet;

use atoll_topology::{NodeId, NodeSet, ResolvedSet, SET_NUMBER_MAX, SetSpec, SetSpecError};
use proptest::prelude::*;

fn set(text: &str) -> NodeSet {
    NodeSet::parse(text).unwrap()
}

fn resolved(text: &str, allowed: &str, all: &str) -> ResolvedSet<NodeId> {
    text.parse::<SetSpec>().unwrap().resolve(&set(allowed), &set(all))
}

/// Usable, forbidden and missing as text.
fn parts(text: &str) -> (String, String, String) {
    let found = resolved(text, "0,2,4-5", "0-5");
    (found.usable.to_string(), found.forbidden.to_string(), found.missing.to_string())
}

#[test]
fn every_notation_means_what_numactl_says() {
    for (text, usable) in [
        ("0", "0"),
        ("0,4-5", "0,4-5"),
        ("all", "0,2,4-5"),
        ("!0", "2,4-5"),
        ("!0,4-5", "2"),
        ("+0", "0"),
        ("+1-2", "2,4"),
        ("+3,0", "0,5"),
        ("!+0", "2,4-5"),
        (" 2 ", "2"),
    ] {
        assert_eq!(parts(text), (usable.into(), String::new(), String::new()), "{text}");
    }
}

#[test]
fn forbidden_and_missing_ids_are_distinguished() {
    assert_eq!(parts("0-3,9"), ("0,2".into(), "1,3".into(), "9".into()));
    assert_eq!(parts("+3-5"), ("5".into(), "".into(), "4-5".into()));
    assert_eq!(parts("!1,9"), ("0,2,4-5".into(), "".into(), "".into()));
}

#[test]
fn ambiguous_notations_are_errors() {
    for text in [
        "",
        "!",
        "+",
        "!+",
        "+!0",
        "!!0",
        "0,+1",
        "0,!1",
        "!all",
        "+all",
        "!same",
        "010",
        "0x3",
        "1-",
        "-1",
        "3-1",
        "0,,1",
        "1-2-3",
        "a",
        "0;1",
        "no:0",
        "65536",
        "99999999999999999999",
    ] {
        assert!(text.parse::<SetSpec>().is_err(), "{text}");
    }
    for text in ["netdev:eth0", "file:/data", "ip:::1", "block:sda", "pci:0:1"] {
        let error = text.parse::<SetSpec>().unwrap_err();
        assert!(matches!(&error, SetSpecError::Device { .. }), "{error}");
        assert!(error.to_string().contains("numa_node"), "{error}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic_and_what_it_reads_reads_back(text in "[-+!,:0-9a-z ]{0,24}|\\PC{0,200}") {
        if let Ok(spec) = text.parse::<SetSpec>() {
            prop_assert_eq!(spec.to_string().parse::<SetSpec>(), Ok(spec));
        }
    }

    #[test]
    fn absolute_relative_and_inverted_sets_agree_with_brute_force(
        numbers in prop::collection::btree_set(0u32..12, 1..8),
        allowed in prop::collection::btree_set(0u32..12, 0..12),
        all in prop::collection::btree_set(0u32..12, 0..12),
    ) {
        let nodes = |ids: &BTreeSet<u32>| ids.iter().copied().map(NodeId).collect::<NodeSet>();
        let list = nodes(&numbers).to_string();
        let found = |sign: &str| {
            format!("{sign}{list}").parse::<SetSpec>().unwrap().resolve(&nodes(&allowed), &nodes(&all))
        };
        let listed: Vec<u32> = allowed.iter().copied().collect();
        let at = |n: &u32| listed.get(*n as usize).copied();
        let in_allowed = |n: &u32| allowed.contains(n);

        let plain = found("");
        prop_assert_eq!(&plain.usable, &nodes(&numbers.iter().copied().filter(in_allowed).collect()));
        for n in &numbers {
            let node = NodeId(*n);
            let places = [&plain.usable, &plain.forbidden, &plain.missing];
            prop_assert_eq!(places.iter().filter(|place| place.contains(node)).count(), 1);
            prop_assert_eq!(plain.missing.contains(node), !in_allowed(n) && !all.contains(n));
        }
        let inverted = allowed.difference(&numbers).copied().collect();
        prop_assert_eq!(found("!").usable, nodes(&inverted));
        prop_assert_eq!(found("+").usable, nodes(&numbers.iter().filter_map(at).collect()));
        let positions = allowed.iter().copied().filter(|id| !numbers.iter().any(|n| at(n) == Some(*id)));
        prop_assert_eq!(found("!+").usable, nodes(&positions.collect()));
    }
}

#[test]
fn the_largest_list_costs_no_more_than_its_numbers() {
    let text = format!("0-{SET_NUMBER_MAX}");
    assert_eq!(parts(&text).0, "0,2,4-5");
}

//! The text of `numactl -H`: what is read survives being written.
#![no_main]

use atoll_formats::numactl::{self, Columns};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(knowledge) = numactl::parse(text, "fuzz.txt") {
        let written = numactl::write(&knowledge.machine, Columns::Wide);
        let again = numactl::parse(&written, "fuzz.txt").unwrap().machine;
        assert_eq!(again.nodes, knowledge.machine.nodes);
    }
});

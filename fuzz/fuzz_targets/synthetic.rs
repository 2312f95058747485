//! Synthetic descriptions, and every picture of the machine that one gives.
#![no_main]

use atoll_formats::render;
use atoll_topology::Machine;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(machine) = Machine::synthetic(text) {
        assert!(!machine.cpus.is_empty());
        // Large machines make long trees: their parsing is what is tested.
        if machine.cpus.len() <= 256 {
            render::tree(&machine);
        }
    }
});

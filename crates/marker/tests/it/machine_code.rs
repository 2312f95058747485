//! The bytes of the functions, read out of this very test program.
#![cfg(target_arch = "x86_64")]

use atoll_marker::{LEN, Marker};

use crate::instruction;

/// This program, as the processor runs it.
fn program() -> Vec<u8> {
    std::fs::read(std::env::current_exe().unwrap()).unwrap()
}

#[test]
fn the_functions_contain_the_instruction_of_every_marker() {
    // Used, so that they are linked. On hardware they do nothing.
    for number in 0..=u8::MAX {
        atoll_marker::open(number);
        atoll_marker::close(number);
        atoll_marker::tag(number, &[1; 5000]);
        atoll_marker::say(number.into());
        atoll_marker::witness(number, &number);
    }
    atoll_marker::ready();
    let program = program();
    let mut found: Vec<Marker> = program.windows(LEN).filter_map(Marker::decode).collect();
    for marker in instruction::all() {
        let at = found.iter().position(|other| *other == marker);
        found.swap_remove(at.unwrap_or_else(|| panic!("{marker:?} is nowhere in the program")));
    }
}

#[test]
fn a_load_of_one_byte_follows_a_tag_and_a_witness_within_the_same_32_bytes() {
    atoll_marker::tag(7, &[1]);
    atoll_marker::witness(7, &1);
    let program = program();
    for wanted in [Marker::Tag(7), Marker::Witness(7)] {
        let bytes = wanted.encode();
        let places = program.windows(LEN).enumerate().filter(|(_, window)| *window == bytes);
        // The same bytes may also stand among the program's data.
        let mut loads = places.map(|(at, _)| at).filter(|at| is_load(&program[at + LEN..]));
        let at = loads.next().unwrap_or_else(|| panic!("no load follows {wanted:?}"));
        // Sections are mapped page for page, so the offset in the file gives the alignment.
        assert!(at % 32 + LEN + 5 <= 32, "at {at:#x}");
    }
}

/// mov r8, r/m8: an optional REX prefix, then 8a.
fn is_load(code: &[u8]) -> bool {
    matches!(code, [0x8a, ..] | [0x40..=0x4f, 0x8a, ..])
}

//! The markers as functions.
//!
//! The number of a region is part of the instruction, so each number has an instruction of its own
//! and a function picks one of them: a few nanoseconds, once for each region.

use core::arch::asm;

/// One marker instruction, in place. Memory accesses are not moved across it.
macro_rules! marker {
    ($number:expr, $kind:expr) => {
        // SAFETY: a NOP; it neither reads nor writes registers, flags or memory.
        unsafe {
            asm!(
                ".byte 0x0f, 0x1f, 0x80, {number}, {kind}, 0x01, 0xa7",
                number = const $number,
                kind = const $kind,
                options(nostack, preserves_flags),
            )
        }
    };
}

/// A marker whose number is known at run time only: one instruction for each value, of which one runs.
macro_rules! pick {
    ($number:expr, $kind:expr, $($value:literal)*) => {
        match $number {
            $($value => marker!($value, $kind),)*
            _ => {}
        }
    };
}

/// Opens region `number` (0 to 63; others do nothing): accesses of all threads and processes of the
/// machine count for it until it is [closed](close). Regions opened by several threads close with the
/// last of them; of several open regions the one opened last counts.
pub fn open(number: u8) {
    pick!(number, 1,
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62
        63);
}

/// Closes region `number`.
pub fn close(number: u8) {
    pick!(number, 2,
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62
        63);
}

/// Gives the pages of `memory` a tag (1 to 15; 0 takes it away; others do nothing), by which the
/// counter tells their accesses apart. Reads one byte of each page, which must be resident: a page
/// that the kernel moves afterwards loses its tag.
pub fn tag(number: u8, memory: &[u8]) {
    const PAGE: usize = 4096;
    let mut at = 0;
    while at < memory.len() {
        tag_page(number, &memory[at]);
        at += PAGE - (memory.as_ptr() as usize + at) % PAGE;
    }
}

/// A marker and the load it speaks of, one right behind the other.
macro_rules! mark_load {
    ($number:expr, $kind:expr, $byte:expr) => {
        // SAFETY: a NOP and a load of one byte through a reference that is valid for it.
        unsafe {
            asm!(
                ".byte 0x0f, 0x1f, 0x80, {number}, {kind}, 0x01, 0xa7",
                "mov {read}, byte ptr [{at}]",
                number = const $number,
                kind = const $kind,
                read = out(reg_byte) _,
                at = in(reg) core::ptr::from_ref::<u8>($byte),
                options(nostack, preserves_flags, readonly),
            )
        }
    };
}

macro_rules! pick_load {
    ($number:expr, $kind:expr, $byte:expr, $($value:literal)*) => {
        match $number {
            $($value => mark_load!($value, $kind, $byte),)*
            _ => {}
        }
    };
}

fn tag_page(number: u8, byte: &u8) {
    pick_load!(number, 3, byte, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
}

/// Tells the counter a number, four bits at a time: with [`witness`] its calibration.
pub fn say(number: u64) {
    for shift in (0..16).rev() {
        pick!((number >> (4 * shift)) & 15, 4, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    }
}

/// Tells the counter that the page of `byte`, whose guest-physical address was just [said](say), lies
/// on node `node` (0 to 63).
pub fn witness(node: u8, byte: &u8) {
    pick_load!(node, 5, byte,
        0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62
        63);
}

/// Ends the calibration: the counter checks that every node had its witnesses.
pub fn ready() {
    marker!(0, 6);
}

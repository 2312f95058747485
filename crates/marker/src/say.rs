//! The markers as functions.
//!
//! The number of a region is part of the instruction, so each number has its own instruction and a function picks one
//! of them: a few nanoseconds, once per region. On architectures other than x86-64 the functions do nothing.

/// One marker instruction, in place. The compiler moves no memory access across it.
#[cfg(target_arch = "x86_64")]
macro_rules! marker {
    ($number:expr, $kind:expr, ()) => {
        // SAFETY: a NOP; it neither reads nor writes registers, flags or memory.
        unsafe {
            core::arch::asm!(
                ".byte 0x0f, 0x1f, 0x80, {number}, {kind}, 0x01, 0xa7",
                number = const $number,
                kind = const $kind,
                options(nostack, preserves_flags),
            )
        }
    };
}

/// A marker, immediately followed by the load it refers to.
///
/// The counter treats the next load of the cpu as the marked one, so nothing may come in between: the load before the
/// marker takes a possible page fault, and all three are in one aligned block of 32 bytes, which the emulator
/// translates as a unit and does not interrupt.
#[cfg(target_arch = "x86_64")]
macro_rules! mark_load {
    ($number:expr, $kind:expr, $byte:expr) => {
        // SAFETY: a NOP and loads of one byte through a reference that is valid for it.
        unsafe {
            core::arch::asm!(
                ".p2align 5",
                "mov {read}, byte ptr [{at}]",
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

#[cfg(not(target_arch = "x86_64"))]
macro_rules! marker {
    ($number:expr, $kind:expr, ()) => {
        ()
    };
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! mark_load {
    ($number:expr, $kind:expr, $byte:expr) => {
        _ = $byte
    };
}

/// Executes the marker for a number known only at run time: there is one instruction per number. Does nothing for
/// other numbers.
macro_rules! pick {
    ($number:expr, $one:ident, $kind:expr, $of:tt; $($value:literal)*) => {
        match $number {
            $($value => $one!($value, $kind, $of),)*
            _ => {}
        }
    };
}

/// [`pick`] among the numbers below 16.
macro_rules! pick_16 {
    ($number:expr, $one:ident, $kind:expr, $of:tt) => {
        pick!($number, $one, $kind, $of; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
}

/// [`pick`] among the numbers below 64.
macro_rules! pick_64 {
    ($number:expr, $one:ident, $kind:expr, $of:tt) => {
        pick!($number, $one, $kind, $of;
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
            32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60
            61 62 63)
    };
}

/// Opens region `number` (0 to 63; others do nothing): accesses of all threads and processes of the
/// machine count for it until it is [closed](close). Regions opened by several threads close with the
/// last of them; of several open regions the one opened last counts.
pub fn open(number: u8) {
    pick_64!(number, marker, 1, ());
}

/// Closes region `number`.
pub fn close(number: u8) {
    pick_64!(number, marker, 2, ());
}

/// Tags the pages of `memory` (1 to 15; 0 removes the tag; others do nothing), so that the counter can distinguish
/// their accesses. Reads a byte of each page; a page that the kernel moves afterwards loses its tag.
pub fn tag(number: u8, memory: &[u8]) {
    for byte in bytes_of_pages(memory) {
        tag_page(number, byte);
    }
}

/// The first byte of `memory` in each page that it overlaps.
fn bytes_of_pages(memory: &[u8]) -> impl Iterator<Item = &u8> {
    const PAGE: usize = 4096;
    let first_len = PAGE - memory.as_ptr().addr() % PAGE;
    let (first, others) = memory.split_at(first_len.min(memory.len()));
    first.iter().take(1).chain(others.iter().step_by(PAGE))
}

fn tag_page(number: u8, byte: &u8) {
    pick_16!(number, mark_load, 3, byte);
}

/// Sends the counter a number, four bits at a time; used with [`witness`] for its calibration. The thread must stay on
/// one cpu until the witness.
pub fn say(number: u64) {
    for shift in (0..16).rev() {
        pick_16!((number >> (4 * shift)) & 15, marker, 4, ());
    }
}

/// Informs the counter that the page of `byte`, whose guest-physical address was just sent by [`say`], is on node
/// `node` (0 to 63).
pub fn witness(node: u8, byte: &u8) {
    pick_64!(node, mark_load, 5, byte);
}

/// Ends the calibration: the counter checks that every node had its witnesses.
pub fn ready() {
    marker!(0, 6, ());
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    /// Offsets in `memory` of the bytes that [`tag`] reads, by its rule put plainly: the first byte of
    /// the memory, then every byte whose address is a multiple of the page.
    fn offsets_by_rule(memory: &[u8]) -> Vec<usize> {
        let start = memory.as_ptr().addr();
        (0..memory.len()).filter(|at| *at == 0 || (start + at).is_multiple_of(4096)).collect()
    }

    #[test]
    fn a_byte_of_each_page_is_read_wherever_the_memory_begins_and_ends() {
        let room = std::vec![0_u8; 5 * 4096];
        let aligned = (4096 - room.as_ptr().addr() % 4096) % 4096;
        for start in [0, 1, 100, 4095] {
            for len in [0, 1, 2, 4095, 4096, 4097, 8191, 8192, 8193, 12_288] {
                let memory = &room[aligned + start..][..len];
                let read = bytes_of_pages(memory)
                    .map(|byte| core::ptr::from_ref(byte).addr() - memory.as_ptr().addr());
                assert_eq!(
                    read.collect::<Vec<_>>(),
                    offsets_by_rule(memory),
                    "{len} bytes from {start}"
                );
            }
        }
    }
}

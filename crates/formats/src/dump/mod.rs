//! A machine's sysfs and procfs in one text file: [`gather`] writes it, [`open`] reads it as a
//! [`Root`](atoll_sys::Root), so that a machine can be looked at where it is not: in a bug report, in
//! a test.
//!
//! ```text
//! atoll-dump 1
//! # a comment
//! /sys/devices/system/cpu/online = 0-3
//! /sys/devices/system/cpu/cpu{0-1}/topology/core_cpus_list = 0-1
//! /sys/devices/system/node/node0/meminfo :
//! | Node 0 MemTotal:        1024 kB
//! | Node 0 MemFree:          512 kB
//! /proc/self/auxv hex 0600000000000000 0010000000000000
//! /sys/devices/system/node/node0/access0/initiators/node0 dir
//! end
//! ```
//!
//! A line names a file and what is in it: `=` one line of text, `:` the lines that follow behind
//! `| `, `hex` bytes, `dir` a directory that may be empty. Text ends with a newline. Braces stand for
//! each number of a set (`{0-3,8}`): files that are equal for many cpus are written once. In names a
//! blank, a brace, a backslash and whatever is not printable is written as `\` and three octal
//! digits per byte, as `/proc/self/mountinfo` does. The last line is `end`, so that a file cut short
//! is noticed.
//!
//! What is written is what the crate reads and what explains it (`files.rs`); serial numbers,
//! mounts and the process's own secrets are left out, and the host name is the caller's to give.

mod entry;
mod files;
mod gather;
mod parse;
mod reduce;
mod write;

pub use gather::gather;
pub use parse::open;

/// First line of a dump, version included.
const FIRST_LINE: &str = "atoll-dump 1";
/// Last line of a dump.
const LAST_LINE: &str = "end";

/// Whether a text says that it is a dump, of whatever version.
pub fn is_dump(text: &str) -> bool {
    text.starts_with("atoll-dump ")
}

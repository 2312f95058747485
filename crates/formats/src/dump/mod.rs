//! A machine's sysfs and procfs in one text file: [`gather`] writes it, [`open`] reads it as a
//! [`Root`](atoll_sys::Root), so that a machine can be inspected elsewhere: in a bug report or a test.
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
//! Each line gives a file and its contents: `=` one line of text, `:` the following lines, each after `| `, `hex`
//! bytes, `dir` a directory that may be empty. Text ends with a newline. Braces expand to each number of a set
//! (`{0-3,8}`): files that are equal for many cpus are written once. In names a space, a brace, a backslash and every
//! unprintable byte is written as `\` and three octal digits, as in `/proc/self/mountinfo`. The last line is `end`, so
//! that a truncated file is detected.
//!
//! A dump holds the files that the crate reads and those that explain them (`files.rs`). Serial numbers, mounts and
//! secrets of the process are left out, and the caller chooses the host name.

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

/// Whether a text is a dump, of any version.
pub fn is_dump(text: &str) -> bool {
    text.starts_with("atoll-dump ")
}

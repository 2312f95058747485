//! Reads values from sysfs and procfs, and records what was wrong with them.
//!
//! No file makes discovery fail: a file that does not exist, cannot be read or cannot be parsed counts as missing, and
//! the reader of the file defines the fallback. Unless kernels are known to lack the file, the
//! [record](KernelFiles::assumptions) has a line about it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Display;

use atoll_sys::{Root, RootError, sched_getaffinity};

use crate::{Bytes, CpuId, CpuSet, IdSet, SET_NUMBER_MAX, mask};

/// Maximum number of lines of the record: if all files are damaged, the first ones suffice.
const ASSUMPTIONS_MAX: usize = 64;
/// Maximum length of a line: lists of cpus may be longer.
const ASSUMPTION_CHARS_MAX: usize = 400;
/// What is assumed for a value that cannot be used.
const AS_MISSING: &str = "treated as missing";

/// The kernel's directory of cpus.
pub(super) const CPU_DIRECTORY: &str = "/sys/devices/system/cpu";

/// A cpu's file, by its name.
pub(super) fn cpu_file(cpu: CpuId, name: &str) -> String {
    format!("{CPU_DIRECTORY}/cpu{cpu}/{name}")
}

/// The kernel's files about a machine.
pub(super) struct KernelFiles<'a> {
    root: &'a Root,
    assumptions: RefCell<Assumptions>,
}

#[derive(Default)]
struct Assumptions {
    lines: Vec<String>,
    known: BTreeSet<String>,
}

impl<'a> KernelFiles<'a> {
    pub(super) fn new(root: &'a Root) -> Self {
        Self { root, assumptions: RefCell::default() }
    }

    /// The assumptions so far, without duplicates, in the order in which they were made.
    pub(super) fn assumptions(self) -> Vec<String> {
        self.assumptions.into_inner().lines
    }

    /// Records that a file is missing or wrong, and what is assumed instead.
    pub(super) fn assume(&self, name: &str, found: impl Display, assumed: impl Display) {
        let line = format!("/{}: {found}; {assumed}", name.trim_start_matches('/'));
        let line: String = line.chars().take(ASSUMPTION_CHARS_MAX).collect();
        let mut assumptions = self.assumptions.borrow_mut();
        if assumptions.lines.len() < ASSUMPTIONS_MAX && assumptions.known.insert(line.clone()) {
            assumptions.lines.push(line);
        }
    }

    /// Records a file with unexpected content.
    pub(super) fn malformed(&self, name: &str, expected: impl Display, found: &str) {
        let found: String = found.trim().chars().take(40).collect();
        let found: String = found.chars().flat_map(char::escape_debug).collect();
        self.assume(name, format_args!("expected {expected}, found '{found}'"), AS_MISSING);
    }

    /// On the live machine: the cpus that the process may run on, from the kernel.
    pub(super) fn cpus_of_this_process(&self) -> CpuSet {
        let granted = if self.root.is_live() { sched_getaffinity(0).ok() } else { None };
        granted.unwrap_or_default().into_iter().map(CpuId).collect()
    }

    pub(super) fn exists(&self, name: &str) -> bool {
        self.root.exists(name)
    }

    /// A file's bytes. Returns None if it does not exist.
    pub(super) fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.read(name, self.root.read_bytes(name))
    }

    /// A text file. Returns None if it does not exist.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.read(name, self.root.read_text(name))
    }

    /// Like [`text`](Self::text), for a file that a container may hide, which is not recorded.
    pub(super) fn visible_text(&self, name: &str) -> Option<String> {
        match self.root.read_text(name) {
            Err(RootError::Denied { .. }) => None,
            other => self.read(name, other),
        }
    }

    fn read<T>(&self, name: &str, read: Result<T, RootError>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(RootError::NotFound { .. }) => None,
            Err(error) => {
                self.assume(name, without_path(&error), AS_MISSING);
                None
            }
        }
    }

    /// Names of a directory's entries in alphabetical order; empty if it does not exist.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        self.read(name, self.root.list(name)).unwrap_or_default()
    }

    /// Numbers of the entries that consist of a prefix and a number, in ascending order.
    pub(super) fn numbered(&self, directory: &str, prefix: &str) -> BTreeSet<u32> {
        let names = self.list(directory);
        let numbers = names.iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok());
        numbers.filter(|&number| number <= SET_NUMBER_MAX).collect()
    }

    /// A file that holds a list of ids (`0-3,8`).
    pub(super) fn list_set<T>(&self, name: &str) -> Option<IdSet<T>>
    where
        T: From<u32> + Into<u32> + Copy,
    {
        self.set_in(name, &self.text(name)?)
    }

    /// Text of a file as a list of ids.
    pub(super) fn set_in<T>(&self, name: &str, text: &str) -> Option<IdSet<T>>
    where
        T: From<u32> + Into<u32> + Copy,
    {
        let set = IdSet::parse(text);
        set.map_err(|error| self.assume(name, error, AS_MISSING)).ok()
    }

    /// A set of ids from its list, or from the equivalent mask of older kernels.
    pub(super) fn list_or_mask<T>(&self, list: &str, mask_file: &str) -> Option<IdSet<T>>
    where
        T: From<u32> + Into<u32> + Copy,
    {
        self.list_set(list).or_else(|| {
            let text = self.text(mask_file)?;
            let set = mask::parse(&text);
            if set.is_none() {
                self.malformed(mask_file, mask::EXPECTED, &text);
            }
            set
        })
    }

    /// A file that holds one whole number.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        let text = self.text(name)?;
        let number = text.trim().parse().ok();
        if number.is_none() {
            self.malformed(name, "a whole number", &text);
        }
        number
    }

    /// A file that holds a non-negative number; `expected` names it.
    pub(super) fn count<T: TryFrom<i64>>(&self, name: &str, expected: &str) -> Option<T> {
        let number = self.number(name)?;
        let count = T::try_from(number).ok();
        if count.is_none() {
            self.malformed(name, expected, &number.to_string());
        }
        count
    }

    /// The value of a line such as `MemTotal:   6252756 kB`, optionally with words before the key.
    pub(super) fn kilobytes(&self, name: &str, text: &str, key: &str) -> Option<Bytes> {
        let value = text.lines().find_map(|line| line.split_once(key)).map(|(_, value)| value);
        let number = value.and_then(|value| value.trim().strip_suffix("kB"));
        let bytes = number
            .and_then(|number| number.trim().parse::<u64>().ok())
            .and_then(|number| number.checked_mul(1024))
            .map(Bytes);
        if bytes.is_none() {
            let expected = "lines such as 'MemTotal: 1024 kB' for MemTotal and MemFree";
            self.malformed(name, expected, value.unwrap_or(text));
        }
        bytes
    }
}

/// The error without the file's path: the record already names the file.
fn without_path(error: &RootError) -> String {
    match error {
        RootError::Denied { .. } => "reading it is not permitted".to_owned(),
        RootError::NotText { position, .. } => format!("not text (byte {position} is not UTF-8)"),
        RootError::TooLarge { limit, .. } => format!("larger than {limit}"),
        RootError::Failed { source, .. } => format!("reading it failed: {source}"),
        other => other.to_string(),
    }
}

//! The input of a check: the machine, the facts and the files.

use std::cell::RefCell;
use std::collections::BTreeMap;

use atoll_sys::{Root, RootError};

use super::{FileReading, Finding};
use crate::{Bytes, IdSet, Knowledge, Machine};

/// Maximum number of characters of a file that a finding quotes.
const VALUE_CHARACTERS_MAX: usize = 80;

/// The machine, the facts and the files.
pub(super) struct Scene<'a> {
    pub(super) knowledge: &'a Knowledge,
    root: &'a Root,
    /// Why existing files could not be used.
    unreadable: RefCell<BTreeMap<String, String>>,
}

impl<'a> Scene<'a> {
    pub(super) fn new(knowledge: &'a Knowledge, root: &'a Root) -> Self {
        Self { knowledge, root, unreadable: RefCell::default() }
    }

    pub(super) fn machine(&self) -> &'a Machine {
        &self.knowledge.machine
    }

    /// Whether the files are those of the live machine.
    pub(super) fn is_live(&self) -> bool {
        self.root.is_live()
    }

    /// Whether a file or directory exists.
    pub(super) fn exists(&self, file: &str) -> bool {
        self.root.exists(file)
    }

    /// A file's text. Returns None if it does not exist or cannot be read.
    pub(super) fn text(&self, file: &str) -> Option<String> {
        match self.root.read_text(file) {
            Ok(text) => Some(text),
            Err(RootError::NotFound { .. }) => None,
            Err(error) => {
                self.cannot_use(file, &error.to_string());
                None
            }
        }
    }

    /// A file of one short value.
    pub(super) fn reading(&self, file: &str) -> Option<FileReading> {
        Some(reading(file, &self.text(file)?))
    }

    /// A file that holds one number.
    pub(super) fn number(&self, file: &str) -> Option<(i64, FileReading)> {
        let reading = self.reading(file)?;
        let number = reading.value.parse().ok();
        if number.is_none() {
            self.cannot_use(file, &format!("expected a number, found '{}'", reading.value));
        }
        Some((number?, reading))
    }

    /// A file that holds a list of cpus or nodes; some kernels write `(null)` for an empty list.
    pub(super) fn set<T>(&self, file: &str) -> Option<(IdSet<T>, FileReading)>
    where
        T: From<u32> + Into<u32> + Copy,
    {
        let reading = self.reading(file)?;
        let list = if reading.value == "(null)" { "" } else { &self.text(file)? };
        match IdSet::parse(list) {
            Ok(set) => Some((set, reading)),
            Err(error) => {
                self.cannot_use(file, &error.to_string());
                None
            }
        }
    }

    /// The choice in brackets of a file such as `always [madvise] never`.
    pub(super) fn chosen(&self, file: &str) -> Option<(String, FileReading)> {
        let reading = self.reading(file)?;
        let chosen = reading.value.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        let Some((chosen, _)) = chosen else {
            self.cannot_use(file, &format!("expected a choice in [], found '{}'", reading.value));
            return None;
        };
        Some((chosen.to_owned(), reading))
    }

    /// A line of a `meminfo` file, of the machine or of a node.
    pub(super) fn kilobytes(&self, file: &str, key: &str) -> Option<(Bytes, FileReading)> {
        let text = self.text(file)?;
        let line = text.lines().find(|line| line.split_whitespace().any(|word| word == key))?;
        let number = line.trim().strip_suffix("kB")?.split_whitespace().next_back()?;
        let bytes = number.parse::<u64>().ok()?.checked_mul(1024)?;
        Some((Bytes(bytes), reading(file, line)))
    }

    fn cannot_use(&self, file: &str, reason: &str) {
        self.unreadable.borrow_mut().insert(file.to_owned(), one_line(reason, usize::MAX));
    }

    /// A note for each existing file that could not be used.
    pub(super) fn unreadable(self) -> Vec<Finding> {
        let why = "What it reports about this machine is unknown.";
        self.unreadable
            .into_inner()
            .into_iter()
            .map(|(file, reason)| {
                let what = format!("Cannot use {file}");
                Finding::note("unknown", what, why).from([FileReading { file, value: reason }])
            })
            .collect()
    }
}

fn reading(file: &str, text: &str) -> FileReading {
    FileReading { file: file.to_owned(), value: one_line(text, VALUE_CHARACTERS_MAX) }
}

/// The text on one line, truncated and without control characters.
fn one_line(text: &str, characters_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain: String = line.chars().filter(|c| !c.is_control()).take(characters_max).collect();
    if plain.len() < line.len() && plain.chars().count() == characters_max {
        return format!("{plain}…");
    }
    plain
}

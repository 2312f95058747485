//! The levels of a synthetic description, with the bounds that keep hostile text small.

use super::SyntheticError;
use super::cursor::TextCursor;
use crate::Bytes;
use crate::builder::{CPUS_MAX, NODES_MAX};

/// Names of the levels from the outside in; the first of each is the one in messages.
const NAMES: [&[&str]; 5] = [
    &["pack", "package", "socket"],
    &["node", "numa", "numanode"],
    &["l3", "l3cache", "domain"],
    &["core"],
    &["pu", "cpu"],
];
const LEVEL_EXPECTED: &str = "a level (pack, node, l3, core or pu)";

/// Units of sizes as hwloc reads them: decimal, and binary with an `i`.
const UNITS: [(&str, u64); 10] = [
    ("", 1),
    ("B", 1),
    ("kB", 1000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
];

/// How many of a level there are in each of the level above.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LevelCount {
    given: Option<u32>,
    size: Option<Bytes>,
}

impl LevelCount {
    /// The number; one where the level is left out.
    pub(super) fn count(&self) -> u32 {
        self.given.unwrap_or(1)
    }

    pub(super) fn is_given(&self) -> bool {
        self.given.is_some()
    }

    /// Memory of a node, size of a cache.
    pub(super) fn size(&self) -> Option<Bytes> {
        self.size
    }
}

/// All levels. Their product is at most [`CPUS_MAX`], that of `pack` and `node` at most
/// [`NODES_MAX`].
#[derive(Debug, Default)]
pub(super) struct Levels {
    pub(super) pack: LevelCount,
    pub(super) node: LevelCount,
    pub(super) l3: LevelCount,
    pub(super) core: LevelCount,
    pub(super) pu: LevelCount,
}

impl Levels {
    /// Reads a description.
    pub(super) fn parse(text: &str) -> Result<Self, SyntheticError> {
        let mut cursor = TextCursor::new(text);
        let mut levels = Self::default();
        let mut innermost = None;
        cursor.blanks();
        loop {
            innermost = Some(levels.level(&mut cursor, innermost)?);
            let blanks = cursor.blanks();
            if cursor.is_at_end() {
                return Ok(levels);
            }
            if !blanks {
                return Err(cursor.error("a blank and the next level"));
            }
        }
    }

    /// Reads a level such as `node:2(memory=16GB)`, which must lie inside the one read before.
    fn level(
        &mut self,
        cursor: &mut TextCursor<'_>,
        before: Option<usize>,
    ) -> Result<usize, SyntheticError> {
        let start = cursor.at();
        let name = cursor.take_while(char::is_alphanumeric);
        let Some(level) = level_named(name) else {
            return Err(cursor.error_at(start, LEVEL_EXPECTED));
        };
        if let Some(before) = before.filter(|&before| level <= before) {
            return Err(cursor.error_at(start, inside(before)));
        }
        if !cursor.take(':') {
            return Err(cursor.error(format!("':' and a number after {name}")));
        }
        let given = number(cursor, self.room(level))?;
        let size = attributes(cursor, level)?;
        *self.count_mut(level) = LevelCount { given: Some(given), size };
        Ok(level)
    }

    /// The largest number a level may have after those read before it.
    fn room(&self, level: usize) -> u32 {
        let limit = if level <= 1 { NODES_MAX } else { CPUS_MAX };
        let all = [self.pack, self.node, self.l3, self.core, self.pu];
        all.iter().fold(limit, |room, level| room / level.count())
    }

    fn count_mut(&mut self, level: usize) -> &mut LevelCount {
        match level {
            0 => &mut self.pack,
            1 => &mut self.node,
            2 => &mut self.l3,
            3 => &mut self.core,
            _ => &mut self.pu,
        }
    }
}

fn level_named(name: &str) -> Option<usize> {
    NAMES.iter().position(|names| names.iter().any(|known| known.eq_ignore_ascii_case(name)))
}

fn inside(level: usize) -> String {
    let names: Vec<&str> = NAMES[level + 1..].iter().map(|names| names[0]).collect();
    match names.as_slice() {
        [] => format!("the end after {}, the innermost level", NAMES[level][0]),
        names => format!("a level inside {} ({})", NAMES[level][0], names.join(", ")),
    }
}

fn at_most(limit: u32) -> String {
    match limit {
        1 => format!("1 (a machine has at most {NODES_MAX} nodes and {CPUS_MAX} cpus)"),
        _ => format!(
            "a number from 1 to {limit} (a machine has at most {NODES_MAX} nodes and {CPUS_MAX} cpus)"
        ),
    }
}

fn number(cursor: &mut TextCursor<'_>, limit: u32) -> Result<u32, SyntheticError> {
    let start = cursor.at();
    match cursor.take_while(|character| character.is_ascii_digit()).parse() {
        Ok(number) if (1..=limit).contains(&number) => Ok(number),
        _ => Err(cursor.error_at(start, at_most(limit))),
    }
}

/// Reads `(memory=16GB)` after a node or `(size=32MiB)` after a cache, if there is one.
fn attributes(cursor: &mut TextCursor<'_>, level: usize) -> Result<Option<Bytes>, SyntheticError> {
    if !cursor.take('(') {
        return Ok(None);
    }
    let known = match level {
        1 => "memory",
        2 => "size",
        _ => {
            let expected =
                format!("no attributes after {}; node has memory=, l3 has size=", NAMES[level][0]);
            return Err(cursor.error(expected));
        }
    };
    let start = cursor.at();
    if cursor.take_while(char::is_alphanumeric) != known || !cursor.take('=') {
        return Err(cursor.error_at(start, format!("{known}= and a size")));
    }
    let size = size(cursor)?;
    match cursor.take(')') {
        true => Ok(Some(size)),
        false => Err(cursor.error("')' after the size")),
    }
}

/// Reads a size such as `16GB` or `32MiB`; plain numbers are bytes.
fn size(cursor: &mut TextCursor<'_>) -> Result<Bytes, SyntheticError> {
    let start = cursor.at();
    let number = cursor.take_while(|character| character.is_ascii_digit()).parse::<u64>();
    let unit = cursor.take_while(char::is_alphabetic);
    let unit = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
    let bytes = number.ok().zip(unit).and_then(|(number, (_, unit))| number.checked_mul(*unit));
    bytes.map(Bytes).ok_or_else(|| {
        cursor.error_at(start, "a size below 16 EiB in B, kB, KiB, MB, MiB, GB, GiB, TB or TiB")
    })
}

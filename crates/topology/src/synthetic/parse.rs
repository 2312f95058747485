//! Parses text into levels, with limits against hostile input.

use super::SyntheticError;
use super::cursor::TextCursor;
use super::level::{AttachedNode, Attributes, IndexesText, Level, LevelKind};
use crate::Bytes;
use crate::builder::{CPUS_MAX, NODES_MAX};

const LEVEL_EXPECTED: &str = "a level (pack, die, group, node, l1 to l5, core or pu) or [numa]";

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

/// A parsed description.
#[derive(Debug, Default)]
pub(super) struct Description<'a> {
    /// Attributes of the machine as a whole.
    pub(super) machine: Attributes<'a>,
    /// From the outside in, the cpus last.
    pub(super) levels: Vec<Level<'a>>,
    /// In order of appearance.
    pub(super) attached: Vec<AttachedNode>,
    /// The numbering of the attached nodes of all levels together.
    pub(super) attached_indexes: Option<IndexesText<'a>>,
    /// Positions of the levels that are only a number.
    unnamed: Vec<usize>,
    attached_total: u32,
}

impl<'a> Description<'a> {
    /// Parses a description.
    pub(super) fn parse(text: &'a str) -> Result<Self, SyntheticError> {
        let mut cursor = TextCursor::new(text);
        let mut description = Self::default();
        cursor.blanks();
        description.machine = attributes(&mut cursor, LevelKind::Node)?;
        cursor.blanks();
        loop {
            let attached = cursor.take('[');
            match attached {
                true => description.attached(&mut cursor)?,
                false => description.level(&mut cursor)?,
            }
            let blanks = cursor.blanks();
            if cursor.is_at_end() {
                break;
            }
            if !blanks && !attached && !cursor.is_next('[') {
                return Err(cursor.error("a blank and the next level"));
            }
        }
        description.finish(&cursor)?;
        Ok(description)
    }

    /// Reads a level such as `node:2(memory=16GB)`, or only its number.
    fn level(&mut self, cursor: &mut TextCursor<'a>) -> Result<(), SyntheticError> {
        let start = cursor.at();
        let kind = match cursor.is_next_digit() {
            true => {
                self.unnamed.push(self.levels.len());
                LevelKind::Group
            }
            false => {
                let name = cursor.take_while(char::is_alphanumeric);
                let kind = LevelKind::named(name);
                let kind = kind.ok_or_else(|| cursor.error_at(start, LEVEL_EXPECTED))?;
                if !cursor.take(':') {
                    return Err(cursor.error(format!("':' and a number after {name}")));
                }
                kind
            }
        };
        self.check_place(kind, cursor, start)?;
        let limit = if self.is_bounded_as_nodes(kind) { NODES_MAX } else { CPUS_MAX };
        let count = number(cursor, limit / self.total())?;
        let attributes = attributes(cursor, kind)?;
        self.levels.push(Level { kind, total: self.total() * count, attributes });
        Ok(())
    }

    /// Every level except groups may appear once, and nothing inside the cpus.
    fn check_place(
        &self,
        kind: LevelKind,
        cursor: &TextCursor<'_>,
        start: usize,
    ) -> Result<(), SyntheticError> {
        if self.levels.last().is_some_and(|level| level.kind == LevelKind::Pu) {
            return Err(cursor.error_at(start, "the end after pu, the innermost level"));
        }
        let twice = kind != LevelKind::Group && self.levels.iter().any(|level| level.kind == kind);
        if twice {
            return Err(
                cursor.error_at(start, format!("another level, as {} stands once", kind.name()))
            );
        }
        Ok(())
    }

    /// Packages count as nodes too, since without a node level every package may become one.
    fn is_bounded_as_nodes(&self, kind: LevelKind) -> bool {
        matches!(kind, LevelKind::Package | LevelKind::Node)
    }

    /// Objects of the innermost level so far.
    fn total(&self) -> u32 {
        self.levels.last().map_or(1, |level| level.total)
    }

    /// Reads `NUMANode(memory=1GB)]`.
    fn attached(&mut self, cursor: &mut TextCursor<'a>) -> Result<(), SyntheticError> {
        let start = cursor.at();
        cursor.blanks();
        let name = cursor.take_while(char::is_alphanumeric);
        if LevelKind::named(name) != Some(LevelKind::Node) {
            return Err(cursor.error_at(start, "NUMANode in brackets"));
        }
        let Attributes { size, side_cache, indexes } = attributes(cursor, LevelKind::Node)?;
        if !cursor.take(']') {
            return Err(cursor.error("']' after the node"));
        }
        self.attached_total += self.total();
        if self.attached_total > NODES_MAX {
            return Err(cursor.error_at(start, format!("at most {NODES_MAX} nodes in all")));
        }
        self.attached_indexes = indexes.or(self.attached_indexes);
        let depth = self.levels.len();
        self.attached.push(AttachedNode { depth, memory: size, side_cache });
        Ok(())
    }

    /// Names the levels that are only numbers, and adds the cpus if they are left out.
    fn finish(&mut self, cursor: &TextCursor<'_>) -> Result<(), SyntheticError> {
        let count = self.levels.len();
        if self.unnamed.len() == count && count > 0 {
            let kinds = LevelKind::unnamed(count - 1, !self.attached.is_empty());
            for (level, kind) in
                self.levels.iter_mut().zip(kinds.into_iter().chain([LevelKind::Pu]))
            {
                level.kind = kind;
            }
        } else if let ([only], Some(last)) = (&self.unnamed[..], self.levels.last_mut())
            && *only == count - 1
        {
            last.kind = LevelKind::Pu;
        } else if !self.unnamed.is_empty() {
            return Err(cursor.error_at(0, "a name for every level but the last, or for none"));
        }
        let has_nodes = self.levels.iter().any(|level| level.kind == LevelKind::Node);
        if has_nodes && !self.attached.is_empty() {
            return Err(cursor.error_at(0, "nodes as a level or in brackets, not both"));
        }
        if self.levels.last().is_none_or(|level| level.kind != LevelKind::Pu) {
            let total = self.total();
            let attributes = Attributes::default();
            self.levels.push(Level { kind: LevelKind::Pu, total, attributes });
        }
        Ok(())
    }
}

fn at_most(limit: u32) -> String {
    match limit {
        0 => format!("fewer nodes and cpus (at most {NODES_MAX} nodes and {CPUS_MAX} cpus)"),
        1 => format!("1 (a machine has at most {NODES_MAX} nodes and {CPUS_MAX} cpus)"),
        _ => format!(
            "a number from 1 to {limit} (a machine has at most {NODES_MAX} nodes and {CPUS_MAX} cpus)"
        ),
    }
}

/// A number, decimal or hexadecimal with `0x`.
fn number(cursor: &mut TextCursor<'_>, limit: u32) -> Result<u32, SyntheticError> {
    let start = cursor.at();
    let text = cursor.take_while(|character| character.is_ascii_alphanumeric());
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let parsed = match hexadecimal {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => digits.parse().ok(),
    };
    if hexadecimal.is_none() {
        cursor.back_to(start + digits.len());
    }
    let parsed = parsed.filter(|number| (1..=limit).contains(number));
    parsed.ok_or_else(|| cursor.error_at(start, at_most(limit)))
}

/// Reads attributes such as `(memory=16GB indexes=0,2,1,3)`, if there are some.
fn attributes<'a>(
    cursor: &mut TextCursor<'a>,
    kind: LevelKind,
) -> Result<Attributes<'a>, SyntheticError> {
    let mut attributes = Attributes::default();
    if !cursor.take('(') {
        return Ok(attributes);
    }
    loop {
        let end = attribute(cursor, kind, &mut attributes)?;
        let blanks = cursor.blanks();
        if cursor.take(')') {
            return Ok(attributes);
        }
        if !blanks {
            return Err(cursor.error(end));
        }
    }
}

/// Reads one attribute; returns what may follow.
fn attribute<'a>(
    cursor: &mut TextCursor<'a>,
    kind: LevelKind,
    attributes: &mut Attributes<'a>,
) -> Result<&'static str, SyntheticError> {
    let start = cursor.at();
    let name = cursor.take_while(char::is_alphanumeric);
    let has_value = cursor.take('=');
    match (kind, name) {
        (LevelKind::Node, "memory") | (LevelKind::Cache { .. }, "size") if has_value => {
            attributes.size = Some(size(cursor)?);
        }
        (LevelKind::Node, "memorysidecachesize") if has_value => {
            attributes.side_cache = Some(size(cursor)?);
        }
        (_, "indexes") if has_value => {
            let at = cursor.at();
            let text = cursor.take_while(|character| !" )]".contains(character));
            attributes.indexes = Some(IndexesText { text, at });
            return Ok("')' after the indexes");
        }
        _ => return Err(cursor.error_at(start, attributes_of(kind))),
    }
    Ok("')' after the size")
}

fn attributes_of(kind: LevelKind) -> String {
    match kind {
        LevelKind::Node => {
            "memory= and a size, memorysidecachesize= and a size, or indexes=".to_owned()
        }
        LevelKind::Cache { .. } => "size= and a size, or indexes=".to_owned(),
        other => format!("indexes= after {}", other.name()),
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

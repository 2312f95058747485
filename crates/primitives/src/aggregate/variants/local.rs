//! Local tables, for few groups and for keys that fit no word: each input has its own table, and outputs merge them.
//! Only groups are shuffled.
//!
//! The first output to arrive merges few groups. Many groups are merged in pieces, for which the groups of each table
//! were sorted, or in parts of the range of words that all tables share.

use atoll_topology::NodeId;

use super::pull::Pull;
use super::ring::Ring;
use crate::PrimitiveError;
use crate::aggregate::key_records::KeyColumns;
use crate::aggregate::reader::Reader;
use crate::aggregate::stream::{Collected, Kept, MergedBy, PiecePart};
use crate::aggregate::table::{GroupTable, TableShape};

/// An output that merges tables.
pub(in crate::aggregate) fn reader(output: usize, home: Option<NodeId>) -> Box<dyn Reader> {
    Box::new(Pull::new(Ring, output, home))
}

/// The specification of a table for a part of all tables, the largest of which has this many groups; None without
/// tables.
pub(in crate::aggregate) fn shape(
    inputs: &[Collected],
    merging: MergedBy,
    of: PiecePart,
    groups: usize,
) -> Option<TableShape> {
    let mut tables = inputs.iter().filter_map(|input| match input.kept() {
        Kept::Table(table) => Some(&**table),
        Kept::Pieced { tables, .. } => tables.first().map(|full| &full.table),
        Kept::Nothing | Kept::Dealt(_) => None,
    });
    let first = tables.next()?;
    match merging {
        MergedBy::Range => first.range_shape(of.piece, of.pieces),
        MergedBy::All if tables.all(|table| table.has_range_of(first)) => {
            first.range_shape(0, 1).or_else(|| Some(first.shape(groups / 2)))
        }
        MergedBy::All | MergedBy::Piece => Some(first.shape(groups / of.pieces / 2)),
    }
}

/// Adds an input's groups of a part to a table.
pub(in crate::aggregate) fn merge(
    table: &mut GroupTable,
    kept: &Kept,
    of: PiecePart,
    merging: MergedBy,
    columns: &mut KeyColumns,
    check: &dyn Fn() -> Result<(), PrimitiveError>,
) -> Result<(), PrimitiveError> {
    match kept {
        Kept::Table(more) if merging == MergedBy::Range => {
            table.merge_groups(more.as_ref(), &more.in_range(of.piece, of.pieces), check)
        }
        Kept::Table(more) => table.merge(more.as_ref(), check),
        Kept::Pieced { tables, rows } => {
            for more in tables {
                table.merge_groups(&more.table, &more.groups(of.piece), check)?;
            }
            rows.as_ref().map_or(Ok(()), |rows| rows.update(table, of.piece, columns, check))
        }
        Kept::Nothing | Kept::Dealt(_) => Ok(()),
    }
}

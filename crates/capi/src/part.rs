//! `atoll_part` as parts over the same memory.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use atoll_primitives::Part;
use atoll_topology::{Machine, NodeId};

use crate::column::Column;
use crate::failure::{CallFailure, Code};
use crate::foreign;

/// `atoll_part`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RowsPart {
    /// Node, or `ATOLL_NO_HOME`.
    pub home: i32,
    /// Number of columns.
    pub column_count: u32,
    /// The columns.
    pub columns: *const Column,
}

/// `ATOLL_NO_HOME`.
const NO_HOME: i32 = -1;

/// Parts over the caller's memory, and their schema.
///
/// # Safety
/// As atoll.h says of parts, for the time of the call.
pub(crate) unsafe fn parts(
    machine: &Machine,
    parts: *const RowsPart,
    count: usize,
) -> Result<(Vec<Part>, SchemaRef), CallFailure> {
    // SAFETY: the caller's promise, here and below.
    let given = unsafe { foreign::slice("parts", parts, count)? };
    if given.is_empty() {
        return Err(CallFailure::invalid("no parts; pass at least one, which may be empty"));
    }
    let mut made: Vec<Part> = Vec::with_capacity(given.len());
    for (number, part) in given.iter().enumerate() {
        // SAFETY: the same.
        let part = unsafe { self::part(machine, part, made.first()) };
        made.push(part.map_err(|failure| at(&format!("part {number}"), failure))?);
    }
    let schema = made[0].rows.schema();
    Ok((made, schema))
}

/// # Safety
/// As [`parts`].
unsafe fn part(
    machine: &Machine,
    part: &RowsPart,
    first: Option<&Part>,
) -> Result<Part, CallFailure> {
    let home = match part.home {
        NO_HOME => None,
        node => Some(self::node(machine, node)?),
    };
    // SAFETY: the caller's promise, here and below.
    let given = unsafe { foreign::slice("columns", part.columns, part.column_count as usize)? };
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(given.len());
    for (number, column) in given.iter().enumerate() {
        // SAFETY: the same.
        let column = unsafe { column.array() };
        columns.push(column.map_err(|failure| at(&format!("column {number}"), failure))?);
    }
    let rows = columns.first().map_or(0, |column| column.len());
    if let Some(odd) = columns.iter().position(|column| column.len() != rows) {
        let found = columns[odd].len();
        let text = format!("column {odd} has {found} values, and column 0 has {rows}");
        return Err(CallFailure::invalid(text));
    }
    let types = || columns.iter().map(|column| column.data_type());
    let schema = match first {
        None => schema(types()),
        Some(first) => {
            let schema = first.rows.schema();
            let expected: Vec<&DataType> =
                schema.fields().iter().map(|it| it.data_type()).collect();
            let found: Vec<&DataType> = types().collect();
            if expected != found {
                let text = format!("columns of types {found:?}; the first part has {expected:?}");
                return Err(CallFailure::invalid(text));
            }
            schema
        }
    };
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let rows = RecordBatch::try_new_with_options(schema, columns, &options);
    Ok(Part::new(home, rows.map_err(|error| CallFailure::new(Code::Defect, error))?))
}

fn schema<'a>(types: impl Iterator<Item = &'a DataType>) -> SchemaRef {
    let field = |(at, of): (usize, &DataType)| Field::new(format!("column {at}"), of.clone(), true);
    Arc::new(Schema::new(types.enumerate().map(field).collect::<Vec<_>>()))
}

fn node(machine: &Machine, node: i32) -> Result<NodeId, CallFailure> {
    let found = u32::try_from(node).ok().and_then(|node| machine.node(NodeId(node)));
    found.map(|node| node.id).ok_or_else(|| {
        let nodes: Vec<String> = machine.nodes.iter().map(|node| node.id.to_string()).collect();
        let nodes = nodes.join(", ");
        let text = format!("node {node} does not exist; expected one of {nodes}, or ATOLL_NO_HOME");
        CallFailure::invalid(text)
    })
}

/// Column positions of the caller.
///
/// # Safety
/// As [`foreign::slice`].
pub(crate) unsafe fn positions(
    what: &str,
    at: *const u32,
    count: usize,
) -> Result<Vec<usize>, CallFailure> {
    // SAFETY: the caller's promise.
    let positions = unsafe { foreign::slice(what, at, count)? };
    Ok(positions.iter().map(|position| *position as usize).collect())
}

/// The same failure, with its location.
pub(crate) fn at(place: &str, failure: CallFailure) -> CallFailure {
    CallFailure { text: format!("{place}, {}", failure.text), ..failure }
}

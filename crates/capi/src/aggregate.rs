//! Grouping and aggregating.

use std::ffi::c_int;

use arrow_schema::Schema;
use atoll_primitives::Part;
use atoll_primitives::aggregate::{Aggregate, Query, Variant, aggregate};

use crate::column::{Column, INT64};
use crate::context::{self, Context};
use crate::failure::CallFailure;
use crate::foreign;
use crate::part::{RowsPart, parts, positions};
use crate::result::{ResultBlock, Rows, giving};

/// `atoll_function`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Function {
    /// `ATOLL_SUM` and the others.
    pub function: u32,
    /// Position of its column.
    pub column: u32,
}

/// `atoll_aggregation`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Aggregation {
    /// The rows.
    pub parts: *const RowsPart,
    /// Number of parts.
    pub part_count: usize,
    /// Positions of the key columns.
    pub keys: *const u32,
    /// Number of key columns.
    pub key_count: usize,
    /// What is computed.
    pub functions: *const Function,
    /// Number of functions.
    pub function_count: usize,
    /// `ATOLL_AUTO` and the others.
    pub variant: u32,
}

impl Function {
    fn aggregate(self) -> Result<Aggregate, CallFailure> {
        use atoll_primitives::aggregate::Function as F;
        let functions = [F::CountRows, F::Count, F::Sum, F::Min, F::Max, F::Avg];
        let function = functions.get(self.function as usize).copied().ok_or_else(|| {
            let number = self.function;
            CallFailure::invalid(format!(
                "unknown aggregate function {number}; expected ATOLL_COUNT_ROWS (0) to ATOLL_AVG \
                 (5)"
            ))
        })?;
        Ok(Aggregate { function, column: self.column as usize })
    }
}

fn variant(number: u32) -> Result<Variant, CallFailure> {
    Variant::ALL.get(number as usize).copied().ok_or_else(|| {
        CallFailure::invalid(format!(
            "unknown aggregation variant {number}; expected ATOLL_AUTO (0) \
                                  to ATOLL_MIGRATE_COPY (5)"
        ))
    })
}

fn run(
    context: &atoll_primitives::Context,
    query: &Query,
    (parts, schema): (&[Part], &Schema),
    variant: Variant,
) -> Result<Rows, CallFailure> {
    let outcome = context::wait(context, aggregate(context, query, schema, parts, variant))?;
    let blocks: Result<Vec<ResultBlock>, CallFailure> =
        outcome.batches.iter().map(ResultBlock::from_batch).collect();
    Ok(Rows::new(blocks?, outcome.schema.fields().len(), &outcome.reason))
}

/// Groups and aggregates.
///
/// # Safety
/// As atoll.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atoll_aggregate(
    context: *mut Context,
    aggregation: *const Aggregation,
    result: *mut *mut Rows,
) -> c_int {
    let work = || {
        // SAFETY: the caller's promise, here and below.
        let context = unsafe { context::of_call(context)? };
        // SAFETY: the same.
        let given = unsafe { foreign::one("aggregation", aggregation)? };
        // SAFETY: the same.
        let keys = unsafe { positions("keys", given.keys, given.key_count)? };
        // SAFETY: the same.
        let functions =
            unsafe { foreign::slice("functions", given.functions, given.function_count)? };
        let aggregates: Result<_, CallFailure> =
            functions.iter().map(|it| it.aggregate()).collect();
        let query = Query { keys, aggregates: aggregates? };
        let variant = variant(given.variant)?;
        let machine = context.runtime().machine();
        // SAFETY: the same.
        let (parts, schema) = unsafe { parts(machine, given.parts, given.part_count)? };
        run(&context, &query, (&parts, &schema), variant)
    };
    // SAFETY: the same.
    unsafe { giving(result, work) }
}

/// One sum of a column of integers by another.
///
/// # Safety
/// As atoll.h says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn atoll_aggregate_sum_i64(
    context: *mut Context,
    keys: *const i64,
    values: *const i64,
    rows: usize,
    result: *mut *mut Rows,
) -> c_int {
    let work = || {
        // SAFETY: the caller's promise, here and below.
        let context = unsafe { context::of_call(context)? };
        let columns =
            [Column::fixed(INT64, keys.cast(), rows), Column::fixed(INT64, values.cast(), rows)];
        let part = RowsPart { home: -1, column_count: 2, columns: columns.as_ptr() };
        // SAFETY: the same; column and part live as long as the function.
        let (parts, schema) = unsafe { parts(context.runtime().machine(), &raw const part, 1)? };
        let function = atoll_primitives::aggregate::Function::Sum;
        let query = Query { keys: vec![0], aggregates: vec![Aggregate { function, column: 1 }] };
        run(&context, &query, (&parts, &schema), Variant::Auto)
    };
    // SAFETY: the same.
    unsafe { giving(result, work) }
}

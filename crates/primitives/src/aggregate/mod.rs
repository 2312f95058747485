//! Grouping and aggregating: `SELECT keys, aggregates FROM parts GROUP BY keys`.
//!
//! [`aggregate`] takes rows where they lie and estimates the number of groups; [`choose`] then picks one of the
//! [`Variant`]s. Each has a file of its name and implements one trait (`reader`):
//!
//! | variant | what crosses the machine |
//! |---|---|
//! | `local` | each worker's groups, at the end |
//! | `naive` | rows; all workers at one node's memory at a time |
//! | `ring` | rows; workers spread over all nodes |
//! | `migrate` | workers; their tables stay |
//! | `migrate_copy` | workers with their tables |
//!
//! The last four are those of Li et al. 2013, section 4.3. One engine, a [`Stage`], handles rows that arrive batch by
//! batch; [`aggregate`] makes each worker an input and an output of one. [`SortedGroups`] is for rows that arrive
//! sorted.
//!
//! ```
//! # use std::sync::Arc;
//! # use arrow_array::cast::AsArray;
//! # use arrow_array::types::Int64Type;
//! # use arrow_array::{Int64Array, RecordBatch};
//! # use arrow_schema::{DataType, Field, Schema};
//! # use atoll_placement::{Arena, LiveKernel};
//! # use atoll_runtime::{Runtime, RuntimeOptions};
//! # use atoll_topology::Machine;
//! use atoll_primitives::aggregate::{Aggregate, Function, Query, Variant, aggregate};
//! use atoll_primitives::{Context, Part};
//! # let machine = Arc::new(Machine::discover()?);
//! # let kernel = Arc::new(LiveKernel::new());
//! # let arena = Arena::new(machine.clone(), kernel.clone(), None);
//! # let runtime = Runtime::start(machine, kernel, RuntimeOptions::default())?;
//! let schema = Arc::new(Schema::new(vec![
//!     Field::new("year", DataType::Int64, false),
//!     Field::new("sales", DataType::Int64, true),
//! ]));
//! let years = Int64Array::from(vec![2012, 2013, 2012]);
//! let sales = Int64Array::from(vec![Some(5), None, Some(7)]);
//! let rows = RecordBatch::try_new(schema.clone(), vec![Arc::new(years), Arc::new(sales)])?;
//! // One part or more for the rows of each node; here their homes are unknown.
//! let parts = [Part::new(None, rows)];
//!
//! let sum = Aggregate { function: Function::Sum, column: 1 };
//! let query = Query { keys: vec![0], aggregates: vec![sum] };
//! let context = Context::new(runtime.clone(), arena);
//! let outcome =
//!     runtime.block_on(aggregate(&context, &query, &schema, &parts, Variant::Auto))?;
//!
//! println!("{}", outcome.reason); // local: 3 rows are not worth dealing
//! let [groups] = &outcome.batches[..] else { panic!("few groups come in one batch") };
//! let years = groups.column(0).as_primitive::<Int64Type>();
//! let sums = groups.column(1).as_primitive::<Int64Type>();
//! let at = years.values().iter().position(|year| *year == 2012).unwrap();
//! assert_eq!((groups.num_rows(), sums.value(at)), (2, 12));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch;
mod choose;
mod estimate;
mod function;
mod input;
mod key_records;
mod keys;
mod lane;
mod packing;
mod plan;
mod ranges;
mod reader;
mod records;
mod report;
mod rows;
mod runs;
mod state;
mod stream;
mod table;
mod total;
mod variants;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};

pub use choose::{Choice, DIRECTORY, Predicted, WorkerNodes, Workload, choose, predict};
pub use estimate::KeySample;
pub use function::{Aggregate, Function, Query, quotient_type};
pub use packing::KeyRange;
pub use reader::Visit;
pub use report::{Phase, Spent};
pub use runs::SortedGroups;
pub use stream::{Collected, Collector, Ended, Expected, Gathered, Next, Outputs, Stage};
pub use variants::Variant;

use crate::{Context, Part, PrimitiveError};

/// Result of an aggregation.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The groups, each in one batch, in no order.
    pub batches: Vec<RecordBatch>,
    /// Their columns: keys, then aggregates.
    pub schema: SchemaRef,
    /// The variant that ran.
    pub variant: Variant,
    /// Why it was chosen.
    pub reason: String,
    /// Its phases in order.
    pub phases: Vec<Phase>,
}

/// Groups the rows of all parts, which all have this schema, and aggregates each group.
///
/// Null is a key like any other; 0.0 and −0.0 are the same key, and each NaN is the key of its bits. Dictionaries are
/// returned as their values. A variant that the query does not allow (keys that fit no 64-bit word, or more values than
/// fit a record) runs as [`Variant::Local`], and the outcome's reason says so.
///
/// # Errors
/// [`PrimitiveError::Type`], [`PrimitiveError::Shape`] for parts of another schema,
/// [`PrimitiveError::Overflow`], [`PrimitiveError::Memory`], [`PrimitiveError::Cancelled`].
pub async fn aggregate(
    context: &Context,
    query: &Query,
    schema: &Schema,
    parts: &[Part],
    variant: Variant,
) -> Result<Outcome, PrimitiveError> {
    batch::run(context, query, schema, parts, variant).await
}

//! A join whose result is record batches.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow_schema::{Field, Schema, SchemaRef};
use arrow_select::interleave::interleave;
use atoll_runtime::WorkerId;

use super::{JoinInput, JoinKind, Joined, Matches, Payload, hash_join};
use crate::{Context, PrimitiveError};

/// Maximum number of rows of a result batch.
const BATCH_ROWS: usize = 8192;

/// Joins two sides and gathers the columns of both: the left ones, then the right ones; a semi or anti join returns
/// those of its own side only. The batches are in no particular order, in memory of the general allocator.
///
/// # Errors
/// As [`hash_join`]; [`PrimitiveError::Shape`] for a side without parts, whose columns are unknown.
///
/// ```
/// # use std::sync::Arc;
/// # use atoll_placement::{Arena, LiveKernel};
/// # use atoll_runtime::{Runtime, RuntimeOptions};
/// # use atoll_topology::Machine;
/// use arrow_array::{ArrayRef, RecordBatch, StringArray};
/// use atoll_primitives::join::{JoinInput, JoinKind, hash_join_batches};
/// use atoll_primitives::{Context, Part};
/// # let machine = Arc::new(Machine::discover()?);
/// # let kernel = Arc::new(LiveKernel::new());
/// # let arena = Arena::new(machine.clone(), kernel.clone(), None);
/// # let context = Context::new(Runtime::start(machine, kernel, RuntimeOptions::default())?, arena);
/// let side = |names: Vec<&str>| -> Result<JoinInput, arrow_schema::ArrowError> {
///     let names: ArrayRef = Arc::new(StringArray::from(names));
///     let rows = RecordBatch::try_from_iter([("name", names)])?;
///     Ok(JoinInput::new(vec![Part::new(None, rows)], [0]))
/// };
/// let (left, right) = (side(vec!["north", "south"])?, side(vec!["south", "west"])?);
/// let join = hash_join_batches(&context, &left, &right, JoinKind::Left);
/// let joined = context.runtime().block_on(join)?;
/// assert_eq!(joined.consumers.iter().map(|batch| batch.num_rows()).sum::<usize>(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn hash_join_batches(
    context: &Context,
    left: &JoinInput,
    right: &JoinInput,
    kind: JoinKind,
) -> Result<Joined<RecordBatch>, PrimitiveError> {
    let left = JoinInput { payload: Payload::Row, ..left.clone() };
    let right = JoinInput { payload: Payload::Row, ..right.clone() };
    let gather = Arc::new(Gather::new(&left, &right, kind)?);
    let consumer = |_: WorkerId| Gathered { gather: Arc::clone(&gather), batches: Vec::new() };
    let Joined { consumers, report } = hash_join(context, &left, &right, kind, consumer).await?;
    let batches = consumers.into_iter().flat_map(|gathered| gathered.batches);
    Ok(Joined { consumers: batches.collect(), report })
}

/// Columns from which a result is gathered.
#[derive(Debug)]
struct Gather {
    left: Option<GatherSide>,
    right: Option<GatherSide>,
    schema: SchemaRef,
}

#[derive(Debug)]
struct GatherSide {
    /// Number of the first row of each part, and of the end of the last.
    firsts: Vec<u64>,
    /// The arrays of each column by part, followed by one null.
    columns: Vec<Vec<ArrayRef>>,
}

impl Gather {
    fn new(left: &JoinInput, right: &JoinInput, kind: JoinKind) -> Result<Self, PrimitiveError> {
        let has_left = !matches!(kind, JoinKind::RightSemi | JoinKind::RightAnti);
        let has_right = !matches!(kind, JoinKind::LeftSemi | JoinKind::LeftAnti);
        let mut fields: Vec<Arc<Field>> = Vec::new();
        let mut side = |name: &str, input: &JoinInput, wanted: bool, nulls: bool| {
            let side = GatherSide::new(name, input)?;
            let Some((side, schema)) = wanted.then_some(side) else { return Ok(None) };
            fields.extend(schema.fields().iter().map(|field| {
                let nullable = nulls || field.is_nullable();
                Arc::new(field.as_ref().clone().with_nullable(nullable))
            }));
            Ok::<_, PrimitiveError>(Some(side))
        };
        let nulls_left = matches!(kind, JoinKind::Right | JoinKind::Full);
        let nulls_right = matches!(kind, JoinKind::Left | JoinKind::Full);
        let left = side("left", left, has_left, nulls_left)?;
        let right = side("right", right, has_right, nulls_right)?;
        Ok(Self { left, right, schema: Arc::new(Schema::new(fields)) })
    }

    /// Some rows of the result; a missing side is null.
    fn batch(
        &self,
        left: Option<&[u64]>,
        right: Option<&[u64]>,
    ) -> Result<RecordBatch, PrimitiveError> {
        let rows = left.or(right).map_or(0, <[u64]>::len);
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        for (side, numbers) in [(&self.left, left), (&self.right, right)] {
            if let Some(side) = side {
                side.gather(numbers, rows, &mut columns)?;
            }
        }
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

impl GatherSide {
    fn new(name: &str, input: &JoinInput) -> Result<(Self, SchemaRef), PrimitiveError> {
        let Some(first) = input.parts.first() else {
            return Err(PrimitiveError::Shape {
                what: format!("{name} side of a join"),
                found: "no parts".into(),
                expected: "at least one part".into(),
            });
        };
        let schema = first.rows.schema();
        let mut firsts = vec![0];
        for part in &input.parts {
            if part.rows.schema().fields() != schema.fields() {
                return Err(PrimitiveError::Shape {
                    what: format!("columns of a part of the {name} side"),
                    found: part.rows.schema().to_string(),
                    expected: schema.to_string(),
                });
            }
            firsts.push(firsts.last().copied().unwrap_or(0) + part.rows.num_rows() as u64);
        }
        let columns = (0..schema.fields().len()).map(|at| {
            let arrays = input.parts.iter().map(|part| Arc::clone(part.rows.column(at)));
            arrays.chain([new_null_array(schema.field(at).data_type(), 1)]).collect()
        });
        Ok((Self { firsts, columns: columns.collect() }, schema))
    }

    fn gather(
        &self,
        numbers: Option<&[u64]>,
        rows: usize,
        columns: &mut Vec<ArrayRef>,
    ) -> Result<(), PrimitiveError> {
        let null = (self.firsts.len() - 1, 0);
        let places: Vec<(usize, usize)> = match numbers {
            None => vec![null; rows],
            Some(numbers) => numbers.iter().map(|number| self.place(*number)).collect(),
        };
        for arrays in &self.columns {
            let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
            columns.push(interleave(&arrays, &places)?);
        }
        Ok(())
    }

    /// Part and offset of a row.
    fn place(&self, number: u64) -> (usize, usize) {
        let part = self.firsts.partition_point(|first| *first <= number) - 1;
        (part, (number - self.firsts[part]) as usize)
    }
}

/// One worker's batches.
struct Gathered {
    gather: Arc<Gather>,
    batches: Vec<RecordBatch>,
}

impl Gathered {
    fn push(&mut self, left: Option<&[u64]>, right: Option<&[u64]>) -> Result<(), PrimitiveError> {
        let rows = left.or(right).map_or(0, <[u64]>::len);
        for start in (0..rows).step_by(BATCH_ROWS) {
            let cut = |numbers: &'_ [u64]| start..numbers.len().min(start + BATCH_ROWS);
            let left = left.map(|numbers| &numbers[cut(numbers)]);
            let right = right.map(|numbers| &numbers[cut(numbers)]);
            self.batches.push(self.gather.batch(left, right)?);
        }
        Ok(())
    }
}

impl Matches for Gathered {
    fn pairs(&mut self, left: &[u64], right: &[u64]) -> Result<(), PrimitiveError> {
        self.push(Some(left), Some(right))
    }

    fn left_alone(&mut self, left: &[u64]) -> Result<(), PrimitiveError> {
        self.push(Some(left), None)
    }

    fn right_alone(&mut self, right: &[u64]) -> Result<(), PrimitiveError> {
        self.push(None, Some(right))
    }
}

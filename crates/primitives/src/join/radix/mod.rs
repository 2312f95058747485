//! The hash join: keys as words, hash tables over the smaller side, and blockwise probes by the other (Balkesen,
//! Teubner, Alonso, Özsu: "Main-memory hash joins on multi-core CPUs", ICDE 2013).

mod direct;
mod filter;
mod hand;
mod pieces;
mod probe;
mod survey;
mod whole;

use std::sync::Arc;

use atoll_runtime::{StepReport, WorkerId};

use super::keys::{SideColumns, WordKeys, encode};
use super::report::{BuildSide, JoinReport, JoinVariant, Joined};
use super::{JoinInput, JoinKind, Matches};
use crate::{Context, PrimitiveError};
use hand::Hands;
use probe::{ByBytes, ByWord, Same};

/// Joins two sides on equal keys; nulls match nothing. `consumer` creates each worker's consumer of matches.
///
/// The side with fewer rows becomes one table or many; the other is read once and probes them. Keys are compared
/// directly if their columns fit 64 bits together (integers, dates, times, floats with one zero and one NaN), and by
/// encoded bytes otherwise.
///
/// # Errors
/// [`PrimitiveError::Shape`] and [`PrimitiveError::Type`] for columns that do not fit together,
/// [`PrimitiveError::Memory`], [`PrimitiveError::Cancelled`], and what the consumers return.
///
/// ```
/// # use std::sync::Arc;
/// # use atoll_placement::{Arena, LiveKernel};
/// # use atoll_runtime::{Runtime, RuntimeOptions};
/// # use atoll_topology::Machine;
/// use arrow_array::{Int64Array, RecordBatch};
/// use atoll_primitives::join::{JoinInput, JoinKind, RowPairs, hash_join};
/// use atoll_primitives::{Context, Part};
/// # let machine = Arc::new(Machine::discover()?);
/// # let kernel = Arc::new(LiveKernel::new());
/// # let arena = Arena::new(machine.clone(), kernel.clone(), None);
/// # let context = Context::new(Runtime::start(machine, kernel, RuntimeOptions::default())?, arena);
/// let side = |keys: Vec<i64>| -> Result<JoinInput, arrow_schema::ArrowError> {
///     let keys = Arc::new(Int64Array::from(keys));
///     let rows = RecordBatch::try_from_iter([("key", keys as _)])?;
///     Ok(JoinInput::new(vec![Part::new(None, rows)], [0]))
/// };
/// let (left, right) = (side(vec![10, 20, 30])?, side(vec![30, 40, 10, 30])?);
/// let join = hash_join(&context, &left, &right, JoinKind::Inner, |_| RowPairs::default());
/// let joined = context.runtime().block_on(join)?;
/// let pairs = |found: RowPairs| found.left.into_iter().zip(found.right);
/// let mut pairs: Vec<_> = joined.consumers.into_iter().flat_map(pairs).collect();
/// pairs.sort();
/// assert_eq!(pairs, [(0, 2), (2, 0), (2, 3)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn hash_join<C: Matches + 'static>(
    context: &Context,
    left: &JoinInput,
    right: &JoinInput,
    kind: JoinKind,
    consumer: impl Fn(WorkerId) -> C,
) -> Result<Joined<C>, PrimitiveError> {
    let workers = context.runtime().worker_count() as u32;
    let consumers = (0..workers).map(|worker| consumer(WorkerId(worker))).collect();
    let exact = keys_fit(left, right)?;
    let mut steps = Vec::new();
    let build = if left.rows() <= right.rows() { BuildSide::Left } else { BuildSide::Right };
    let left = side(context, "left", left, exact, &mut steps).await?;
    let right = side(context, "right", right, exact, &mut steps).await?;
    let sides = match build {
        BuildSide::Left => (left, right),
        BuildSide::Right => (right, left),
    };
    let hands = Hands::new(consumers, kind, build);
    let (build_side, probe_side) = (Arc::new(sides.0), Arc::new(sides.1));
    let mut run = RunningJoin {
        context,
        build: build_side,
        probe: probe_side,
        hands: Arc::new(hands),
        steps,
    };
    let (variant, reason) = if exact { run.exact().await? } else { run.by_bytes().await? };
    let RunningJoin { hands, steps, .. } = run;
    let consumers = Hands::into_consumers(hands)?;
    Ok(Joined { consumers, report: JoinReport { variant, reason, build, steps } })
}

/// A join in progress.
struct RunningJoin<'a, C> {
    context: &'a Context,
    build: Arc<SideColumns>,
    probe: Arc<SideColumns>,
    hands: Arc<Hands<C>>,
    steps: Vec<StepReport>,
}

impl<C: Matches + 'static> RunningJoin<'_, C> {
    /// Joins keys that are equal to their words.
    async fn exact(&mut self) -> Result<(JoinVariant, String), PrimitiveError> {
        let survey = self.survey().await?;
        let mut not_direct = "keys are not dense";
        if let Some(keys) = self.dense_keys(&survey) {
            let rows = survey.rows;
            if self.direct(&survey, keys).await? {
                let variant = JoinVariant::Direct { keys };
                return Ok((variant, format!("{rows} rows with unique keys in a range of {keys}")));
            }
            not_direct = "keys are dense and not unique";
        }
        self.hashed(ByWord, survey.rows, not_direct).await
    }

    /// Joins keys that are hashes of encoded bytes.
    async fn by_bytes(&mut self) -> Result<(JoinVariant, String), PrimitiveError> {
        let same = ByBytes { build: Arc::clone(&self.build), probe: Arc::clone(&self.probe) };
        self.hashed(same, self.build.rows, "keys do not fit 64 bits").await
    }

    async fn hashed(
        &mut self,
        same: impl Same,
        rows: usize,
        why: &str,
    ) -> Result<(JoinVariant, String), PrimitiveError> {
        if rows <= self.one_table_rows() {
            self.one_table(same).await?;
            return Ok((
                JoinVariant::OneTable,
                format!("{why}; the table of {rows} rows is small"),
            ));
        }
        let variant = self.pieces(same, rows).await?;
        Ok((variant, format!("{why}; the table of {rows} rows does not fit the caches whole")))
    }

    /// Keeps a step's report.
    fn keep<T>(&mut self, (results, report): (Vec<T>, StepReport)) -> Vec<T> {
        self.steps.push(report);
        results
    }
}

/// Whether the keys of both sides, which must have the same types, fit words.
fn keys_fit(left: &JoinInput, right: &JoinInput) -> Result<bool, PrimitiveError> {
    let shape = |what: &str, found: String, expected: String| {
        Err(PrimitiveError::Shape { what: what.into(), found, expected })
    };
    if left.on.is_empty() || left.on.len() != right.on.len() {
        let found = format!("{} left and {} right", left.on.len(), right.on.len());
        return shape(
            "key columns of a join",
            found,
            "the same number on both sides, at least one".into(),
        );
    }
    let (left_types, right_types) = (left.key_types("left")?, right.key_types("right")?);
    if let (Some(left), Some(right)) = (&left_types, &right_types)
        && left != right
    {
        let expected = format!("{left:?} as on the left side; cast one of them");
        return shape("key columns of the right side", format!("{right:?}"), expected);
    }
    let fit = left_types.or(right_types).is_none_or(|types| WordKeys::fit(&types));
    let carries = |input: &JoinInput| input.payload != super::Payload::Row;
    if !fit && (carries(left) || carries(right)) {
        let found = "a column as payload with keys that do not fit 64 bits".into();
        return shape("payload of a join", found, "row numbers".into());
    }
    Ok(fit)
}

/// Prepares a side for reading.
async fn side(
    context: &Context,
    name: &str,
    input: &JoinInput,
    exact: bool,
    steps: &mut Vec<StepReport>,
) -> Result<SideColumns, PrimitiveError> {
    if exact {
        return SideColumns::new(name, input, None);
    }
    let (encoded, report) = encode(context, name, input).await?;
    steps.push(report);
    SideColumns::new(name, input, Some(encoded))
}

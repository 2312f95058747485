//! Sort-merge instead of hash where the hash table would not fit: DataFusion's hash join does not
//! spill (apache/datafusion#24768), its sorts do.

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinSide, JoinType, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

use crate::join::{MergeJoinExec, MergeKey};
use atoll_sql_common::operator::OperatorRule;
use atoll_sql_common::settings::{AtollOptions, JoinMethod};

/// A hash table takes its rows and about as much again for buckets and chains; other operators
/// want memory too. A build side beyond this share of the limit is sorted.
const LIMIT_SHARE: usize = 4;

/// The order in which scans return columns whose values rise, so that these need no sort. Another order of NULL
/// would be taken for theirs if a column cannot be NULL, and missed if a nullable one is known to equal it.
const AS_SCANNED: SortOptions = SortOptions { descending: false, nulls_first: false };

/// Replaces hash joins; see the module.
#[derive(Debug)]
pub(crate) struct MergeJoin {
    limit: usize,
}

impl MergeJoin {
    /// Creates the rule for a memory limit in bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit }
    }

    fn fits(&self, build: &Arc<dyn ExecutionPlan>) -> Result<bool> {
        let statistics =
            StatisticsContext::new().compute(build.as_ref(), &StatisticsArgs::new())?;
        let bytes = statistics.total_byte_size.get_value();
        Ok(bytes.is_none_or(|bytes| *bytes <= self.limit / LIMIT_SHARE))
    }
}

impl OperatorRule for MergeJoin {
    const NAME: &'static str = "MergeJoin";

    fn rewrite(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(join) = plan.downcast_ref::<HashJoinExec>() else { return Ok(None) };
        let method = config.extensions.get::<AtollOptions>().map(|options| options.join);
        let always = method == Some(JoinMethod::Merge);
        if !can_merge(join)? || (!always && self.fits(join.left())?) {
            return Ok(None);
        }
        merge_join(join).map(Some)
    }
}

/// Whether the sort-merge join gives the same rows. It does not support `NOT IN` with nulls, ignores a
/// filter that reads no column, and keys without a type have no order.
fn can_merge(join: &HashJoinExec) -> Result<bool> {
    if join.null_aware || join.filter().is_some_and(|filter| filter.column_indices().is_empty()) {
        return Ok(false);
    }
    let schema = join.left().schema();
    for (key, _) in join.on() {
        let data_type = key.data_type(&schema)?;
        if data_type == DataType::Null || !MergeKey::is_for(&data_type) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn merge_join(join: &HashJoinExec) -> Result<Arc<dyn ExecutionPlan>> {
    let one_sided = !matches!(
        join.join_type(),
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full
    );
    let (left, right) = (join.left().schema(), join.right().schema());
    let on = join
        .on()
        .iter()
        .map(|(l, r)| Ok((merge_key(l, &left, one_sided)?, merge_key(r, &right, one_sided)?)));
    let merge: Arc<dyn ExecutionPlan> = Arc::new(MergeJoinExec::new(SortMergeJoinExec::try_new(
        Arc::clone(join.left()),
        Arc::clone(join.right()),
        on.collect::<Result<Vec<_>>>()?,
        join.filter().map(left_first).transpose()?,
        *join.join_type(),
        vec![AS_SCANNED; join.on().len()],
        join.null_equality(),
    )?));
    let Some(projection) = &join.projection else { return Ok(merge) };
    let schema = merge.schema();
    let columns = projection.iter().map(|&column| {
        let name = schema.field(column).name();
        ProjectionExpr::new(Arc::new(Column::new(name, column)), name.clone())
    });
    Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), merge)?))
}

fn merge_key(
    key: &Arc<dyn PhysicalExpr>,
    schema: &Schema,
    one_sided: bool,
) -> Result<Arc<dyn PhysicalExpr>> {
    let data_type = key.data_type(schema)?;
    let by_value = !data_type.is_nested() && (!one_sided || is_compared_across_batches(&data_type));
    Ok(match by_value {
        true => Arc::clone(key),
        false => Arc::new(MergeKey::new(Arc::clone(key))),
    })
}

/// The types that a join that returns one side can compare where the rows of a key continue in the next batch.
fn is_compared_across_batches(data_type: &DataType) -> bool {
    use DataType as T;
    data_type.is_integer()
        || matches!(
            data_type,
            T::Boolean
                | T::Utf8
                | T::LargeUtf8
                | T::Utf8View
                | T::Binary
                | T::LargeBinary
                | T::BinaryView
                | T::FixedSizeBinary(_)
                | T::Decimal128(_, _)
                | T::Date32
                | T::Date64
                | T::Timestamp(_, None)
        )
}

/// The filter with the columns of the left side first, all of which may be NULL. The sort-merge join
/// builds its filter's input in that order whatever the filter says, and a join whose sides were
/// swapped says otherwise (apache/datafusion#25489); and it gives rows without a match to the filter too
/// (DataFusion 55.2).
fn left_first(filter: &JoinFilter) -> Result<JoinFilter> {
    let mut order: Vec<usize> = (0..filter.column_indices().len()).collect();
    order.sort_by_key(|column| filter.column_indices()[*column].side != JoinSide::Left);
    let columns = order.iter().map(|column| filter.column_indices()[*column].clone()).collect();
    let fields = order.iter().map(|column| filter.schema().field(*column).clone());
    let schema = Schema::new(fields.map(|field| field.with_nullable(true)).collect::<Vec<_>>());
    let moved = Arc::clone(filter.expression()).transform(|expr| {
        let Some(column) = expr.downcast_ref::<Column>() else {
            return Ok(Transformed::no(expr));
        };
        let to = order.iter().position(|from| *from == column.index()).unwrap_or(column.index());
        Ok(Transformed::yes(Arc::new(Column::new(column.name(), to)) as _))
    })?;
    Ok(JoinFilter::new(moved.data, columns, Arc::new(schema)))
}

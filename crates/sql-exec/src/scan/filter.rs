//! The predicates of a scan, in the order in which they cost least: zones, tests on stored columns,
//! then whatever needs decoded values, on the rows that are left.

use std::sync::Arc;

use atoll_store::table::{Selection, StoredColumn, Zone};
use datafusion::arrow::array::{AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    CaseExpr, Column as ColumnExpr, DynamicFilterPhysicalExpr, Literal,
};
use datafusion::physical_expr::utils::{collect_columns, split_conjunction};
use datafusion::physical_expr_common::physical_expr::snapshot_generation;
use datafusion::physical_plan::repartition::RangeExpr;
use datafusion::scalar::ScalarValue;

use super::assign::Cuts;
use super::stored_predicate::{StoredPredicate, ZoneVerdict, true_bits, whole_number};

/// All predicates of one partition of a scan.
#[derive(Debug)]
pub(crate) struct PartitionFilter {
    fixed: Predicates,
    dynamic: Vec<Dynamic>,
}

/// Conjuncts, grouped by the data that they need.
#[derive(Debug, Default)]
struct Predicates {
    tests: Vec<StoredPredicate>,
    rest: Vec<OnRows>,
    /// A constant false (or null): nothing passes.
    never: bool,
}

/// A conjunct on decoded rows.
#[derive(Debug)]
struct OnRows {
    columns: Vec<usize>,
    schema: SchemaRef,
    expr: Arc<dyn PhysicalExpr>,
    /// Rows in and out, for conjuncts that may be dropped.
    seen: usize,
    passed: usize,
}

/// A filter that a join or a top-k above the scan tightens while the query runs. It only spares
/// work: what it removes would be removed above as well.
#[derive(Debug)]
struct Dynamic {
    expr: Arc<dyn PhysicalExpr>,
    generation: u64,
    current: Predicates,
}

/// Rows after which a dynamic conjunct is judged, and the share of rows (in eighths) above which it
/// is dropped as not worth its cost: looking a key up costs about what the join itself would.
const DYNAMIC_TRIAL_ROWS: usize = 4 * 8192;
const DYNAMIC_KEEP_EIGHTHS: usize = 6;

/// Rows that pass, and the cost of reading them.
pub(crate) struct Passed {
    /// The rows; `None` if no row passes.
    pub(crate) rows: Option<Selection>,
    /// Columns read by tests, whole, and columns read for the rows that were left: (column, rows).
    pub(crate) read: Vec<(usize, usize)>,
    /// Whether the zones alone excluded all rows.
    pub(crate) pruned: bool,
}

impl PartitionFilter {
    /// The conjuncts of a scan's partition, over the table's schema.
    pub(crate) fn new(
        fixed: &[Arc<dyn PhysicalExpr>],
        dynamic: &[Arc<dyn PhysicalExpr>],
        schema: &SchemaRef,
    ) -> Result<Self> {
        let mut predicates = Predicates::default();
        for conjunct in fixed {
            predicates.add(conjunct, schema)?;
        }
        let dynamic = dynamic.iter().map(|expr| Dynamic {
            expr: Arc::clone(expr),
            generation: 0,
            current: Predicates::default(),
        });
        Ok(Self { fixed: predicates, dynamic: dynamic.collect() })
    }

    /// Rows of `range` of a block that pass.
    pub(crate) fn apply(
        &mut self,
        block: &[StoredColumn],
        zones: &[Option<Zone>],
        range: Selection,
        schema: &SchemaRef,
        route: Option<(&Cuts, usize)>,
    ) -> Result<Passed> {
        for dynamic in &mut self.dynamic {
            dynamic.refresh(schema, route)?;
        }
        let mut passed = Passed { rows: Some(range), read: Vec::new(), pruned: false };
        let mut all: Vec<&mut Predicates> = vec![&mut self.fixed];
        all.extend(self.dynamic.iter_mut().map(|dynamic| &mut dynamic.current));
        if all.iter().any(|predicates| predicates.never_passes(zones)) {
            return Ok(Passed { rows: None, pruned: true, ..passed });
        }
        for predicates in &mut all {
            predicates.run_tests(block, zones, &mut passed)?;
        }
        for (index, predicates) in all.iter_mut().enumerate() {
            predicates.run_on_rows(block, &mut passed, schema, index > 0)?;
        }
        Ok(passed)
    }
}

impl Dynamic {
    fn refresh(&mut self, schema: &SchemaRef, route: Option<(&Cuts, usize)>) -> Result<()> {
        let generation = snapshot_generation(&self.expr);
        if generation == self.generation {
            return Ok(());
        }
        self.generation = generation;
        let current = match self.expr.downcast_ref::<DynamicFilterPhysicalExpr>() {
            Some(dynamic) => dynamic.current()?,
            None => Arc::clone(&self.expr),
        };
        let current = match route {
            Some((cuts, partition)) => branch_of_partition(current, cuts, partition),
            None => current,
        };
        self.current = Predicates::default();
        for conjunct in split_conjunction(&current) {
            self.current.add(conjunct, schema)?;
        }
        Ok(())
    }
}

/// A join of tables cut at the same keys routes its filter by range: `CASE range(key) WHEN 0 THEN …`.
/// A scan with the same cuts holds in partition p only keys of range p, and needs one branch.
fn branch_of_partition(
    expr: Arc<dyn PhysicalExpr>,
    cuts: &Cuts,
    partition: usize,
) -> Arc<dyn PhysicalExpr> {
    let Some(case) = expr.downcast_ref::<CaseExpr>() else { return expr };
    let routing = case.expr().and_then(|routing| routing.downcast_ref::<RangeExpr>());
    if !routing.is_some_and(|routing| routes_as(routing, cuts)) {
        return expr;
    }
    let wanted = ScalarValue::UInt64(Some(partition as u64));
    let branch = case.when_then_expr().iter().find(|(when, _)| {
        when.downcast_ref::<Literal>().is_some_and(|when| *when.value() == wanted)
    });
    match (branch, case.else_expr()) {
        (Some((_, then)), _) => Arc::clone(then),
        (None, Some(otherwise)) => Arc::clone(otherwise),
        (None, None) => Arc::clone(&expr),
    }
}

fn routes_as(routing: &RangeExpr, cuts: &Cuts) -> bool {
    let [key] = routing.on_columns() else { return false };
    let points = routing.split_points().iter().map(|point| match point.values() {
        [value] => whole_number(value),
        _ => None,
    });
    key.downcast_ref::<ColumnExpr>().is_some_and(|key| key.index() == cuts.column)
        && points.eq(cuts.points.iter().copied().map(Some))
}

impl Predicates {
    fn add(&mut self, conjunct: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Result<()> {
        if let Some(constant) = conjunct.downcast_ref::<Literal>() {
            self.never |= *constant.value() != ScalarValue::Boolean(Some(true));
            return Ok(());
        }
        match StoredPredicate::new(conjunct, schema) {
            Some(test) => self.tests.push(test),
            None => self.rest.push(OnRows::new(conjunct, schema)?),
        }
        Ok(())
    }

    fn never_passes(&self, zones: &[Option<Zone>]) -> bool {
        self.never || self.tests.iter().any(|test| test.verdict(zones) == ZoneVerdict::None)
    }

    fn run_tests(
        &mut self,
        block: &[StoredColumn],
        zones: &[Option<Zone>],
        passed: &mut Passed,
    ) -> Result<()> {
        for test in &mut self.tests {
            if passed.rows.is_none() {
                return Ok(());
            }
            if test.verdict(zones) == ZoneVerdict::All {
                continue;
            }
            let mut columns = Vec::new();
            test.columns(&mut columns);
            let rows = block.first().map_or(0, |column| column.rows().len());
            passed.read.extend(columns.into_iter().map(|column| (column, rows)));
            let mask = test.mask(block)?;
            passed.rows = passed.rows.take().and_then(|rows| rows.kept_by(&mask));
        }
        Ok(())
    }

    fn run_on_rows(
        &mut self,
        block: &[StoredColumn],
        passed: &mut Passed,
        schema: &SchemaRef,
        optional: bool,
    ) -> Result<()> {
        for conjunct in &mut self.rest {
            let Some(rows) = passed.rows.take() else { return Ok(()) };
            passed.read.extend(conjunct.columns.iter().map(|column| (*column, rows.count())));
            passed.rows = conjunct.keep(block, rows, schema)?;
        }
        if optional {
            self.rest.retain(OnRows::worth_its_cost);
        }
        Ok(())
    }
}

impl OnRows {
    fn new(expr: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Result<Self> {
        let mut columns: Vec<usize> = collect_columns(expr).iter().map(ColumnExpr::index).collect();
        columns.sort_unstable();
        let compact = Schema::new(
            columns.iter().map(|column| schema.field(*column).clone()).collect::<Vec<_>>(),
        );
        let expr = Arc::clone(expr)
            .transform(|node| {
                let Some(column) = node.downcast_ref::<ColumnExpr>() else {
                    return Ok(Transformed::no(node));
                };
                let at = columns.binary_search(&column.index()).unwrap_or(column.index());
                Ok(Transformed::yes(Arc::new(ColumnExpr::new(column.name(), at)) as _))
            })?
            .data;
        Ok(Self { columns, schema: Arc::new(compact), expr, seen: 0, passed: 0 })
    }

    fn keep(
        &mut self,
        block: &[StoredColumn],
        rows: Selection,
        schema: &SchemaRef,
    ) -> Result<Option<Selection>> {
        let arrays = self
            .columns
            .iter()
            .map(|column| block[*column].decode(schema.field(*column).data_type(), &rows))
            .collect::<Result<Vec<_>, ArrowError>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.count()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?;
        let result = self.expr.evaluate(&batch)?.into_array(rows.count())?;
        let mask = true_bits(result.as_boolean());
        self.seen += rows.count();
        self.passed += mask.count_set_bits();
        Ok(keep_of(rows, &mask))
    }

    fn worth_its_cost(&self) -> bool {
        self.seen < DYNAMIC_TRIAL_ROWS || self.passed * 8 <= self.seen * DYNAMIC_KEEP_EIGHTHS
    }
}

/// The rows whose bit in a mask over the selection is set.
fn keep_of(rows: Selection, mask: &BooleanBuffer) -> Option<Selection> {
    let count = mask.count_set_bits();
    if count == rows.count() {
        return Some(rows);
    }
    let mut kept = Vec::with_capacity(count);
    match rows {
        Selection::Range { offset, .. } => {
            kept.extend(mask.set_indices().map(|at| (at + offset) as u32));
        }
        Selection::Rows(rows) => kept.extend(mask.set_indices().map(|at| rows.value(at))),
        Selection::Mask(before) => kept.extend(
            before
                .bits
                .set_indices()
                .zip(mask.iter())
                .filter(|(_, passes)| *passes)
                .map(|(row, _)| row as u32),
        ),
    }
    Selection::of_rows(kept)
}

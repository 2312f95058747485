//! Recognizes statements about one row by its key, and compiles their expressions.

use std::sync::Arc;

use atoll_store::database::DatabaseVersion;
use atoll_store::table::TableVersion;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, Values};
use datafusion::physical_expr::PhysicalExpr;

use super::clock::ClockCalls;
use super::numbers::NextNumbers;
use super::returning::{ReturnedRows, ReturningList};
use super::scalar::{ScalarPlan, ScalarScope};
use crate::compiled::{Parameters, has_unknown_types, inlined, select_list};
use crate::table::{ChangeKind, ChangedTable, MergedTable, PlacedTable};
use atoll_sql_exec::scan::ColumnCondition;

/// A statement about one row by its key, or about rows that it lists.
#[derive(Debug)]
pub(crate) struct PointPlan {
    pub(super) table: PlacedTable,
    /// The parameters, as expressions read them.
    pub(super) parameters: SchemaRef,
    /// The schema of written rows.
    pub(super) written: SchemaRef,
    pub(super) source: PointSource,
    /// Calls of the clock, which follow the given parameters.
    pub(super) clock: ClockCalls,
    /// Sequence numbers, which are the last parameters.
    pub(super) numbers: NextNumbers,
    pub(super) action: PointAction,
    /// Whether no row changes a key column, so that what is written depends on no other row.
    pub(super) keeps_keys: bool,
    /// The same without expressions, for simple statements.
    pub(super) scalars: Option<ScalarPlan>,
    /// The RETURNING list.
    pub(super) returning: Option<ReturnedRows>,
}

/// The source of a statement's rows.
#[derive(Debug)]
pub(crate) enum PointSource {
    /// The row with a key that is computed from the parameters, or for a selection the rows with it.
    Key {
        index: KeyIndex,
        /// A value for each of its columns.
        key: Vec<Arc<dyn PhysicalExpr>>,
        /// The columns read from the row.
        columns: Vec<usize>,
        /// These, followed by the parameters.
        row: SchemaRef,
        /// The values selected from the row, over `row`.
        values: Vec<Arc<dyn PhysicalExpr>>,
    },
    /// Rows of values, computed from the parameters.
    Rows(Vec<Vec<Arc<dyn PhysicalExpr>>>),
}

/// The index of a key, by its number in the definition.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyIndex {
    Unique(usize),
    /// One that is not unique; the key is of its first columns.
    Ordered(usize),
}

/// The action of a statement.
#[derive(Debug)]
pub(crate) enum PointAction {
    /// Return the values, under these names.
    Select(Arc<Schema>),
    /// Insert the values as new rows.
    Insert(Arc<PlacedTable>),
    /// Assign the values to the row.
    Update(Arc<ChangedTable>),
    /// Delete the row.
    Delete,
}

impl PointPlan {
    /// The table in a version; `None` if its definition changed.
    pub(super) fn table_in<'v>(
        &self,
        version: &'v DatabaseVersion,
    ) -> Option<&'v Arc<TableVersion>> {
        let table = version.table(self.table.id())?;
        Arc::ptr_eq(table.definition(), self.table.definition()).then_some(table)
    }
}

/// Compiles an optimized plan; `None` if it is neither about one row by its key nor a list of rows.
pub(crate) fn compile(
    state: &SessionState,
    plan: &LogicalPlan,
    parameters: &Parameters,
) -> Result<Option<PointPlan>> {
    if has_unknown_types(plan) {
        return Ok(None);
    }
    let list = ReturningList::try_from_plan(plan);
    let (target, input) = match (plan, &list) {
        (LogicalPlan::Dml(write), _) => (source_as_provider(&write.target)?, &*write.input),
        (_, Some(list)) => (Arc::clone(list.written.target()), list.written.input()),
        (_, None) => {
            let schema = Arc::clone(plan.schema().inner());
            return by_key(state, plan, parameters, |_| Some(PointAction::Select(schema)));
        }
    };
    let compiled = match target.downcast_ref::<PlacedTable>() {
        Some(table) => listed(state, table, input, parameters)?,
        None if target.is::<MergedTable>() => None,
        None => by_key(state, input, parameters, |changed| {
            let changed = Arc::new(changed?);
            Some(match changed.kind() {
                ChangeKind::Update => PointAction::Update(changed),
                ChangeKind::Delete => PointAction::Delete,
            })
        })?,
    };
    let Some(list) = list else { return Ok(compiled) };
    let Some(mut point) = compiled else { return Ok(None) };
    point.returning = list.compile(state, &point.table, parameters)?;
    Ok(point.returning.is_some().then_some(point))
}

/// An INSERT of rows that it lists.
fn listed(
    state: &SessionState,
    table: &PlacedTable,
    input: &LogicalPlan,
    parameters: &Parameters,
) -> Result<Option<PointPlan>> {
    let table = &table.without_rows()?;
    let conflict = table.insert_target()?.rules.conflict.as_ref();
    // Statements with referential actions are planned each time.
    let acts = table.insert_target()?.rules.actions.is_some();
    if conflict.is_some_and(|conflict| !conflict.is_fixed) || acts {
        return Ok(None);
    }
    let Some(mut rows) = listed_rows(input) else { return Ok(None) };
    let numbers = NextNumbers::take(&mut rows, parameters.schema().fields().len())?;
    let parameters = parameters.and(numbers.types())?;
    let mut compiled = Vec::with_capacity(rows.len());
    for row in &rows {
        let columns = table.columns().fields().iter();
        let values = row.iter().zip(columns).map(|(value, field)| {
            parameters.physical(state, value.clone(), None, Some(field.data_type()))
        });
        compiled.push(values.collect::<Result<Vec<_>>>()?);
    }
    let scalars = match table.insert_target()?.rules.are_none() {
        true => {
            let (type_of, no_column) = (|at| table.type_of(at), |_: &Column| None);
            let scope =
                ScalarScope { parameters: &parameters, type_of: &type_of, column: &no_column };
            let rows = rows.iter().zip(&compiled);
            let rows = rows.map(|(row, compiled)| scope.row(row, compiled)).collect();
            ScalarPlan::new(Some(Vec::new()), rows, nullable(table))
        }
        false => None,
    };
    let (source, action) =
        (PointSource::Rows(compiled), PointAction::Insert(Arc::new(table.clone())));
    Ok(Some(PointPlan {
        keeps_keys: conflict.is_none() && table.definition().uniques.is_empty(),
        written: table.written_schema(),
        parameters: parameters.schema(),
        table: table.clone(),
        source,
        clock: ClockCalls::default(),
        numbers,
        action,
        scalars,
        returning: None,
    }))
}

/// A select list over the row with a key.
fn by_key(
    state: &SessionState,
    plan: &LogicalPlan,
    parameters: &Parameters,
    action: impl FnOnce(Option<ChangedTable>) -> Option<PointAction>,
) -> Result<Option<PointPlan>> {
    let Some((exprs, scan)) = select_list(plan) else { return Ok(None) };
    let provider = source_as_provider(&scan.source)?;
    let changed = provider.downcast_ref::<ChangedTable>();
    let table = match (changed, provider.downcast_ref::<PlacedTable>()) {
        (Some(changed), _) => changed.table().without_rows()?,
        (None, Some(table)) => table.without_rows()?,
        (None, None) => return Ok(None),
    };
    if !table.is_readable() || changed.is_some_and(|it| it.target().rules.actions.is_some()) {
        return Ok(None);
    }
    let (table, changed) = (&table, changed.map(ChangedTable::without_rows).transpose()?);
    let selects = changed.is_none();
    let Some((index, key_values)) = key_of(table, &scan.filters, selects) else { return Ok(None) };
    let Some(action) = action(changed) else { return Ok(None) };
    let key = key_values.iter().map(|(value, column)| {
        parameters.physical(state, value.clone(), None, Some(&table.type_of(*column)))
    });
    let key: Vec<Arc<dyn PhysicalExpr>> = key.collect::<Result<_>>()?;
    // The row id, which comes first, is known by then.
    let skipped = usize::from(!matches!(action, PointAction::Select(_)));
    let exprs: Vec<Expr> = exprs.into_iter().skip(skipped).collect();
    if exprs.iter().any(Expr::is_volatile) {
        return Ok(None);
    }
    let is_kept = |at: &usize| {
        let name = table.columns().field(*at).name();
        matches!(exprs.get(*at), Some(Expr::Column(column)) if column.name == *name)
    };
    let keeps_keys = match &action {
        PointAction::Update(changed) => {
            let is_computed = |at: &usize| changed.target().rules.computes(*at);
            let uniques = &table.definition().uniques;
            let mut columns = uniques.iter().flat_map(|unique| unique.read_columns());
            columns.all(|at| is_kept(&at) && !is_computed(&at))
        }
        _ => true,
    };
    let columns = read_columns(table, &exprs);
    let read = table.columns().project(&columns)?;
    let row = DFSchema::try_from_qualified_schema(scan.table_name.clone(), &read)?;
    let wanted = |at: usize| match &action {
        PointAction::Update(_) => Some(table.type_of(at)),
        _ => None,
    };
    let values = exprs.iter().enumerate().map(|(at, expr)| {
        parameters.physical(state, expr.clone(), Some(&row), wanted(at).as_ref())
    });
    let values: Vec<Arc<dyn PhysicalExpr>> = values.collect::<Result<_>>()?;
    let scalars = {
        let column = |column: &Column| table.columns().index_of(&column.name).ok();
        let scope = ScalarScope { parameters, type_of: &|at| table.type_of(at), column: &column };
        let of_key = key_values.iter().zip(&key);
        let of_key = of_key.map(|((value, at), key)| scope.value(value, &**key, *at)).collect();
        let rows = match &action {
            PointAction::Update(changed) => {
                let is_plain = changed.target().rules.are_none();
                is_plain.then(|| scope.row(&exprs, &values)).flatten().map(|row| vec![row])
            }
            _ => Some(Vec::new()),
        };
        ScalarPlan::new(of_key, rows, nullable(table))
    };
    let row = parameters.behind(&row)?;
    let source = PointSource::Key { index, key, columns, row, values };
    let (parameters, written) = (parameters.schema(), table.written_schema());
    Ok(Some(PointPlan {
        table: table.clone(),
        parameters,
        written,
        source,
        clock: ClockCalls::default(),
        numbers: NextNumbers::default(),
        action,
        keeps_keys,
        scalars,
        returning: None,
    }))
}

/// Whether each column of a table is nullable.
fn nullable(table: &PlacedTable) -> Vec<bool> {
    table.columns().fields().iter().map(|field| field.is_nullable()).collect()
}

/// The columns of a table that expressions read.
pub(super) fn read_columns(table: &PlacedTable, exprs: &[Expr]) -> Vec<usize> {
    let all = table.columns().fields().iter().enumerate();
    let is_read = |name: &str| {
        let mut columns = exprs.iter().flat_map(Expr::column_refs);
        columns.any(|column| column.name == name)
    };
    all.filter(|(_, field)| is_read(field.name())).map(|(at, _)| at).collect()
}

/// The rows that a plan lists, without reading anything.
fn listed_rows(plan: &LogicalPlan) -> Option<Vec<Vec<Expr>>> {
    match plan {
        LogicalPlan::Values(Values { values, .. }) => Some(values.clone()),
        LogicalPlan::EmptyRelation(empty) if empty.produce_one_row => Some(vec![Vec::new()]),
        LogicalPlan::SubqueryAlias(alias) => listed_rows(&alias.input),
        LogicalPlan::Projection(projection) => {
            let (below, schema) = (listed_rows(&projection.input)?, projection.input.schema());
            let row = |row: &Vec<Expr>| -> Option<Vec<Expr>> {
                if is_called_twice(&projection.expr, schema, row) {
                    return None;
                }
                projection.expr.iter().map(|expr| inlined(expr, schema, row)).collect()
            };
            below.iter().map(row).collect()
        }
        _ => None,
    }
}

/// Whether a volatile expression would be evaluated in several places.
fn is_called_twice(exprs: &[Expr], schema: &DFSchema, below: &[Expr]) -> bool {
    let mut seen = vec![false; below.len()];
    let mut is_twice = false;
    for expr in exprs {
        let _ = expr.apply(|expr| {
            if let Expr::Column(column) = expr
                && let Ok(at) = schema.index_of_column(column)
                && below[at].is_volatile()
            {
                is_twice |= std::mem::replace(&mut seen[at], true);
            }
            Ok(TreeNodeRecursion::Continue)
        });
    }
    is_twice
}

/// The index whose columns the filters equate with values, and these with their columns; `None` if they do more. Only a
/// selection is of `several` rows.
fn key_of(
    table: &PlacedTable,
    filters: &[Expr],
    several: bool,
) -> Option<(KeyIndex, Vec<(Expr, usize)>)> {
    let conjuncts: Vec<&Expr> = filters.iter().flat_map(split_conjunction).collect();
    let columns = table.columns();
    let equality = |filter| ColumnCondition::from_logical(filter, columns)?.equality();
    let equalities: Vec<(usize, &Expr)> =
        conjuncts.into_iter().map(equality).collect::<Option<_>>()?;
    let named = |columns: &[usize]| {
        let value = |column: &usize| {
            let found = equalities.iter().find(|(own, _)| own == column);
            found.map(|(_, value)| ((*value).clone(), *column))
        };
        let all = columns.len() == equalities.len();
        if all { columns.iter().map(value).collect::<Option<Vec<_>>>() } else { None }
    };
    let definition = table.definition();
    let mut uniques = definition.uniques.iter().enumerate();
    let unique = uniques.find_map(|(at, it)| {
        let columns = Some(&it.columns).filter(|_| it.is_plain() && it.is_immediate())?;
        Some((KeyIndex::Unique(at), named(columns)?))
    });
    let ordered = || {
        definition.indexes.iter().enumerate().find_map(|(at, index)| {
            let keys = index.keys.iter().filter(|_| index.expressions.is_empty());
            let columns: Vec<usize> = keys.map(|key| key.column).collect();
            Some((KeyIndex::Ordered(at), named(columns.get(..equalities.len())?)?))
        })
    };
    unique.or_else(|| if several && !equalities.is_empty() { ordered() } else { None })
}

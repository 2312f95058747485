//! The rules of a write: generated columns, CHECK constraints, and ON CONFLICT.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, RecordBatch, StringViewArray,
    StringViewBuilder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::common::Result;
use datafusion::common::cast::as_boolean_array;
use datafusion::physical_expr::PhysicalExpr;

use super::{PlacedTable, PlannedActions, text_of_row};
use atoll_functions::temporal::{StatementClock, TemporalStyle};
use atoll_sql_common::error::{SqlState, ViolatedConstraint, stated_err};
use atoll_sql_common::pg_type::Checked;
use atoll_sql_common::user_type::EnumType;
use atoll_sql_semantics::domains::violation;
use atoll_sql_semantics::enums::check_labels;

/// The rules for written rows, and the treatment of conflicts with existing rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteRules {
    /// Numbers of UUID and JSONB columns, whose texts are converted to their canonical form, and of those of limited
    /// lengths, whose spaces beyond are cut.
    pub(crate) forms: Vec<(usize, Checked)>,
    /// The session's time zone, which texts of ranges of times may leave out.
    pub(crate) time_zone: Option<Arc<str>>,
    /// The session's styles, by which these texts are read.
    pub(crate) style: TemporalStyle,
    /// Numbers of columns of arrays of ENUMs, whose items have to be labels.
    pub(crate) labels: Vec<(usize, Arc<EnumType>)>,
    /// Numbers of columns of OIDs, which have 32 bits.
    pub(crate) oids: Vec<usize>,
    /// Numbers of generated columns, and their expressions over the columns of the table.
    pub(crate) generated: Vec<(usize, Arc<dyn PhysicalExpr>)>,
    pub(crate) checks: Vec<PlannedCheck>,
    pub(crate) conflict: Option<PlannedConflict>,
    /// The actions of foreign keys that refer to the rows.
    pub(crate) actions: Option<Arc<PlannedActions>>,
}

/// A CHECK constraint, over the columns of the table.
#[derive(Clone, Debug)]
pub(crate) struct PlannedCheck {
    pub(crate) name: Arc<str>,
    pub(crate) condition: Arc<dyn PhysicalExpr>,
    /// The column that it restricts to JSON.
    pub(crate) json: Option<usize>,
    /// The domain that has the constraint; without a name it is NOT NULL.
    pub(crate) domain: Option<Arc<str>>,
}

/// ON CONFLICT.
#[derive(Clone, Debug)]
pub(crate) struct PlannedConflict {
    /// Numbers of its unique constraints.
    pub(crate) uniques: Vec<usize>,
    /// The update of existing rows; `None` if they stay.
    pub(crate) update: Option<PlannedUpdate>,
    /// Whether it computes the same from the same rows for every statement.
    pub(crate) is_fixed: bool,
}

/// DO UPDATE, over the columns of the existing row followed by those of the new row.
#[derive(Clone, Debug)]
pub(crate) struct PlannedUpdate {
    /// Numbers of columns, and their values.
    pub(crate) assignments: Vec<(usize, Arc<dyn PhysicalExpr>)>,
    /// Rows for which it is not true stay.
    pub(crate) condition: Option<Arc<dyn PhysicalExpr>>,
}

impl WriteRules {
    /// Whether rows are written unchanged, apart from NOT NULL checks.
    pub(crate) fn are_none(&self) -> bool {
        self.forms.is_empty()
            && self.labels.is_empty()
            && self.oids.is_empty()
            && self.generated.is_empty()
            && self.checks.is_empty()
            && self.conflict.is_none()
    }

    /// Whether a column is generated.
    pub(crate) fn computes(&self, column: usize) -> bool {
        self.generated.iter().any(|(at, _)| *at == column)
    }

    /// Rows in the types of the columns, with generated ones.
    ///
    /// # Errors
    /// For invalid UUID or JSON values, for NULL in NOT NULL columns, and if a CHECK constraint is false.
    pub(crate) fn complete(&self, table: &PlacedTable, rows: RecordBatch) -> Result<RecordBatch> {
        // A parameter is planned with its column's type and may have a value of another one.
        let mut rows = table.assigned(rows)?;
        if !self.forms.is_empty() {
            rows = self.with_canonical_texts(rows)?;
        }
        if !self.generated.is_empty() {
            let mut columns = rows.columns().to_vec();
            for (column, value) in &self.generated {
                columns[*column] = value.evaluate(&rows)?.into_array(rows.num_rows())?;
            }
            rows = RecordBatch::try_new(rows.schema(), columns)?;
            let is_computed = |(column, _): &(usize, Checked)| self.computes(*column);
            if self.forms.iter().any(is_computed) {
                rows = self.with_canonical_texts(rows)?;
            }
        }
        for (column, of) in &self.labels {
            check_labels(of, rows.column(*column))?;
        }
        self.oids.iter().try_for_each(|column| check_oids(rows.column(*column)))?;
        table.check_nulls(&rows)?;
        self.check(table.name(), &rows)?;
        Ok(rows)
    }

    /// The rows with the texts of some columns in canonical form.
    fn with_canonical_texts(&self, rows: RecordBatch) -> Result<RecordBatch> {
        let clock =
            StatementClock { time_zone: self.time_zone.as_deref(), begun: None, style: self.style };
        let mut columns = rows.columns().to_vec();
        for (column, form) in &self.forms {
            if let Some(canonical) = canonical_texts(&columns[*column], *form, clock)? {
                columns[*column] = canonical;
            }
        }
        Ok(RecordBatch::try_new(rows.schema(), columns)?)
    }

    /// Refuses rows for which a CHECK constraint is false; NULL passes, as in the SQL standard.
    fn check(&self, table: &str, rows: &RecordBatch) -> Result<()> {
        for PlannedCheck { name, condition, json, domain } in &self.checks {
            let holds = condition.evaluate(rows)?.into_array(rows.num_rows())?;
            let holds: &BooleanArray = as_boolean_array(&holds)?;
            let failing = (0..holds.len()).find(|row| holds.is_valid(*row) && !holds.value(*row));
            if let (Some(row), Some(json)) = (failing, json) {
                let text = array_value_to_string(rows.column(*json), row)?;
                return stated_err!(
                    INVALID_TEXT_REPRESENTATION,
                    "invalid input syntax for type json: '{text}'"
                );
            }
            if let (Some(_), Some(domain)) = (failing, domain) {
                return Err(violation(domain, Some(&**name).filter(|name| !name.is_empty())));
            }
            if let Some(row) = failing {
                let message = format!(
                    "new row for table '{table}' violates check constraint '{name}': {}",
                    text_of_row(rows, row)
                );
                let constraint = Some(name.to_string());
                let violated =
                    ViolatedConstraint { constraint, ..ViolatedConstraint::of_table(table) };
                return Err(SqlState::CHECK_VIOLATION.violation(message, violated));
            }
        }
        Ok(())
    }
}

/// Refuses numbers beyond the range of OIDs.
fn check_oids(column: &ArrayRef) -> Result<()> {
    let numbers = column.as_primitive::<Int64Type>();
    match numbers.iter().flatten().find(|number| u32::try_from(*number).is_err()) {
        None => Ok(()),
        Some(number) => stated_err!(
            NUMERIC_VALUE_OUT_OF_RANGE,
            "value \"{number}\" is out of range for type oid"
        ),
    }
}

/// The texts, or those in lists, in canonical form; `None` if all are.
fn canonical_texts(
    column: &ArrayRef,
    form: Checked,
    clock: StatementClock<'_>,
) -> Result<Option<ArrayRef>> {
    if let DataType::List(field) = column.data_type() {
        let lists = column.as_list::<i32>();
        let Some(items) = canonical_texts(lists.values(), form, clock)? else { return Ok(None) };
        let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
        let lists = ListArray::try_new(Arc::clone(field), offsets, items, nulls)?;
        return Ok(Some(Arc::new(lists)));
    }
    let texts = cast(column, &DataType::Utf8View)?;
    let texts = texts.as_string_view();
    if all_fit(texts, form) {
        return Ok(None);
    }
    let mut others = Vec::with_capacity(texts.len());
    for text in texts {
        others.push(text.map(|text| form.canonical(text, clock)).transpose()?.flatten());
    }
    if others.iter().all(Option::is_none) {
        return Ok(None);
    }
    let mut canonical = StringViewBuilder::with_capacity(texts.len());
    for (text, other) in texts.iter().zip(&others) {
        canonical.append_option(other.as_deref().or(text));
    }
    Ok(Some(cast(&canonical.finish(), column.data_type())?))
}

/// Whether texts have so few bytes that their characters need not be counted.
fn all_fit(texts: &StringViewArray, form: Checked) -> bool {
    match form {
        // The low half of a view is the length.
        Checked::Varchar(length) => texts.views().iter().all(|view| *view as u32 <= length),
        Checked::Char(length) => {
            let fits = |text: &str| text.len() <= length as usize && !text.ends_with(' ');
            texts.iter().flatten().all(fits)
        }
        _ => false,
    }
}

impl PlannedUpdate {
    /// The rows to update; `pairs` has the columns of the existing rows followed by those of the new ones.
    pub(crate) fn applies(&self, pairs: &RecordBatch) -> Result<BooleanArray> {
        let Some(condition) = &self.condition else {
            return Ok(BooleanArray::from(vec![true; pairs.num_rows()]));
        };
        let applies = condition.evaluate(pairs)?.into_array(pairs.num_rows())?;
        Ok(applies.as_boolean().iter().map(|applies| Some(applies == Some(true))).collect())
    }

    /// The existing rows with their new values.
    pub(crate) fn updated(&self, there: &RecordBatch, pairs: &RecordBatch) -> Result<RecordBatch> {
        let mut columns = there.columns().to_vec();
        for (column, value) in &self.assignments {
            columns[*column] = value.evaluate(pairs)?.into_array(pairs.num_rows())?;
        }
        Ok(RecordBatch::try_new(there.schema(), columns)?)
    }
}

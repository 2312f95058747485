//! Rows as texts, and the comparison of a variant's rows with the expected ones.

use atoll_sql::arrow::array::{Array, AsArray, RecordBatch};
use atoll_sql::arrow::datatypes::{DataType, Float32Type, Float64Type, SchemaRef};
use atoll_sql::arrow::util::display::{ArrayFormatter, FormatOptions};
use atoll_sql::{Session, SqlError};

/// The text of a value; None is NULL.
pub(crate) type Cell = Option<String>;

/// The columns and rows of a statement.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) types: Vec<DataType>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

impl Answer {
    pub(crate) fn from_batches(schema: &SchemaRef, batches: &[RecordBatch]) -> Self {
        let types = schema.fields().iter().map(|field| field.data_type().clone()).collect();
        Self { types, rows: batches.iter().flat_map(cells).collect() }
    }

    /// These columns of all rows, in this order.
    pub(super) fn columns(&self, columns: &[usize]) -> Vec<Vec<Cell>> {
        let of_row = |row: &Vec<Cell>| columns.iter().map(|&column| row[column].clone()).collect();
        self.rows.iter().map(of_row).collect()
    }
}

/// Runs a statement to its end.
pub(super) fn answer(session: &Session, sql: &str) -> Result<Answer, SqlError> {
    session.runtime().block_on(async {
        let result = session.run(sql).await?;
        let schema = result.schema().clone();
        Ok(Answer::from_batches(&schema, &result.collect().await?))
    })
}

fn cells(batch: &RecordBatch) -> Vec<Vec<Cell>> {
    let columns: Vec<Vec<Cell>> = batch.columns().iter().map(|c| column_cells(c)).collect();
    (0..batch.num_rows()).map(|row| columns.iter().map(|c| c[row].clone()).collect()).collect()
}

fn column_cells(column: &dyn Array) -> Vec<Cell> {
    // For lists, where `[NULL]` is not `[]`.
    let options = FormatOptions::default().with_null("NULL");
    let formatter = ArrayFormatter::try_new(column, &options).expect("every type has a text");
    let text = |row: usize| match column.data_type() {
        // Adding zero turns -0 into 0: they are one value.
        DataType::Float32 => (column.as_primitive::<Float32Type>().value(row) + 0.0).to_string(),
        DataType::Float64 => (column.as_primitive::<Float64Type>().value(row) + 0.0).to_string(),
        _ => formatter.value(row).to_string(),
    };
    let is_null = |row| column.is_null(row) || column.data_type() == &DataType::Null;
    (0..column.len()).map(|row| (!is_null(row)).then(|| text(row))).collect()
}

/// The expected rows of a variant.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Expected {
    /// The columns whose values are known; the other columns may have any.
    pub(super) known: Vec<usize>,
    /// The values of these columns.
    pub(super) rows: Vec<Vec<Cell>>,
    /// A column of texts, and the column whose values are cast to them.
    pub(super) casts: Vec<(usize, usize)>,
    /// Two columns that have the same values.
    pub(super) same: Vec<(usize, usize)>,
    /// Whether the order of the rows counts.
    pub(super) is_ordered: bool,
}

impl Expected {
    /// The difference of an answer, if any.
    pub(super) fn difference(&self, answer: &Answer) -> Option<String> {
        let pairs = self.casts.iter().chain(&self.same).map(|(column, _)| column);
        let last = self.known.iter().chain(pairs).max();
        if last.is_some_and(|&last| last >= answer.types.len()) {
            return Some(format!("{} columns, too few", answer.types.len()));
        }
        let others = || self.other_casts(answer).or_else(|| self.other_values(answer));
        self.other_rows(answer).or_else(others)
    }

    fn other_rows(&self, answer: &Answer) -> Option<String> {
        let comparable = |rows: Vec<Vec<Cell>>| {
            let mut rows: Vec<Vec<Cell>> =
                rows.into_iter().map(|row| self.comparable(row, &answer.types)).collect();
            if !self.is_ordered {
                rows.sort();
            }
            rows
        };
        let (there, wanted) =
            (comparable(answer.columns(&self.known)), comparable(self.rows.clone()));
        if there.len() != wanted.len() {
            return Some(format!("{} rows instead of {}", there.len(), wanted.len()));
        }
        let (row, wanted) = there.iter().zip(&wanted).find(|(row, wanted)| row != wanted)?;
        Some(format!("{} where {} is right", shown(row), shown(wanted)))
    }

    /// The values of the known columns, with floats to eleven digits: sums may be added in another order.
    fn comparable(&self, row: Vec<Cell>, types: &[DataType]) -> Vec<Cell> {
        let rounded = |(cell, &column): (Cell, &usize)| match types[column] {
            DataType::Float32 | DataType::Float64 => cell.map(|text| match text.parse::<f64>() {
                Ok(number) if number.is_finite() => format!("{number:.10e}"),
                _ => text,
            }),
            _ => cell,
        };
        row.into_iter().zip(&self.known).map(rounded).collect()
    }

    fn other_casts(&self, answer: &Answer) -> Option<String> {
        self.casts.iter().find_map(|&(cast, of)| {
            let data_type = &answer.types[of];
            let wrong = answer.rows.iter().find(|row| !is_cast(data_type, &row[of], &row[cast]))?;
            let (value, text) = (shown(&wrong[of..=of]), shown(&wrong[cast..=cast]));
            Some(format!("column {} has the text {text} for {value}", cast + 1))
        })
    }

    fn other_values(&self, answer: &Answer) -> Option<String> {
        self.same.iter().find_map(|&(column, of)| {
            let wrong = answer.rows.iter().find(|row| row[column] != row[of])?;
            let (there, wanted) = (shown(&wrong[column..=column]), shown(&wrong[of..=of]));
            Some(format!("column {} has {there} where column {} has {wanted}", column + 1, of + 1))
        })
    }
}

/// Whether a text can be a value's cast; for types whose text has several forms only NULL is compared.
fn is_cast(data_type: &DataType, value: &Cell, text: &Cell) -> bool {
    match (value, text) {
        (None, None) => true,
        (Some(value), Some(text)) if is_written_as_shown(data_type) => value == text,
        (Some(_), Some(_)) => true,
        _ => false,
    }
}

/// Whether the text of a cast to VARCHAR is the one that Arrow shows.
pub(super) fn is_written_as_shown(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_string() || data_type == &DataType::Boolean
}

fn shown(row: &[Cell]) -> String {
    let cell = |cell: &Cell| cell.as_ref().map_or("NULL".to_owned(), |text| format!("'{text}'"));
    format!("({})", row.iter().map(cell).collect::<Vec<_>>().join(", "))
}

//! Results as texts, to be compared with another engine's.

use std::sync::Arc;

use anyhow::Result;
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::protocol::Kind;

/// Rows of texts; none is NULL.
pub(crate) type Rows = Vec<Vec<Option<String>>>;

/// Kinds of the columns, and the rows. A result without a batch has no columns.
pub(crate) fn from_batches(batches: &[RecordBatch]) -> Result<(Vec<Kind>, Rows)> {
    let Some(first) = batches.first() else { return Ok(Default::default()) };
    let kinds = first.schema().fields().iter().map(|field| kind(field.data_type())).collect();
    let mut rows = Vec::with_capacity(batches.iter().map(RecordBatch::num_rows).sum());
    for batch in batches {
        append(batch, &mut rows)?;
    }
    Ok((kinds, rows))
}

fn append(batch: &RecordBatch, rows: &mut Rows) -> Result<()> {
    let options = FormatOptions::default();
    let columns = batch.columns().iter().map(widened).collect::<Result<Vec<_>>>()?;
    let columns = columns
        .iter()
        .map(|column| Ok((column, ArrayFormatter::try_new(column, &options)?)))
        .collect::<Result<Vec<_>>>()?;
    for row in 0..batch.num_rows() {
        let value = |(column, texts): &(&ArrayRef, ArrayFormatter<'_>)| {
            (!column.is_null(row)).then(|| texts.value(row).to_string())
        };
        rows.push(columns.iter().map(value).collect());
    }
    Ok(())
}

/// REAL as DOUBLE: the shortest text of a value of 32 bits is that of another one in 64.
fn widened(column: &ArrayRef) -> Result<ArrayRef> {
    Ok(match column.data_type() {
        DataType::Float32 => cast(column, &DataType::Float64)?,
        _ => Arc::clone(column),
    })
}

fn kind(data_type: &DataType) -> Kind {
    match data_type {
        DataType::Dictionary(_, values) => kind(values),
        other if other.is_integer() => Kind::Integer,
        other if other.is_floating() => Kind::Float,
        other if other.is_decimal() => Kind::Decimal,
        _ => Kind::Text,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{
        Date32Array, Decimal128Array, Float32Array, Float64Array, StringViewArray,
    };

    use super::*;

    #[test]
    fn every_kind_of_value_has_a_text_that_loses_nothing() {
        let decimals = Decimal128Array::from(vec![Some(-1250), None]);
        let decimals = decimals.with_precision_and_scale(15, 2).expect("a decimal");
        let columns: [(&str, ArrayRef); 5] = [
            ("decimal", Arc::new(decimals)),
            ("float", Arc::new(Float64Array::from(vec![0.1 + 0.2, 1e300]))),
            ("text", Arc::new(StringViewArray::from(vec!["", "a"]))),
            ("date", Arc::new(Date32Array::from(vec![8035, 0]))),
            ("real", Arc::new(Float32Array::from(vec![0.1, 0.0]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        let (kinds, rows) = from_batches(&[batch.clone(), batch.slice(0, 1)]).expect("texts");
        assert_eq!(kinds, [Kind::Decimal, Kind::Float, Kind::Text, Kind::Text, Kind::Float]);
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0][0].as_deref(), Some("-12.50"));
        let float = rows[0][1].as_ref().and_then(|text| text.parse::<f64>().ok());
        assert_eq!(float, Some(0.1 + 0.2));
        assert_eq!(rows[0][2].as_deref(), Some(""));
        assert_eq!(rows[0][3].as_deref(), Some("1992-01-01"));
        assert_eq!(rows[0][4].as_deref(), Some("0.10000000149011612"));
        assert_eq!(rows[1][0], None);
    }

    #[test]
    fn no_batch_is_no_row() {
        assert_eq!(from_batches(&[]).expect("nothing"), (vec![], vec![]));
    }
}

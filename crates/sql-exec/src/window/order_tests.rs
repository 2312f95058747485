//! Rows in order are those of Arrow's sort, however their keys are packed.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Float64Array, Int64Array, RecordBatch,
    RecordBatchOptions, StringViewArray, UInt8Array, UInt64Array, new_null_array,
};
use datafusion::arrow::compute::{SortColumn, SortOptions, lexsort_to_indices, take};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::key::Word;
use super::order::{KeyOrder, cuts, ordered, packed, packing, part_of};
use super::rows::{KeptBatch, KeptRows, OrderedRows, RowNumber};

const KINDS: usize = 10;

fn column(kind: usize, rows: usize, random: &mut StdRng) -> ArrayRef {
    let nulls = random.random_bool(0.5);
    let mut some = |value: &mut dyn FnMut(&mut StdRng) -> i128| -> Vec<Option<i128>> {
        let mut one = || {
            let value = value(random);
            (!nulls || random.random_bool(0.8)).then_some(value)
        };
        (0..rows).map(|_| one()).collect()
    };
    let text = |value: i128, beginning: &str| format!("{beginning}{value}");
    match kind {
        0 => Arc::new(
            some(&mut |r| r.random_range(-3..3))
                .into_iter()
                .map(|v| v.map(|v| v as i64))
                .collect::<Int64Array>(),
        ),
        1 => {
            let hostile = [i64::MIN, i64::MAX, 0, -1, 1];
            let values = some(&mut |r| i128::from(hostile[r.random_range(0..5)]));
            Arc::new(values.into_iter().map(|v| v.map(|v| v as i64)).collect::<Int64Array>())
        }
        2 => Arc::new(
            some(&mut |r| r.random_range(-10_i128.pow(37)..10_i128.pow(37)))
                .into_iter()
                .collect::<Decimal128Array>(),
        ),
        3 => {
            let hostile = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, 1.5, -1.5, 1e300];
            let values = some(&mut |r| r.random_range(0..7));
            Arc::new(
                values
                    .into_iter()
                    .map(|v| v.map(|v| hostile[v as usize]))
                    .collect::<Float64Array>(),
            )
        }
        4 => {
            let values = some(&mut |r| r.random_range(0..30)).into_iter();
            let short = ["", "a", "a\0", "a\0\0", "ab", "b"];
            let text =
                |v: i128| short.get(v as usize).map_or_else(|| text(v, ""), |it| (*it).to_owned());
            Arc::new(values.map(|v| v.map(text)).collect::<StringViewArray>())
        }
        5 => {
            let values = some(&mut |r| r.random_range(0..20)).into_iter();
            Arc::new(
                values
                    .map(|v| v.map(|v| text(v, "all of them begin with this, ")))
                    .collect::<StringViewArray>(),
            )
        }
        6 => {
            let values = some(&mut |r| r.random_range(0..20)).into_iter();
            let beginnings = ["", "x", "a long text that takes more than a word, ", "ä"];
            let of = |v: i128| text(v / 4, beginnings[v as usize % 4]);
            Arc::new(values.map(|v| v.map(of)).collect::<StringViewArray>())
        }
        7 => Arc::new(
            some(&mut |r| r.random_range(0..2))
                .into_iter()
                .map(|v| v.map(|v| v as u8))
                .collect::<UInt8Array>(),
        ),
        8 => Arc::new(
            some(&mut |r| r.random_range(0..9))
                .into_iter()
                .map(|v| v.map(|v| v as i32))
                .collect::<Date32Array>(),
        ),
        _ => match nulls {
            true => new_null_array(&DataType::UInt64, rows),
            false => Arc::new(
                some(&mut |r| i128::from(r.random::<u64>()))
                    .into_iter()
                    .map(|v| v.map(|v| v as u64))
                    .collect::<UInt64Array>(),
            ),
        },
    }
}

fn kept(columns: &[ArrayRef], batch_rows: usize) -> KeptRows {
    let schema = Arc::new(Schema::empty());
    let rows = columns[0].len();
    let batch = |from: usize| {
        let rows = batch_rows.min(rows - from);
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), vec![], &options);
        let keys = columns.iter().map(|column| column.slice(from, rows)).collect();
        KeptBatch { batch: batch.expect("no columns"), keys, arguments: vec![] }
    };
    let batches = (0..rows).step_by(batch_rows).map(batch).collect();
    KeptRows { schema: Arc::clone(&schema), batches }
}

fn in_parts<W: Word>(kept: &KeptRows, order: &KeyOrder, parts: usize) -> OrderedRows {
    let packing = packing(kept, order);
    let middle = kept.batches.len() / 2;
    let all = [0..middle, middle..kept.batches.len()];
    let all = all.map(|batches| packed::<W>(kept, batches, &packing));
    let cuts = cuts(&all, parts);
    let mut rows = OrderedRows::default();
    for part in 0..parts {
        let part =
            ordered(kept, part_of(&all, &cuts, part), &packing, order).expect("it is ordered");
        rows.append(part, order.partition == 0);
    }
    rows
}

fn encoded(columns: &[ArrayRef], order: &KeyOrder) -> Rows {
    let fields = columns.iter().zip(&order.options);
    let fields = fields
        .map(|(column, options)| SortField::new_with_options(column.data_type().clone(), *options));
    let converter = RowConverter::new(fields.collect()).expect("sortable types");
    converter.convert_columns(columns).expect("columns of these types")
}

fn check(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let rows = random.random_range(1..120);
    let keys = random.random_range(1..5);
    let columns: Vec<ArrayRef> =
        (0..keys).map(|_| column(random.random_range(0..KINDS), rows, &mut random)).collect();
    let options = |_| SortOptions {
        descending: random.random_bool(0.5),
        nulls_first: random.random_bool(0.5),
    };
    let options: Vec<SortOptions> = (0..keys).map(options).collect();
    let partition = random.random_range(0..=keys);
    let order = KeyOrder { options, partition };
    let kept = kept(&columns, random.random_range(1..50));
    // Only a whole order may be cut in parts.
    let parts = if partition == 0 { random.random_range(1..4) } else { 1 };
    let found = match packing(&kept, &order).is_narrow() {
        true => in_parts::<u64>(&kept, &order, parts),
        false => in_parts::<u128>(&kept, &order, parts),
    };
    let gathered: Vec<ArrayRef> = (0..keys)
        .map(|at| kept.gather(|kept| &kept.keys[at], None, &found.rows).expect("they are there"))
        .collect();
    let sort = columns.iter().zip(&order.options).map(|(values, options)| SortColumn {
        values: Arc::clone(values),
        options: Some(*options),
    });
    let indices = lexsort_to_indices(&sort.collect::<Vec<_>>(), None).expect("sortable types");
    let taken = |column: &ArrayRef| take(column, &indices, None).expect("indices of rows");
    let expected: Vec<ArrayRef> = columns.iter().map(taken).collect();
    let (found_keys, expected) = (encoded(&gathered, &order), encoded(&expected, &order));
    assert!(found_keys.iter().eq(expected.iter()), "seed {seed}");
    let mut numbers: Vec<RowNumber> = found.rows.clone();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), rows, "seed {seed}");
    let peers: Vec<bool> =
        (0..rows).map(|at| at > 0 && found_keys.row(at - 1) == found_keys.row(at)).collect();
    assert_eq!(found.peers, peers, "seed {seed}");
    let of_partition = KeyOrder { options: order.options[..partition].to_vec(), partition };
    let starts: Vec<u32> = match partition {
        0 => vec![0],
        _ => {
            let keys = encoded(&gathered[..partition], &of_partition);
            let starts = (0..rows).filter(|at| *at == 0 || keys.row(at - 1) != keys.row(*at));
            starts.map(|at| at as u32).collect()
        }
    };
    assert_eq!(found.starts, starts, "seed {seed}");
}

#[test]
fn rows_are_in_the_order_of_arrows_sort() {
    (0..3000).for_each(check);
}

#[test]
fn no_rows_are_in_order() {
    let none = KeptRows { schema: Arc::new(Schema::empty()), batches: vec![] };
    let order = KeyOrder { options: vec![SortOptions::default()], partition: 1 };
    let rows = in_parts::<u64>(&none, &order, 3);
    assert_eq!((rows.len(), rows.partitions().count()), (0, 0));
}

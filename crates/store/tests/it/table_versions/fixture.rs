//! A small table, and how it is read.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Decimal128Array, Float64Array, Int64Array, ListArray, RecordBatch,
    StringViewArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use atoll_placement::{Arena, ChunkHome, Strategy as Placement};
use atoll_store::RowId;
use atoll_store::table::{
    BLOCK_ROWS, Chunk, ChunkWriter, Destination, FoldPolicy, Index, IndexKey, Key, KeyBuilder, Row,
    Selection, TableDefinition, TableSnapshot, TableVersion, Unique, order_words,
};
use atoll_sys::SplitMix64;
use atoll_testkit::kernel::SimulatedKernel;
use atoll_testkit::machines;
use atoll_topology::NodeId;

/// Rows of a chunk here, so that a few rows are several of them.
pub(super) const FEW: usize = 16;
pub(super) const POLICY: FoldPolicy =
    FoldPolicy { chunk_rows: FEW, changed_share: 4, tail_rows: 6 };

/// Columns of the indexes.
pub(super) const INDEXES: [&[usize]; 4] = [&[1], &[2, 1], &[4], &[3]];

/// A row of the test's table; `key` is unique.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Values {
    pub(super) key: Option<i64>,
    pub(super) city: Option<String>,
    pub(super) amount: Option<i64>,
    pub(super) price: Option<i128>,
    pub(super) real: Option<u64>,
    pub(super) list: Option<Vec<Option<i64>>>,
}

impl Values {
    pub(super) fn random(key: Option<i64>, random: &mut SplitMix64) -> Self {
        let mut number = |below: u64| match random.next() % 6 {
            0 => None,
            _ => Some((random.next() % below) as i64),
        };
        // Most amounts fit a byte, some nothing less than eight.
        let wide = number(9) == Some(0);
        Self {
            key,
            city: number(40)
                .map(|n| if n > 30 { format!("city number {n}") } else { format!("c{}", n % 5) }),
            amount: number(100).map(|n| if wide { n << 50 } else { n - 50 }),
            price: number(50).map(|n| if wide { i128::from(n) << 90 } else { n.into() }),
            real: number(5).map(|n| [0.0, -1.5, f64::NAN, f64::MAX, 7.0][n as usize].to_bits()),
            list: number(4).map(|n| (0..n).map(|at| (at != 1).then_some(at)).collect()),
        }
    }
}

pub(super) fn schema() -> SchemaRef {
    let list = DataType::List(Arc::new(Field::new("item", DataType::Int64, true)));
    Arc::new(Schema::new(vec![
        Field::new("key", DataType::Int64, true),
        Field::new("city", DataType::Utf8View, true),
        Field::new("amount", DataType::Int64, true),
        Field::new("price", DataType::Decimal128(38, 2), true),
        Field::new("real", DataType::Float64, true),
        Field::new("list", list, true),
    ]))
}

pub(super) fn batch(rows: &[Values]) -> RecordBatch {
    let list = |row: &Values| row.list.clone();
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(rows.iter().map(list));
    let prices = Decimal128Array::from_iter(rows.iter().map(|row| row.price));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.key))),
        Arc::new(StringViewArray::from_iter(rows.iter().map(|row| row.city.as_deref()))),
        Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.amount))),
        Arc::new(prices.with_precision_and_scale(38, 2).unwrap()),
        Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.real.map(f64::from_bits)))),
        Arc::new(lists),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

pub(super) fn values(batch: &RecordBatch) -> Vec<Values> {
    let there = |column: usize, row: usize| batch.column(column).is_valid(row).then_some(row);
    let row = |row: usize| Values {
        key: there(0, row).map(|row| batch.column(0).as_primitive::<Int64Type>().value(row)),
        city: there(1, row).map(|row| batch.column(1).as_string_view().value(row).to_owned()),
        amount: there(2, row).map(|row| batch.column(2).as_primitive::<Int64Type>().value(row)),
        price: there(3, row).map(|row| batch.column(3).as_primitive::<Decimal128Type>().value(row)),
        real: there(4, row)
            .map(|row| batch.column(4).as_primitive::<Float64Type>().value(row).to_bits()),
        list: there(5, row).map(|row| {
            batch.column(5).as_list::<i32>().value(row).as_primitive::<Int64Type>().iter().collect()
        }),
    };
    (0..batch.num_rows()).map(row).collect()
}

pub(super) fn destination() -> Destination {
    let machine = Arc::new(machines::four_nodes());
    let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
    let arena = Arena::new(Arc::clone(&machine), kernel, None);
    Destination { machine, arena, strategy: Placement::Aligned }
}

pub(super) fn unique(columns: Vec<usize>) -> Unique {
    Unique { name: "t_key".into(), columns, ..Unique::default() }
}

pub(super) fn index(columns: &[usize]) -> Index {
    let key = |column: &usize| IndexKey { column: *column, descending: false, nulls_first: false };
    let keys = columns.iter().map(key).collect();
    Index { name: format!("t_{columns:?}").into(), keys, ..Index::default() }
}

/// The ids of rows in the order of an index over these columns.
pub(super) fn ordered(rows: &BTreeMap<RowId, Values>, columns: &[usize]) -> Vec<RowId> {
    let values: Vec<Values> = rows.values().cloned().collect();
    let columns = batch(&values).project(columns).unwrap();
    let words = order_words(columns.columns()).unwrap();
    let mut rows: Vec<_> = words.into_iter().zip(rows.keys().copied()).collect();
    rows.sort_unstable();
    rows.into_iter().map(|(_, id)| id).collect()
}

pub(super) fn empty() -> TableVersion {
    let mut definition = TableDefinition::new(schema(), Placement::Aligned);
    definition.uniques.push(unique(vec![0]));
    definition.indexes = INDEXES.iter().map(|columns| index(columns)).collect();
    TableVersion::new("t".into(), Arc::new(definition), destination()).unwrap()
}

pub(super) fn chunks(
    version: &TableVersion,
    node: NodeId,
    rows: &[Values],
    chunk_rows: usize,
) -> Vec<Arc<Chunk>> {
    let to = version.destination().clone();
    let writer = ChunkWriter::new("t".into(), schema(), to, node, 0).with_chunk_rows(chunk_rows);
    let mut writer = writer.with_home(ChunkHome::Node(node));
    writer.write(&batch(rows)).unwrap();
    writer.finish().unwrap().into_iter().map(Arc::new).collect()
}

pub(super) fn encoded(version: &TableVersion, row: &Values) -> Row {
    version.codec().encode(&batch(std::slice::from_ref(row))).unwrap().remove(0)
}

/// The rows of a snapshot with their ids, and the node of each.
pub(super) fn scanned(view: &TableSnapshot) -> BTreeMap<RowId, (Values, Option<NodeId>)> {
    let mut rows = BTreeMap::new();
    for (number, chunk) in view.chunks.iter().enumerate() {
        for (at, block) in chunk.copies[0].blocks.iter().enumerate() {
            let len = BLOCK_ROWS.min(chunk.rows - at * BLOCK_ROWS);
            let whole = Selection::Range { offset: 0, len };
            let live = view.live(number, at);
            let Some(wanted) = live.map_or(Some(whole.clone()), |live| whole.kept_by(live)) else {
                continue;
            };
            let columns = block.iter().zip(view.schema.fields());
            let columns = columns.map(|(column, f)| column.decode(f.data_type(), &wanted).unwrap());
            let batch = RecordBatch::try_new(Arc::clone(&view.schema), columns.collect()).unwrap();
            for (row, values) in wanted.numbers().into_iter().zip(values(&batch)) {
                let id = view.row_ids(number).at(at * BLOCK_ROWS + row as usize);
                let before = rows.insert(id, (values, chunk.copies[0].wanted));
                assert!(before.is_none(), "row {id} is there twice");
            }
        }
    }
    assert_eq!(rows.len(), view.rows);
    rows
}

pub(super) fn key_of(key: i64) -> Key {
    let mut builder = KeyBuilder::default();
    builder.fixed(&key.to_le_bytes());
    builder.finish()
}

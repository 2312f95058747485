//! Parquet files of others, written here column by column as other writers write them.

use std::fs::File;
use std::sync::Arc;

use atoll_sql::Session;
use atoll_sql::datafusion::parquet::data_type::{
    ByteArray, ByteArrayType, DataType, FixedLenByteArray, FixedLenByteArrayType, Int32Type, Int96,
    Int96Type,
};
use atoll_sql::datafusion::parquet::file::metadata::{
    ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter,
};
use atoll_sql::datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use atoll_sql::datafusion::parquet::file::statistics::Statistics;
use atoll_sql::datafusion::parquet::file::writer::{
    SerializedFileWriter, SerializedRowGroupWriter,
};
use atoll_sql::datafusion::parquet::schema::parser::parse_message_type;
use bytes::Bytes;

use crate::common::{live, rows, run};

/// A file in a directory of its own.
struct Sample {
    _directory: tempfile::TempDir,
    path: String,
}

impl Sample {
    /// One row group, whose columns are written in order.
    fn new(schema: &str, write: impl Fn(&mut Columns<'_>)) -> Self {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let path = directory.path().join("t.parquet").display().to_string();
        let schema = Arc::new(parse_message_type(schema).expect("the schema is well formed"));
        let properties = WriterProperties::builder()
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .build();
        let file = File::create(&path).expect("the file can be made");
        let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
        {
            let mut columns = Columns(writer.next_row_group().unwrap());
            write(&mut columns);
            columns.0.close().unwrap();
        }
        writer.close().unwrap();
        Self { _directory: directory, path }
    }

    /// Replaces what the file says of itself; its data stay.
    fn rewrite(&self, change: impl Fn(ParquetMetaData) -> ParquetMetaData) {
        let bytes = Bytes::from(std::fs::read(&self.path).unwrap());
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&bytes).unwrap();
        let length = &bytes[bytes.len() - 8..bytes.len() - 4];
        let length = u32::from_le_bytes(length.try_into().unwrap()) as usize;
        let mut written = bytes[..bytes.len() - 8 - length].to_vec();
        ParquetMetaDataWriter::new(&mut written, &change(metadata)).finish().unwrap();
        std::fs::write(&self.path, written).unwrap();
    }

    fn rows(&self, session: &Session, select: &str, rest: &str) -> Vec<Vec<String>> {
        rows(session, &format!("SELECT {select} FROM '{}' {rest}", self.path))
    }

    fn refusal(&self) -> String {
        let sql = format!("SELECT * FROM '{}'", self.path);
        run(&live(), &sql).expect_err("the file is refused").to_string()
    }
}

/// The columns of a row group.
struct Columns<'a>(SerializedRowGroupWriter<'a, File>);

impl Columns<'_> {
    /// The next one: its values, with the levels that its repetition asks for.
    fn next<T: DataType>(
        &mut self,
        values: &[T::T],
        levels: Option<&[i16]>,
        repeats: Option<&[i16]>,
    ) {
        let mut column = self.0.next_column().unwrap().expect("the schema has the column");
        column.typed::<T>().write_batch(values, levels, repeats).unwrap();
        column.close().unwrap();
    }
}

fn numbers(rows: i32) -> Vec<i32> {
    (0..rows).collect()
}

fn bytes(text: &str) -> ByteArray {
    ByteArray::from(text)
}

fn interval(months: i32, days: i32, milliseconds: u32) -> FixedLenByteArray {
    let parts = [months.to_le_bytes(), days.to_le_bytes(), milliseconds.to_le_bytes()];
    FixedLenByteArray::from(parts.concat())
}

#[test]
fn intervals_keep_their_months() {
    let schema = "message m { required binary name (UTF8);
        optional fixed_len_byte_array(12) i (INTERVAL); required int32 k; }";
    let sample = Sample::new(schema, |columns| {
        columns.next::<ByteArrayType>(&["a", "b", "c"].map(bytes), None, None);
        let values = [interval(14, 3, 4_500), interval(-1, 0, 0)];
        columns.next::<FixedLenByteArrayType>(&values, Some(&[1, 0, 1]), None);
        columns.next::<Int32Type>(&numbers(3), None, None);
    });
    let session = live();
    let later = "k, name, TIMESTAMP '2020-01-01 00:00:00' + i";
    let expected = [
        ["0", "a", "2021-03-04T00:00:04.500"],
        ["1", "b", "NULL"],
        ["2", "c", "2019-12-01T00:00:00"],
    ];
    assert_eq!(sample.rows(&session, later, "ORDER BY k"), expected);
    let shown = [["14 mons 3 days 4.500000000 secs"], ["-1 mons"]];
    assert_eq!(sample.rows(&session, "i", "WHERE i IS NOT NULL ORDER BY k"), shown);
    assert_eq!(sample.rows(&session, "k", "WHERE i = INTERVAL '-1 month'"), [["2"]]);
    assert_eq!(sample.rows(&session, "count(*), count(i)", ""), [["3", "2"]]);
    let load = format!("CREATE TABLE t AS SELECT * FROM '{}'", sample.path);
    rows(&session, &load);
    assert_eq!(rows(&session, &format!("SELECT {later} FROM t ORDER BY k")), expected);
}

#[test]
fn an_interval_inside_of_a_list_is_refused_by_name() {
    let schema =
        "message m { required group g { required fixed_len_byte_array(12) i (INTERVAL); } }";
    let sample = Sample::new(schema, |columns| {
        columns.next::<FixedLenByteArrayType>(&[interval(1, 1, 1)], None, None);
    });
    let refusal = sample.refusal();
    assert!(
        refusal.contains("t.parquet has an INTERVAL inside") && refusal.contains("\"g.i\""),
        "{refusal}"
    );
}

#[test]
fn timestamps_of_96_bits_go_beyond_2262() {
    let sample = Sample::new("message m { required int96 t; required int32 k; }", |columns| {
        // Nanoseconds of the day in two parts, and the Julian day: 9999-12-31, 1970-01-01, 0001-01-01.
        let last: u64 = 86_399_123_456_000;
        let stamps = [(last, 5_373_484), (0, 2_440_588), (0, 1_721_426)].map(|(time, day)| {
            let mut stamp = Int96::new();
            stamp.set_data(time as u32, (time >> 32) as u32, day);
            stamp
        });
        columns.next::<Int96Type>(&stamps, None, None);
        columns.next::<Int32Type>(&numbers(3), None, None);
    });
    let session = live();
    let expected =
        [["9999-12-31T23:59:59.123456"], ["1970-01-01T00:00:00"], ["0001-01-01T00:00:00"]];
    assert_eq!(sample.rows(&session, "t", "ORDER BY k"), expected);
    assert_eq!(sample.rows(&session, "k", "WHERE date_part('year', t) > 5000"), [["0"]]);
    assert_eq!(sample.rows(&session, "min(t), max(k)", ""), [["0001-01-01T00:00:00", "2"]]);
}

#[test]
fn two_columns_of_one_name_are_refused_by_name() {
    for (schema, name) in [
        ("message m { required int32 a; required int32 b; required int32 a; }", "\"a\""),
        (
            "message m { required group g { required int32 a; required int32 b; required int32 b; } }",
            "\"g.b\"",
        ),
    ] {
        let sample = Sample::new(schema, |columns| {
            (0..3).for_each(|_| columns.next::<Int32Type>(&[1], None, None));
        });
        let refusal = sample.refusal();
        assert!(
            refusal.contains("t.parquet has two columns named") && refusal.contains(name),
            "{refusal}"
        );
    }
}

#[test]
fn an_absent_count_of_nulls_is_not_zero() {
    let sample = Sample::new("message m { optional int32 x; required int32 y; }", |columns| {
        let levels: Vec<i16> = (0..1000).map(|row| i16::from(row >= 472)).collect();
        columns.next::<Int32Type>(&numbers(528), Some(&levels), None);
        columns.next::<Int32Type>(&numbers(1000), None, None);
    });
    sample.rewrite(|metadata| {
        let mut builder = metadata.into_builder();
        let mut groups = builder.take_row_groups();
        for chunk in groups[0].columns_mut() {
            let Some(Statistics::Int32(known)) = chunk.statistics() else { panic!("of numbers") };
            let (min, max) = (known.min_opt().copied(), known.max_opt().copied());
            let statistics = Statistics::int32(min, max, None, None, false);
            *chunk = chunk.clone().into_builder().set_statistics(statistics).build().unwrap();
        }
        builder.set_row_groups(groups).build()
    });
    let session = live();
    assert_eq!(sample.rows(&session, "count(*)", "WHERE x IS NULL"), [["472"]]);
    assert_eq!(sample.rows(&session, "count(*)", "WHERE x IS NOT NULL"), [["528"]]);
    assert_eq!(
        sample.rows(&session, "count(*), count(x), count(y), max(x)", ""),
        [["1000", "528", "1000", "527"]]
    );
    assert_eq!(sample.rows(&session, "count(*)", "WHERE x > 500"), [["27"]]);
}

#[test]
fn repeated_fields_without_annotation_are_lists() {
    let schema = "message m { required int32 k; repeated int32 x;
        repeated group g { required int32 a; optional binary b (UTF8); } required int32 last; }";
    let sample = Sample::new(schema, |columns| {
        columns.next::<Int32Type>(&[1, 2, 3], None, None);
        columns.next::<Int32Type>(&[10, 11, 12], Some(&[1, 1, 0, 1]), Some(&[0, 1, 0, 0]));
        columns.next::<Int32Type>(&[7, 8], Some(&[0, 1, 1, 0]), Some(&[0, 0, 1, 0]));
        columns.next::<ByteArrayType>(&[bytes("t")], Some(&[0, 2, 1, 0]), Some(&[0, 0, 1, 0]));
        columns.next::<Int32Type>(&[4, 5, 6], None, None);
    });
    let session = live();
    let expected = [
        ["1", "[10, 11]", "[]", "4"],
        ["2", "[]", "[{a: 7, b: t}, {a: 8, b: NULL}]", "5"],
        ["3", "[12]", "[]", "6"],
    ];
    assert_eq!(sample.rows(&session, "*", "ORDER BY k"), expected);
    assert_eq!(sample.rows(&session, "x[1], g[1]['a']", "WHERE k = 1"), [["10", "NULL"]]);
    assert_eq!(sample.rows(&session, "k", "WHERE last > 4 AND array_length(x) = 1"), [["3"]]);
    assert_eq!(sample.rows(&session, "count(*)", "WHERE x IS NULL"), [["0"]]);
    rows(&session, &format!("CREATE TABLE t AS SELECT * FROM '{}'", sample.path));
    assert_eq!(rows(&session, "SELECT * FROM t ORDER BY k"), expected);
}

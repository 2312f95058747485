//! Parquet files from other programs, written here column by column as other writers write them.

use std::fs::File;
use std::sync::Arc;

use atoll_sql::Session;
use atoll_sql::datafusion::parquet::basic::LogicalType;
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

/// A file in a temporary directory.
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

    /// Replaces the metadata of the file; its data stay.
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
    /// Writes the next column: its values, with the levels that its repetition requires.
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
fn intervals_and_uuids_inside_of_others_are_values() {
    let schema = "message m { required group g { required fixed_len_byte_array(12) i (INTERVAL);
        optional fixed_len_byte_array(16) u (UUID); } optional group l (LIST) { repeated group list {
        optional fixed_len_byte_array(16) element (UUID); } } required fixed_len_byte_array(16) b; }";
    let uuid = |last: u8| {
        let mut bytes = vec![0x11; 16];
        bytes[15] = last;
        FixedLenByteArray::from(bytes)
    };
    let sample = Sample::new(schema, |columns| {
        columns.next::<FixedLenByteArrayType>(&[interval(14, 1, 1), interval(0, 2, 0)], None, None);
        columns.next::<FixedLenByteArrayType>(&[uuid(1)], Some(&[1, 0]), None);
        let lists = [uuid(2), uuid(3)];
        columns.next::<FixedLenByteArrayType>(&lists, Some(&[3, 3, 2]), Some(&[0, 1, 0]));
        columns.next::<FixedLenByteArrayType>(&[uuid(4), uuid(5)], None, None);
    });
    let session = live();
    let first = "11111111-1111-1111-1111-1111111111";
    let of = |last: &str| format!("{first}{last}");
    let (inside, lists) = ("g['u'], l[2]", "l");
    assert_eq!(
        sample.rows(&session, inside, ""),
        [[of("01"), of("03")], ["NULL"; 2].map(String::from)]
    );
    let expected = [[format!("[{}, {}]", of("02"), of("03"))], ["[NULL]".to_owned()]];
    assert_eq!(sample.rows(&session, lists, ""), expected);
    let later = "TIMESTAMP '2020-01-01 00:00:00' + g['i']";
    let expected = [["2021-03-02T00:00:00.001"], ["2020-01-03T00:00:00"]];
    assert_eq!(sample.rows(&session, later, ""), expected);
    let found = sample.rows(&session, "count(*)", &format!("WHERE g['u'] = '{}'", of("01")));
    assert_eq!(found, [["1"]]);
    assert_eq!(sample.rows(&session, "octet_length(b)", ""), [["16"], ["16"]]);
}

#[test]
fn intervals_survive_a_round_trip() {
    let (session, directory) = (live(), tempfile::tempdir().expect("a directory"));
    let path = directory.path().join("i.parquet").display().to_string();
    let values =
        "(1, INTERVAL '1 year 2 months 3 days 4.5 seconds'), (2, NULL), (3, INTERVAL '0 days')";
    rows(&session, "CREATE TABLE t (k INT, i INTERVAL)");
    rows(&session, &format!("INSERT INTO t VALUES {values}"));
    rows(
        &session,
        &format!("COPY (SELECT k, i, [i, NULL] AS l, {{'j': i}} AS s FROM t) TO '{path}'"),
    );
    let same = format!(
        "SELECT count(*) FROM t JOIN '{path}' AS f ON t.k = f.k WHERE t.i IS NOT DISTINCT FROM f.i AND \
         f.l[1] IS NOT DISTINCT FROM t.i AND f.l[2] IS NULL AND f.s['j'] IS NOT DISTINCT FROM t.i"
    );
    assert_eq!(rows(&session, &same), [["3"]]);
    let sql = format!("COPY (SELECT INTERVAL '-1 day' AS i) TO '{path}'");
    let told = run(&session, &sql).expect_err("Parquet has no such interval").to_string();
    assert!(told.contains("-1 days") && told.contains("Arrow file"), "{told}");
    assert_eq!(rows(&session, &same), [["3"]], "the file is as it was");
}

#[test]
fn uuids_are_written_as_such() {
    let (session, directory) = (live(), tempfile::tempdir().expect("a directory"));
    let path = directory.path().join("u.parquet").display().to_string();
    rows(&session, "CREATE TABLE t (k INT, u UUID, i INTERVAL)");
    rows(
        &session,
        "INSERT INTO t VALUES (1, '123E4567E89B12D3A456426614174000', NULL), (2, NULL, NULL)",
    );
    rows(&session, &format!("COPY t TO '{path}'"));
    let bytes = Bytes::from(std::fs::read(&path).expect("the file is there"));
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&bytes).expect("it is whole");
    let columns = metadata.file_metadata().schema_descr().columns();
    assert_eq!(columns[1].logical_type_ref(), Some(&LogicalType::Uuid));
    let expected = [["1", "123e4567-e89b-12d3-a456-426614174000"], ["2", "NULL"]];
    assert_eq!(rows(&session, &format!("SELECT k, u FROM '{path}' ORDER BY k")), expected);
    let found = format!("SELECT k FROM '{path}' WHERE u = '123e4567-e89b-12d3-a456-426614174000'");
    assert_eq!(rows(&session, &found), [["1"]]);
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

#[test]
fn the_error_of_a_damaged_file_names_it() {
    let (directory, session) = (tempfile::tempdir().expect("a directory can be made"), live());
    let at = directory.path().display().to_string();
    for name in ["a", "b", "c"] {
        let numbers = "SELECT i, 'text ' || i AS t FROM generate_series(1, 20000) g(i)";
        rows(&session, &format!("COPY ({numbers}) TO '{at}/{name}.parquet' (FORMAT parquet)"));
    }
    let path = directory.path().join("b.parquet");
    let mut bytes = std::fs::read(&path).expect("the file was written");
    // The header of its first page.
    bytes[4..40].fill(0xff);
    std::fs::write(&path, bytes).expect("the file can be written");
    for from in [format!("'{at}/b.parquet'"), format!("'{at}/*.parquet'")] {
        let told = run(&session, &format!("SELECT sum(i), count(DISTINCT t) FROM {from}"));
        let told = told.expect_err("it is damaged").to_string();
        assert!(told.contains("b.parquet' is truncated or damaged"), "{told}");
    }
    assert_eq!(rows(&session, &format!("SELECT sum(i) FROM '{at}/a.parquet'")), [["200010000"]]);
}

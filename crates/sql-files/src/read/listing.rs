//! Functions that describe files: their names, contents, syntax and metadata.

use std::io::Read;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use datafusion::catalog::TableProvider;
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use datafusion::datasource::MemTable;
use datafusion::execution::SessionState;
use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};
use datafusion::parquet::schema::types::Type;

use super::open::recognised;
use crate::csv;
use crate::source::TypeNames;
use crate::source::found::{SourceFile, find};
use atoll_sql_parse::syntax::{FileKind, FileOptions, Listing};

type Columns = Vec<(&'static str, ArrayRef)>;

fn texts<T: AsRef<str>>(values: impl IntoIterator<Item = Option<T>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<StringArray>())
}

fn numbers(values: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int64Array>())
}

/// The table that a function returns.
pub(super) fn table(
    listing: Listing,
    state: &SessionState,
    function: &str,
    paths: &[String],
    options: &FileOptions,
) -> Result<Arc<dyn TableProvider>> {
    let known = if listing == Listing::SniffedCsv { csv::KNOWN } else { &[] };
    options.check(function, known)?;
    let columns = match listing {
        Listing::Glob => glob(paths)?,
        Listing::Text | Listing::Blob => contents(paths, listing == Listing::Text)?,
        Listing::SniffedCsv => sniffed_csv(state, paths, options)?,
        Listing::ParquetSchema => parquet_schema(paths)?,
        Listing::ParquetMetadata => parquet_metadata(paths)?,
        Listing::ParquetFileMetadata => parquet_file_metadata(paths)?,
    };
    let nullable = columns.into_iter().map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(nullable)?;
    Ok(Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]])?))
}

fn glob(paths: &[String]) -> Result<Columns> {
    let mut names = Vec::new();
    for path in paths {
        // An empty list is a valid result here.
        let found = find(std::slice::from_ref(path)).unwrap_or_default();
        names.extend(found.iter().map(|file| Some(file.name())));
    }
    Ok(vec![("file", texts(names))])
}

fn contents(paths: &[String], is_text: bool) -> Result<Columns> {
    let files = find(paths)?;
    let mut contents = Vec::with_capacity(files.len());
    for file in &files {
        let mut content = Vec::new();
        file.open()?.read_to_end(&mut content).map_err(|error| file.failed(&error))?;
        contents.push(content);
    }
    let content: ArrayRef = if is_text {
        let mut values = Vec::with_capacity(contents.len());
        for (content, file) in contents.into_iter().zip(&files) {
            let text = String::from_utf8(content).map_err(|_| {
                exec_datafusion_err!("'{}' is not UTF-8; read_blob reads its bytes", file.name())
            })?;
            values.push(Some(text));
        }
        texts(values)
    } else {
        Arc::new(BinaryArray::from_iter_values(contents))
    };
    let modified: TimestampMicrosecondArray = files.iter().map(SourceFile::modified_us).collect();
    Ok(vec![
        ("filename", texts(files.iter().map(|file| Some(file.name())))),
        ("content", content),
        ("size", numbers(files.iter().map(|file| Some(file.size.cast_signed())))),
        ("last_modified", Arc::new(modified)),
    ])
}

fn sniffed_csv(state: &SessionState, paths: &[String], options: &FileOptions) -> Result<Columns> {
    let (_, files) = recognised(paths, Some(FileKind::Csv), false)?;
    let shown = csv::sniffed_by(&files, options, &TypeNames(state))?.shown();
    let column = |(name, text): (&'static str, String)| {
        let column: ArrayRef = match name {
            "skiprows" => numbers([text.parse().ok()]),
            "hasheader" => Arc::new(BooleanArray::from(vec![text == "true"])),
            _ => texts([Some(text)]),
        };
        (name, column)
    };
    Ok(shown.into_iter().map(column).collect())
}

/// The Parquet files of these names, with readers of their metadata.
fn parquet(paths: &[String]) -> Result<Vec<(SourceFile, SerializedFileReader<std::fs::File>)>> {
    let (_, files) = recognised(paths, Some(FileKind::Parquet), false)?;
    let mut readers = Vec::with_capacity(files.len());
    for file in files {
        let Ok(reader) = SerializedFileReader::new(file.open()?) else {
            return exec_err!("'{}' is truncated or damaged", file.name());
        };
        readers.push((file, reader));
    }
    Ok(readers)
}

fn parquet_schema(paths: &[String]) -> Result<Columns> {
    let readers = parquet(paths)?;
    let mut files = Vec::new();
    let mut columns = Vec::new();
    for (file, reader) in &readers {
        let before = columns.len();
        let root = reader.metadata().file_metadata().schema();
        below(root, true, &mut columns);
        files.extend(std::iter::repeat_n(file.name(), columns.len() - before));
    }
    let of = |part: fn(&ParquetColumn) -> Option<String>| texts(columns.iter().map(part));
    let children: Int64Array = columns.iter().map(|column| column.children).collect();
    Ok(vec![
        ("file_name", texts(files.into_iter().map(Some))),
        ("name", of(|column| Some(column.name.clone()))),
        ("type", of(|column| column.kind.clone())),
        ("repetition_type", of(|column| column.repetition.clone())),
        ("num_children", Arc::new(children)),
        ("converted_type", of(|column| column.converted.clone())),
        ("logical_type", of(|column| column.logical.clone())),
    ])
}

/// A node of a Parquet schema.
struct ParquetColumn {
    name: String,
    kind: Option<String>,
    repetition: Option<String>,
    children: Option<i64>,
    converted: Option<String>,
    logical: Option<String>,
}

fn below(node: &Type, is_root: bool, columns: &mut Vec<ParquetColumn>) {
    let info = node.get_basic_info();
    let converted = info.converted_type().to_string();
    columns.push(ParquetColumn {
        name: node.name().to_owned(),
        kind: node.is_primitive().then(|| node.get_physical_type().to_string()),
        repetition: (!is_root).then(|| info.repetition().to_string()),
        children: node.is_group().then(|| node.get_fields().len() as i64),
        converted: (converted != "NONE").then_some(converted),
        logical: info.logical_type_ref().map(|logical| format!("{logical:?}")),
    });
    if node.is_group() {
        node.get_fields().iter().for_each(|field| below(field, false, columns));
    }
}

fn parquet_metadata(paths: &[String]) -> Result<Columns> {
    let readers = parquet(paths)?;
    let mut names = Vec::new();
    let mut columns = Vec::new();
    for (file, reader) in &readers {
        for (number, group) in reader.metadata().row_groups().iter().enumerate() {
            for (at, column) in group.columns().iter().enumerate() {
                names.push(Some(file.name()));
                columns.push((number as i64, group.num_rows(), at as i64, column));
            }
        }
    }
    let count = |of: fn(&datafusion::parquet::file::metadata::ColumnChunkMetaData) -> i64| {
        numbers(columns.iter().map(|(.., column)| Some(of(column))))
    };
    Ok(vec![
        ("file_name", texts(names)),
        ("row_group_id", numbers(columns.iter().map(|(group, ..)| Some(*group)))),
        ("row_group_num_rows", numbers(columns.iter().map(|(_, rows, ..)| Some(*rows)))),
        ("column_id", numbers(columns.iter().map(|(_, _, at, _)| Some(*at)))),
        ("num_values", count(|column| column.num_values())),
        ("path_in_schema", texts(columns.iter().map(|(.., it)| Some(it.column_path().string())))),
        ("type", texts(columns.iter().map(|(.., it)| Some(it.column_type().to_string())))),
        (
            "stats_null_count",
            numbers(columns.iter().map(|(.., it)| {
                it.statistics().and_then(|it| it.null_count_opt()).map(u64::cast_signed)
            })),
        ),
        (
            "compression",
            texts(columns.iter().map(|(.., it)| {
                let name = it.compression().to_string();
                Some(name.split('(').next().unwrap_or_default().to_owned())
            })),
        ),
        ("total_compressed_size", count(|column| column.compressed_size())),
        ("total_uncompressed_size", count(|column| column.uncompressed_size())),
    ])
}

fn parquet_file_metadata(paths: &[String]) -> Result<Columns> {
    let readers = parquet(paths)?;
    let metadata = || readers.iter().map(|(_, reader)| reader.metadata());
    let version: Int32Array = metadata().map(|it| Some(it.file_metadata().version())).collect();
    Ok(vec![
        ("file_name", texts(readers.iter().map(|(file, _)| Some(file.name())))),
        ("created_by", texts(metadata().map(|it| it.file_metadata().created_by()))),
        ("num_rows", numbers(metadata().map(|it| Some(it.file_metadata().num_rows())))),
        ("num_row_groups", numbers(metadata().map(|it| Some(it.num_row_groups() as i64)))),
        ("format_version", Arc::new(version)),
    ])
}

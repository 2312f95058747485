//! Opens files as a table.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::{Result, ScalarValue, exec_err, plan_datafusion_err, plan_err};
use datafusion::datasource::file_format::FileFormat;
use datafusion::execution::SessionState;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;

use crate::source::TypeNames;
use crate::source::found::{SourceFile, find};
use crate::source::hive::{self, HiveColumns};
use crate::source::kind::recognise;
use crate::source::table::{FilesPart, FilesTable, PartReader};
use crate::{csv, json};
use atoll_sql_parse::syntax::{FileKind, FileOptions, compression_named};

const FILENAME: &[&str] = &["filename"];
const BY_NAME: &[&str] = &["union_by_name"];
const COMPRESSION: &[&str] = &["compression"];
/// Options of all kinds of files.
const KNOWN: &[&[&str]] = &[FILENAME, BY_NAME, COMPRESSION];
/// DuckDB's options of Parquet files that only control how it works.
const PARQUET: &[&[&str]] = &[&["binary_as_string"], &["can_have_nan"]];

/// The table over the files of a call or a name; `expected` is their assumed kind.
pub(super) async fn open(
    state: &SessionState,
    function: &str,
    expected: Option<FileKind>,
    paths: &[String],
    options: &FileOptions,
) -> Result<Arc<dyn TableProvider>> {
    // A file without rows is allowed if the columns are known.
    let has_columns = options.target.is_some() && expected == Some(FileKind::Csv);
    let (kind, files) = recognised(paths, expected, has_columns)?;
    let known = match kind {
        FileKind::Csv => csv::KNOWN,
        FileKind::Json => json::KNOWN,
        FileKind::Parquet => PARQUET,
        FileKind::Arrow => &[],
    };
    options.check(function, &[known, hive::KNOWN, KNOWN].concat())?;
    if let Some(text) = options.text(COMPRESSION)?
        && !["auto", "auto_detect"].contains(&text.as_str())
        && compression_named(&text).is_none()
    {
        return plan_err!(
            "unknown compression '{text}'; expected one of auto, none, gzip, zstd, bzip2, xz"
        );
    }
    let types = TypeNames(state);
    let by_name = options.bool(BY_NAME)?.unwrap_or(false);
    let parts = match kind {
        FileKind::Csv => csv::parts(&files, options, &types, by_name)?,
        FileKind::Json => json::parts(&files, options, &types)?,
        FileKind::Parquet => format_parts(state, "parquet", files.clone(), by_name).await?,
        FileKind::Arrow => format_parts(state, "arrow", files.clone(), by_name).await?,
    };
    let columns = merged(&parts, by_name)?;
    let hive = HiveColumns::from_files(&files, options, &types)?;
    let (fields, values) = columns_of_files(&files, hive, &columns, options)?;
    Ok(Arc::new(FilesTable::new(columns, fields, parts, values)))
}

/// The files with content, and their kind; empty files are refused, unless they
/// `may_be_empty`.
pub(super) fn recognised(
    paths: &[String],
    expected: Option<FileKind>,
    may_be_empty: bool,
) -> Result<(FileKind, Vec<SourceFile>)> {
    let mut files = find(paths)?;
    if files.len() > 1 && files.iter().any(|file| file.size > 0) {
        files.retain(|file| file.size > 0);
    }
    let mut kinds = Vec::with_capacity(files.len());
    for file in &mut files {
        kinds.push(match expected {
            Some(expected) if may_be_empty && file.size == 0 => expected,
            _ => recognise(file, expected)?,
        });
    }
    let Some(first) = kinds.first().copied() else { return exec_err!("no files to read") };
    if let Some(other) = kinds.iter().position(|kind| *kind != first) {
        return exec_err!(
            "'{}' and '{}' are files of different kinds; name files of one kind, for example with '*.csv'",
            files[0].name(),
            files[other].name()
        );
    }
    Ok((first, files))
}

/// Files that DataFusion reads and that contain their schema.
async fn format_parts(
    state: &SessionState,
    name: &str,
    files: Vec<SourceFile>,
    by_name: bool,
) -> Result<Vec<FilesPart>> {
    let Some(factory) = state.get_file_format_factory(name) else {
        return plan_err!("files of the format {name} cannot be read");
    };
    let format: Arc<dyn FileFormat> = factory.create(state, &Default::default())?;
    let store = state.runtime_env().object_store(ObjectStoreUrl::local_filesystem())?;
    let mut parts: Vec<FilesPart> = Vec::new();
    for file in files {
        let object = file.object()?;
        let schema = format.infer_schema(state, &store, std::slice::from_ref(&object)).await;
        let schema = schema.map_err(|error| damaged(&file, name, error))?;
        match parts.last_mut() {
            Some(last) if last.schema.fields() == schema.fields() => last.files.push(file),
            _ => {
                let reader = PartReader::Format(Arc::clone(&format));
                parts.push(FilesPart { files: vec![file], schema, reader });
            }
        }
    }
    if !by_name && let [first, others @ ..] = parts.as_slice() {
        for other in others {
            let is_there = |field: &&FieldRef| other.schema.field_with_name(field.name()).is_err();
            if let Some(missing) = first.schema.fields().iter().find(is_there) {
                return exec_err!(
                    "'{}' does not have the column \"{}\" of '{}'; read_{name} with union_by_name = \
                     true reads such files",
                    other.files[0].name(),
                    missing.name(),
                    first.files[0].name()
                );
            }
        }
    }
    Ok(parts)
}

fn damaged(
    file: &SourceFile,
    format: &str,
    error: datafusion::common::DataFusionError,
) -> datafusion::common::DataFusionError {
    let text = error.strip_backtrace();
    let is_cut =
        ["Corrupt footer", "footer", "EOF", "eof", "fill whole buffer", "Invalid Parquet file"];
    match is_cut.iter().any(|it| text.contains(it)) {
        true => datafusion::common::exec_datafusion_err!(
            "'{}' is truncated or damaged: it begins but does not end as {format}",
            file.name()
        ),
        false => error,
    }
}

/// The columns of all parts, in types that hold all values: by name the columns of all parts, else
/// those of the first.
fn merged(parts: &[FilesPart], by_name: bool) -> Result<SchemaRef> {
    let Some((first, rest)) = parts.split_first() else { return exec_err!("no files to read") };
    let mut fields: Vec<Field> =
        first.schema.fields().iter().map(|field| Field::clone(field).with_nullable(true)).collect();
    if rest.is_empty() {
        return Ok(Arc::clone(&first.schema));
    }
    for part in rest {
        for field in part.schema.fields() {
            match fields.iter_mut().find(|known| known.name() == field.name()) {
                Some(known) => {
                    let both = widest(known.data_type(), field.data_type());
                    known.set_data_type(both);
                }
                None if by_name => fields.push(Field::clone(field).with_nullable(true)),
                None => {}
            }
        }
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// A type that holds the values of both.
fn widest(a: &DataType, b: &DataType) -> DataType {
    if a == b {
        return a.clone();
    }
    let is_text = |it: &DataType| matches!(it, DataType::Utf8 | DataType::Utf8View);
    let both = type_union_resolution(&[a.clone(), b.clone()]);
    both.filter(|_| !is_text(a) && !is_text(b)).unwrap_or(DataType::Utf8)
}

/// The columns that files do not contain, and their values for each file.
fn columns_of_files(
    files: &[SourceFile],
    hive: HiveColumns,
    own: &Schema,
    options: &FileOptions,
) -> Result<(Vec<Field>, Vec<Vec<ScalarValue>>)> {
    let has = |name: &str| own.field_with_name(name).is_ok();
    let (mut fields, mut values) = (Vec::new(), vec![Vec::new(); files.len()]);
    if let Some(name) = filename(options)? {
        if has(&name) {
            return plan_err!(
                "the files already have a column '{name}'; filename = 'path' renames the column of \
                 file names"
            );
        }
        fields.push(Field::new(name, DataType::Utf8, false));
        for (values, file) in values.iter_mut().zip(files) {
            values.push(ScalarValue::from(file.name()));
        }
    }
    for (at, field) in hive.fields.into_iter().enumerate().filter(|(_, it)| !has(it.name())) {
        fields.push(field);
        for (values, hive) in values.iter_mut().zip(&hive.values) {
            values.push(hive[at].clone());
        }
    }
    Ok((fields, values))
}

/// The name of the column with the file name.
fn filename(options: &FileOptions) -> Result<Option<String>> {
    let invalid =
        || plan_datafusion_err!("invalid value of option filename; expected true or a name");
    match options.get(FILENAME) {
        None => Ok(None),
        Some(value) => match options.bool(FILENAME) {
            Ok(wanted) => Ok(wanted.unwrap_or(false).then(|| "filename".to_owned())),
            Err(_) => value.text().map(|name| Some(name.to_owned())).ok_or_else(invalid),
        },
    }
}

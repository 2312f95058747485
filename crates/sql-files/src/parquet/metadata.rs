//! The metadata of a file for DataFusion, without misleading statistics.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::object_store::path::Path;
use datafusion::parquet::basic::{ConvertedType, SortOrder, Type as PhysicalType};
use datafusion::parquet::errors::{ParquetError, Result};
use datafusion::parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, ParquetMetaData, ParquetMetaDataBuilder, RowGroupMetaData,
};
use datafusion::parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use super::bytes::INTERVAL_BYTES;

/// The metadata of a file without statistics that mislead, and with INTERVAL columns as the
/// bytes they are.
///
/// # Errors
/// If reading the file would lose something.
pub(super) fn amended(
    metadata: Arc<ParquetMetaData>,
    location: &Path,
) -> Result<Arc<ParquetMetaData>> {
    let file = metadata.file_metadata();
    let schema = file.schema_descr();
    no_names_twice(schema.root_schema(), "", location)?;
    let has_intervals = schema.columns().iter().any(|column| is_interval(column.self_type()));
    let counts_nulls = !leaves_out_zeros(file.created_by());
    let groups = metadata.row_groups();
    let is_misleading = |chunk: &ColumnChunkMetaData| misleads(chunk, counts_nulls);
    if !has_intervals && !groups.iter().flat_map(RowGroupMetaData::columns).any(is_misleading) {
        return Ok(metadata);
    }
    let mut amended = match has_intervals {
        true => ParquetMetaDataBuilder::new(with_plain_intervals(file)?)
            .set_column_index(metadata.column_index().cloned())
            .set_offset_index(metadata.offset_index().cloned()),
        false => ParquetMetaData::clone(&metadata).into_builder().set_row_groups(Vec::new()),
    };
    for group in groups {
        let mut group = group.clone();
        for chunk in group.columns_mut().iter_mut().filter(|chunk| misleads(chunk, counts_nulls)) {
            *chunk = chunk.clone().into_builder().clear_statistics().build()?;
        }
        amended = amended.add_row_group(group);
    }
    Ok(Arc::new(amended.build()))
}

/// Whether the statistics of a chunk lead to wrong answers.
fn misleads(chunk: &ColumnChunkMetaData, counts_nulls: bool) -> bool {
    let Some(statistics) = chunk.statistics() else { return false };
    let column = chunk.column_descr();
    let can_be_null = column.max_def_level() > 0;
    // DataFusion takes an absent count for zero.
    (can_be_null && counts_nulls && statistics.null_count_opt().is_none())
        // INT96 and INTERVAL have no defined order, so their bounds mean nothing.
        || column.sort_order() == SortOrder::UNDEFINED
        // The first writers compared bytes as signed numbers, and had only these two fields.
        || (statistics.is_min_max_deprecated() && column.sort_order() == SortOrder::UNSIGNED)
}

/// Whether the writer left out NULL counts of zero: parquet-rs before 53.
fn leaves_out_zeros(writer: Option<&str>) -> bool {
    let version = writer.and_then(|writer| writer.strip_prefix("parquet-rs version "));
    let major = version.and_then(|version| version.split('.').next()?.trim().parse::<u32>().ok());
    major.is_some_and(|major| major < 53)
}

fn is_interval(column: &Type) -> bool {
    column.get_basic_info().converted_type() == ConvertedType::INTERVAL
}

/// Two columns of one name: readers by name would use one of them for both.
fn no_names_twice(group: &Type, above: &str, file: &Path) -> Result<()> {
    let Type::GroupType { fields, .. } = group else { return Ok(()) };
    let mut seen = HashSet::with_capacity(fields.len());
    for field in fields {
        let path = format!("{above}{}", field.name());
        if !seen.insert(field.name()) {
            return refused(
                file,
                &format!(
                    "has two columns named \"{path}\", which SQL cannot distinguish; write the file with \
                 another name for one of them"
                ),
            );
        }
        no_names_twice(field, &format!("{path}."), file)?;
    }
    Ok(())
}

fn refused(file: &Path, why: &str) -> Result<()> {
    Err(ParquetError::General(format!("/{file} {why}")))
}

/// The file's own metadata with INTERVAL columns as plain bytes of a fixed length.
fn with_plain_intervals(file: &FileMetaData) -> Result<FileMetaData> {
    let mut plain = |column: &Type| match is_interval(column) {
        true => Type::primitive_type_builder(column.name(), PhysicalType::FIXED_LEN_BYTE_ARRAY)
            .with_length(INTERVAL_BYTES)
            .with_repetition(column.get_basic_info().repetition())
            .build()
            .map(Some),
        false => Ok(None),
    };
    let root = with_leaf_columns(file.schema(), &mut plain)?;
    Ok(FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        file.key_value_metadata().cloned(),
        Arc::new(SchemaDescriptor::new(Arc::new(root))),
        file.column_orders().cloned(),
    ))
}

/// The columns of a Parquet schema, each replaced by the result of `leaf` if it returns one; it gets them in
/// their order.
pub(super) fn with_leaf_columns(
    of: &Type,
    leaf: &mut dyn FnMut(&Type) -> Result<Option<Type>>,
) -> Result<Type> {
    let Type::GroupType { basic_info, fields } = of else {
        return Ok(leaf(of)?.unwrap_or_else(|| of.clone()));
    };
    let fields = fields
        .iter()
        .map(|field| with_leaf_columns(field, leaf).map(Arc::new))
        .collect::<Result<Vec<TypePtr>>>()?;
    let mut group = Type::group_type_builder(of.name())
        .with_fields(fields)
        .with_converted_type(basic_info.converted_type())
        .with_logical_type(basic_info.logical_type_ref().cloned())
        .with_id(basic_info.has_id().then(|| basic_info.id()));
    if basic_info.has_repetition() {
        group = group.with_repetition(basic_info.repetition());
    }
    group.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_early_parquet_rs_versions_leave_out_zeros() {
        assert!(leaves_out_zeros(Some("parquet-rs version 52.2.0")));
        assert!(leaves_out_zeros(Some("parquet-rs version 4.0.0-SNAPSHOT")));
        assert!(!leaves_out_zeros(Some("parquet-rs version 59.3.2")));
        assert!(!leaves_out_zeros(Some("parquet-mr version 1.8.1")));
        assert!(!leaves_out_zeros(None));
    }
}

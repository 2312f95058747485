//! JSON lines, under both of their endings, with types from as many rows as those of CSV: DataFusion
//! (55.2) looks at 1000, and a key that comes first after them is not made a column.

use std::sync::Arc;

use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::json::JsonFormat;

use super::SAMPLE_ROWS;

/// DataFusion's format, which looks at more rows.
pub(super) fn amended(format: Arc<dyn FileFormat>) -> Arc<dyn FileFormat> {
    let Some(json) = format.downcast_ref::<JsonFormat>() else { return format };
    let mut options = json.options().clone();
    options.schema_infer_max_rec.get_or_insert(SAMPLE_ROWS);
    Arc::new(JsonFormat::default().with_options(options))
}

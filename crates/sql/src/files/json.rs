//! JSON lines, under both of their endings, with types from as many rows as those of CSV: DataFusion
//! (55.2) looks at 1000, and a key that comes first after them is not made a column.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::{GetExt, Result};
use datafusion::datasource::file_format::json::{JsonFormat, JsonFormatFactory};
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};

use super::SAMPLE_ROWS;

/// Makes DataFusion's format for files of one ending.
#[derive(Debug)]
pub(super) struct JsonLinesFactory {
    pub(super) ending: &'static str,
}

impl GetExt for JsonLinesFactory {
    fn get_ext(&self) -> String {
        self.ending.to_owned()
    }
}

impl FileFormatFactory for JsonLinesFactory {
    fn create(
        &self,
        state: &dyn Session,
        options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        let made = JsonFormatFactory::new().create(state, options)?;
        let Some(format) = made.downcast_ref::<JsonFormat>() else { return Ok(made) };
        let mut options = format.options().clone();
        options.schema_infer_max_rec.get_or_insert(SAMPLE_ROWS);
        Ok(Arc::new(JsonFormat::default().with_options(options)))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(JsonFormat::default().with_schema_infer_max_rec(SAMPLE_ROWS))
    }
}

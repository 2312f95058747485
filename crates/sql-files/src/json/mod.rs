//! JSON: lines, arrays, and values over several lines.
//!
//! Types are inferred from as many rows as in CSV: DataFusion (55.2) looks at 1000, and a key that first
//! occurs after them gets no column. It reads the lines; all else, and values of several types in one
//! place, are read here.

mod encode;
mod infer;
mod located;
mod reader;
mod rewrite;
mod table;
mod values;
mod write;

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::config::JsonOptions;
use datafusion::common::{Result, not_impl_err};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::physical_plan::FileSinkConfig;
use datafusion::datasource::sink::DataSinkExec;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::ExecutionPlan;

use super::SAMPLE_ROWS;
use super::amended::{AmendedFormat, Amendment, OwnOptions};
use super::sink::WrittenFiles;
pub(crate) use located::JsonScanExec;
pub(super) use table::{KNOWN, parts};
use write::{JsonFiles, JsonForm};

/// DataFusion's format, but it looks at more rows, and writes NULLs and arrays.
pub(super) fn amended(format: Arc<dyn FileFormat>, own: &OwnOptions) -> Arc<dyn FileFormat> {
    let Some(json) = format.downcast_ref::<JsonFormat>() else { return format };
    let mut options = json.options().clone();
    options.schema_infer_max_rec.get_or_insert(SAMPLE_ROWS);
    let format = Arc::new(JsonFormat::default().with_options(options.clone()));
    let form = JsonForm::from_options(own);
    Arc::new(AmendedFormat { format, amendment: WrittenJson { options, form } })
}

#[derive(Debug)]
struct WrittenJson {
    options: JsonOptions,
    form: JsonForm,
}

#[async_trait]
impl Amendment for WrittenJson {
    async fn create_writer_physical_plan(
        &self,
        _: &dyn FileFormat,
        input: Arc<dyn ExecutionPlan>,
        _: &dyn Session,
        config: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if config.insert_op != InsertOp::Append {
            return not_impl_err!("INSERT OVERWRITE of JSON files is not supported; use COPY … TO");
        }
        let (options, form) = (self.options.clone(), self.form.clone());
        let sink = Arc::new(WrittenFiles(JsonFiles { config, options, form }));
        Ok(Arc::new(DataSinkExec::new(input, sink, order)))
    }
}

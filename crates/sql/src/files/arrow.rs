//! Arrow files. DataFusion (55.2) makes one column of two that have one name.

use std::io::{Seek, SeekFrom};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::reader::{FileReader, StreamReader};
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::datasource::file_format::FileFormat;
use datafusion::object_store::{GetResultPayload, ObjectMeta, ObjectStore, ObjectStoreExt};

use super::amended::{AmendedFormat, Amendment, refuse_equal_names};

/// DataFusion's format with a look at the names of columns.
pub(super) fn amended(format: Arc<dyn FileFormat>) -> Arc<dyn FileFormat> {
    Arc::new(AmendedFormat { format, amendment: CheckedNames })
}

#[derive(Debug)]
struct CheckedNames;

/// The schema that a local file begins or ends with; none if it is not an Arrow
/// file, which the reader reports.
async fn schema_of(store: &dyn ObjectStore, object: &ObjectMeta) -> Result<Option<SchemaRef>> {
    let GetResultPayload::File(mut file, _) = store.get(&object.location).await?.payload else {
        return Ok(None);
    };
    if let Ok(reader) = FileReader::try_new(&file, None) {
        return Ok(Some(reader.schema()));
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(StreamReader::try_new(&file, None).ok().map(|reader| reader.schema()))
}

#[async_trait]
impl Amendment for CheckedNames {
    async fn infer_schema(
        &self,
        format: &dyn FileFormat,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let advice = "write the file with another name for one of them";
        for object in objects {
            if let Some(schema) = schema_of(store.as_ref(), object).await? {
                refuse_equal_names(&schema, object, advice)?;
            }
        }
        format.infer_schema(state, store, objects).await
    }
}

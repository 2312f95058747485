//! An object store whose new files have no names yet; it passes all other calls to the store below.

use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use atoll_sys::{WholeFile, place_all};
use bytes::Bytes;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err};
use datafusion::execution::TaskContext;
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path::Path;
use datafusion::object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result as StoreResult,
    UploadPart,
};
use futures::FutureExt;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use url::Url;

use atoll_sql_common::operator::changed_context;

/// The files of one statement.
#[derive(Clone, Debug, Default)]
pub(super) struct Staging(Arc<Mutex<UploadState>>);

#[derive(Debug, Default)]
struct UploadState {
    files: Vec<WholeFile>,
    /// Whether no more files may be added.
    is_closed: bool,
    /// The first error of a file, as a message.
    failure: Option<String>,
}

impl Staging {
    /// The context with stores that stage writes to local files.
    pub(super) fn context(&self, context: &TaskContext) -> Arc<TaskContext> {
        let environment = context.runtime_env();
        let below = Arc::clone(&environment.object_store_registry);
        let registry = Arc::new(StagedRegistry { below, staging: self.clone() });
        let environment =
            RuntimeEnv { object_store_registry: registry, ..RuntimeEnv::clone(&environment) };
        changed_context(context, context.session_config().clone(), Arc::new(environment))
    }

    /// Puts all files in their places.
    pub(super) async fn place(&self) -> Result<()> {
        let files = self.close();
        let placed = tokio::task::spawn_blocking(move || place_all(files)).await;
        placed
            .unwrap_or_else(|error| Err(io::Error::other(error)))
            .map_err(|error| exec_datafusion_err!("the file cannot be replaced: {error}"))
    }

    /// Drops all files that were not placed.
    pub(super) fn discard(&self) {
        drop(self.close());
    }

    /// The first error of a file, if there was one.
    pub(super) fn failure(&self) -> Option<DataFusionError> {
        self.0.lock().failure.clone().map(DataFusionError::Execution)
    }

    fn close(&self) -> Vec<WholeFile> {
        let mut state = self.0.lock();
        state.is_closed = true;
        std::mem::take(&mut state.files)
    }

    /// Does blocking work on a file, and remembers the error.
    async fn blocking<T: Send + 'static>(
        &self,
        path: Arc<PathBuf>,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> StoreResult<T> {
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(|error| {
            let message = format!("{} cannot be written: {error}", path.display());
            self.0.lock().failure.get_or_insert(message);
            datafusion::object_store::Error::Generic { store: "file", source: Box::new(error) }
        })
    }

    async fn start(&self, location: &Path) -> StoreResult<Upload> {
        let path = Arc::new(LocalFileSystem::new().path_to_filesystem(location)?);
        let (staging, of) = (self.clone(), Arc::clone(&path));
        let (file, is_stream) = self.blocking(path.clone(), move || staging.open(&of)).await?;
        Ok(Upload { staging: self.clone(), path, file: Arc::new(file), offset: 0, is_stream })
    }

    fn open(&self, path: &std::path::Path) -> io::Result<(std::fs::File, bool)> {
        let file = WholeFile::create_with_directories(path)?;
        let opened = (file.file().try_clone()?, file.is_stream());
        let mut state = self.0.lock();
        if state.is_closed {
            return Err(io::Error::other("the statement has ended"));
        }
        state.files.push(file);
        Ok(opened)
    }
}

/// A file that is being written.
#[derive(Debug)]
struct Upload {
    staging: Staging,
    path: Arc<PathBuf>,
    file: Arc<std::fs::File>,
    offset: u64,
    is_stream: bool,
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (file, offset) = (Arc::clone(&self.file), self.offset);
        self.offset += data.content_length() as u64;
        let (staging, path) = (self.staging.clone(), Arc::clone(&self.path));
        if self.is_stream {
            // Parts that wait for each other's turn would be out of order.
            let written = data.iter().try_for_each(|part| (&*file).write_all(part));
            return async move { staging.blocking(path, move || written).await }.boxed();
        }
        async move { staging.blocking(path, move || write_at(&file, &data, offset)).await }.boxed()
    }

    async fn complete(&mut self) -> StoreResult<PutResult> {
        Ok(PutResult { e_tag: None, version: None })
    }

    async fn abort(&mut self) -> StoreResult<()> {
        self.staging.discard();
        Ok(())
    }
}

fn write_at(file: &std::fs::File, data: &PutPayload, mut offset: u64) -> io::Result<()> {
    for part in data {
        file.write_all_at(part, offset)?;
        offset += part.len() as u64;
    }
    Ok(())
}

/// The registry below, with local files staged.
#[derive(Debug)]
struct StagedRegistry {
    below: Arc<dyn ObjectStoreRegistry>,
    staging: Staging,
}

impl ObjectStoreRegistry for StagedRegistry {
    fn register_store(
        &self,
        url: &Url,
        store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        self.below.register_store(url, store)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        let below = self.below.get_store(url)?;
        Ok(match url.scheme() {
            "file" => Arc::new(StagedStore { below, staging: self.staging.clone() }),
            _ => below,
        })
    }
}

/// The store below, with writes staged.
#[derive(Debug)]
struct StagedStore {
    below: Arc<dyn ObjectStore>,
    staging: Staging,
}

impl fmt::Display for StagedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.below.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for StagedStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        _options: PutOptions,
    ) -> StoreResult<PutResult> {
        let mut upload = self.staging.start(location).await?;
        upload.put_part(payload).await?;
        upload.complete().await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        _options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        Ok(Box::new(self.staging.start(location).await?))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> StoreResult<GetResult> {
        self.below.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> StoreResult<Vec<Bytes>> {
        self.below.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, StoreResult<Path>>,
    ) -> BoxStream<'static, StoreResult<Path>> {
        self.below.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.below.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.below.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.below.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> StoreResult<()> {
        self.below.rename_opts(from, to, options).await
    }
}

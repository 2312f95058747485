//! Spill files without names: they vanish with the query, and with the process however it ends,
//! SIGKILL included. There is nothing to sweep and nothing for others to open.
//!
//! DataFusion's own spill files have names, and stay when the process does not end in order.

use std::fmt;
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err};
use datafusion::execution::disk_manager::{DiskManager, DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::execution::{SpillFile, SpillWriter, TempFileFactory};
use datafusion::prelude::SessionContext;
use futures::{Stream, stream};
use parking_lot::Mutex;

/// Bytes that are read at once, or one message if it is longer.
const READ_BYTES: usize = 128 << 10;

/// Arrow writes this and a length at once to begin a message.
const MESSAGE_BEGINS: [u8; 4] = [0xff; 4];
const MESSAGE_BEGIN_BYTES: usize = 8;

/// The spill directory of a session's queries.
#[derive(Clone, Debug)]
pub struct Spill(Arc<Mutex<SpillState>>);

#[derive(Debug)]
struct SpillState {
    directory: PathBuf,
    disk: Arc<DiskManager>,
}

impl Spill {
    /// Spills into files in this directory, which is made where it is missing; without one, in the
    /// system's for temporary files.
    pub fn new(directory: Option<PathBuf>) -> Result<Self> {
        let directory = directory.unwrap_or_else(std::env::temp_dir);
        let disk = disk_in(&directory, DiskManagerBuilder::default())?;
        Ok(Self(Arc::new(Mutex::new(SpillState { directory, disk }))))
    }

    /// The factory that DataFusion's operators get files from.
    pub fn disk(&self) -> Arc<DiskManager> {
        Arc::clone(&self.0.lock().disk)
    }

    /// After `SET datafusion.runtime.…`, which may have made a disk manager with named files: keeps
    /// its directory and limits and puts files without names in their place.
    pub fn keep(&self, context: &SessionContext) -> Result<()> {
        let mut own = self.0.lock();
        let state = context.state_ref();
        let mut state = state.write();
        let found = Arc::clone(&state.runtime_env().disk_manager);
        if Arc::ptr_eq(&found, &own.disk) {
            return Ok(());
        }
        // DataFusion creates its own directory in the named one.
        let named =
            found.temp_dir_paths().first().and_then(|path| path.parent().map(Path::to_owned));
        let directory = named.unwrap_or_else(|| own.directory.clone());
        let mut limits = DiskManagerBuilder::default();
        limits.set_max_temp_directory_size(found.max_temp_directory_size());
        limits.set_max_spill_merge_fan_in(found.max_spill_merge_fan_in());
        let disk = disk_in(&directory, limits)?;
        let environment = RuntimeEnv {
            disk_manager: Arc::clone(&disk),
            ..RuntimeEnv::clone(state.runtime_env())
        };
        *state = SessionStateBuilder::from(state.clone())
            .with_runtime_env(Arc::new(environment))
            .build();
        *own = SpillState { directory, disk };
        Ok(())
    }
}

fn disk_in(directory: &Path, builder: DiskManagerBuilder) -> Result<Arc<DiskManager>> {
    let limit = builder.clone().build()?.max_temp_directory_size();
    let factory = SpillFiles { directory: directory.to_owned(), used: Arc::default(), limit };
    if !directory.is_dir() {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|error| factory.failed("made", &error))?;
    }
    Ok(Arc::new(builder.with_mode(DiskManagerMode::Custom(Arc::new(factory))).build()?))
}

/// Makes the files.
#[derive(Debug)]
struct SpillFiles {
    directory: PathBuf,
    /// Bytes in all files.
    used: Arc<AtomicU64>,
    limit: u64,
}

impl SpillFiles {
    fn failed(&self, what: &str, error: &io::Error) -> DataFusionError {
        exec_datafusion_err!(
            "spill files cannot be {what} in {}: {error}; --spill-dir names another directory",
            self.directory.display()
        )
    }
}

impl TempFileFactory for SpillFiles {
    fn create_temp_file(&self, _description: &str) -> Result<Arc<dyn SpillFile>> {
        let file = tempfile::tempfile_in(&self.directory);
        let file = Arc::new(file.map_err(|error| self.failed("made", &error))?);
        let (used, limit) = (Arc::clone(&self.used), self.limit);
        let (bytes, messages) = Default::default();
        Ok(Arc::new(Spilled { file, bytes, messages, used, limit }))
    }
}

/// A file.
#[derive(Debug)]
struct Spilled {
    file: Arc<File>,
    bytes: Arc<AtomicU64>,
    messages: Arc<Messages>,
    used: Arc<AtomicU64>,
    limit: u64,
}

impl Drop for Spilled {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl SpillFile for Spilled {
    fn size(&self) -> Option<u64> {
        Some(self.bytes.load(Ordering::Relaxed))
    }

    fn read_stream(&self) -> Result<Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>> {
        // On the worker, as files are written: a thread for blocking calls would keep its own memory
        // for each reader of a merge. Most of what is read is still in the page cache.
        let from = (Arc::clone(&self.file), Arc::clone(&self.messages), 0);
        Ok(Box::pin(stream::try_unfold(from, |(file, messages, offset)| async move {
            let bytes = read_at(&file, offset, messages.read_after(offset))?;
            let next = offset + bytes.len() as u64;
            Ok::<_, DataFusionError>(
                (!bytes.is_empty()).then(|| (Bytes::from(bytes), (file, messages, next))),
            )
        })))
    }

    fn open_writer(&self) -> Result<Box<dyn SpillWriter>> {
        Ok(Box::new(SpillFileWriter {
            file: Arc::clone(&self.file),
            bytes: Arc::clone(&self.bytes),
            messages: Arc::clone(&self.messages),
            used: Arc::clone(&self.used),
            limit: self.limit,
        }))
    }
}

/// Where the messages of a file begin. Read as it was written, a batch of rows lies in the bytes that
/// were read; from pieces Arrow would put it together in a buffer of up to twice its size.
#[derive(Debug, Default)]
struct Messages(Mutex<Vec<u64>>);

impl Messages {
    /// Notes bytes that are written at this offset.
    fn note(&self, offset: u64, bytes: &[u8]) {
        if bytes.len() == MESSAGE_BEGIN_BYTES && bytes.starts_with(&MESSAGE_BEGINS) {
            self.0.lock().push(offset);
        }
    }

    /// How many bytes to read from this offset on: whole messages, as many as fit or one. The last one
    /// has no end here.
    fn read_after(&self, offset: u64) -> usize {
        let begins = self.0.lock();
        let next = begins.partition_point(|begin| *begin <= offset);
        let fit = begins.partition_point(|begin| *begin <= offset + READ_BYTES as u64);
        let end = begins.get(next.max(fit.saturating_sub(1)));
        end.map_or(READ_BYTES, |end| (end - offset) as usize)
    }
}

fn read_at(file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let read = loop {
        match file.read_at(&mut bytes, offset) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => break read?,
        }
    };
    bytes.truncate(read);
    Ok(bytes)
}

/// Appends to a file.
struct SpillFileWriter {
    file: Arc<File>,
    bytes: Arc<AtomicU64>,
    messages: Arc<Messages>,
    used: Arc<AtomicU64>,
    limit: u64,
}

impl fmt::Debug for SpillFileWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Write for SpillFileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let used = self.used.load(Ordering::Relaxed);
        if used.saturating_add(bytes.len() as u64) > self.limit {
            return Err(io::Error::other(format!(
                "spill files take {used} bytes of {} that \
                 datafusion.runtime.max_temp_directory_size allows; raise it",
                self.limit
            )));
        }
        let written = (&*self.file).write(bytes)?;
        self.used.fetch_add(written as u64, Ordering::Relaxed);
        let offset = self.bytes.fetch_add(written as u64, Ordering::Relaxed);
        self.messages.note(offset, bytes);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SpillWriter for SpillFileWriter {
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use futures::TryStreamExt;

    use super::*;

    fn disk(directory: &Path, limit: u64) -> Arc<DiskManager> {
        disk_in(directory, DiskManagerBuilder::default().with_max_temp_directory_size(limit))
            .unwrap()
    }

    #[tokio::test]
    async fn spilled_bytes_are_read_back_while_the_directory_stays_empty() {
        let directory = tempfile::tempdir().unwrap();
        let file = disk(directory.path(), u64::MAX).create_tmp_file("a test").unwrap();
        let text: Vec<u8> = (0..3 * READ_BYTES + 7).map(|i| (i % 251) as u8).collect();
        let mut writer = file.open_writer().unwrap();
        text.chunks(1000).for_each(|part| writer.write_all(part).unwrap());
        writer.finish().unwrap();
        assert_eq!(file.size(), Some(text.len() as u64));
        for _ in 0..2 {
            let read: Vec<Bytes> = file.read_stream().unwrap().try_collect().await.unwrap();
            assert_eq!(read.concat(), text);
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn whole_messages_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = disk(directory.path(), u64::MAX).create_tmp_file("a test").unwrap();
        let mut writer = file.open_writer().unwrap();
        let lengths = [24, 3 * READ_BYTES, READ_BYTES / 3, READ_BYTES / 3, READ_BYTES / 2, 0];
        for length in lengths {
            writer.write_all(&[255, 255, 255, 255, 1, 2, 3, 4]).unwrap();
            writer.write_all(&vec![7; length]).unwrap();
        }
        let read: Vec<Bytes> = file.read_stream().unwrap().try_collect().await.unwrap();
        let read: Vec<usize> = read.iter().map(Bytes::len).collect();
        let [a, b, c, d, e, end] = lengths.map(|length| length + MESSAGE_BEGIN_BYTES);
        assert_eq!(read, [a, b, c + d, e, end]);
    }

    #[test]
    fn a_file_is_read_without_an_extra_thread() {
        let directory = tempfile::tempdir().unwrap();
        let file = disk(directory.path(), u64::MAX).create_tmp_file("a test").unwrap();
        file.open_writer().unwrap().write_all(b"spilled").unwrap();
        // There is no runtime here that could provide one.
        let read: Vec<Bytes> =
            futures::executor::block_on(file.read_stream().unwrap().try_collect()).unwrap();
        assert_eq!(read.concat(), b"spilled");
    }

    #[test]
    fn all_files_together_stay_within_the_limit() {
        let directory = tempfile::tempdir().unwrap();
        let disk = disk(directory.path(), 10);
        let [a, b] = ["a", "b"].map(|name| disk.create_tmp_file(name).unwrap());
        a.open_writer().unwrap().write_all(b"1234567").unwrap();
        let error = b.open_writer().unwrap().write_all(b"1234").unwrap_err();
        assert!(error.to_string().contains("max_temp_directory_size"), "{error}");
        drop(a);
        b.open_writer().unwrap().write_all(b"1234").unwrap();
    }

    #[test]
    fn a_missing_directory_is_created_and_a_failure_names_it() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("a/b");
        disk(&missing, 10).create_tmp_file("a test").unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        let error = Spill::new(Some(file.join("c"))).unwrap_err().to_string();
        assert!(error.contains("file/c") && error.contains("--spill-dir"), "{error}");
    }
}

//! The speed of the disk alone: the limit of all that waits for it.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Bytes of the file that is written and synced in place, as a log's segment is.
const FILE_BYTES: u64 = 8 << 20;
const BLOCK: usize = 4 << 10;
const LARGE_BLOCK: usize = 1 << 20;

/// The disk of a directory.
#[derive(Debug)]
pub(super) struct Disk<'a> {
    directory: &'a Path,
    file: File,
}

impl<'a> Disk<'a> {
    /// The disk under a directory; creates two files there.
    pub(super) fn new(directory: &'a Path) -> Result<Self> {
        let path = directory.join("synced");
        let file = File::create(&path);
        let file = file.with_context(|| format!("cannot make {}", path.display()))?;
        let zeros = vec![0; LARGE_BLOCK];
        for at in (0..FILE_BYTES).step_by(LARGE_BLOCK) {
            file.write_all_at(&zeros, at)?;
        }
        file.sync_all()?;
        Ok(Self { directory, file })
    }

    /// Writes of a block, each followed by a sync of its data, a second: one after the other.
    pub(super) fn syncs_per_second(&self, time: Duration) -> Result<f64> {
        let block = [1; BLOCK];
        let (start, mut count) = (Instant::now(), 0);
        while start.elapsed() < time {
            self.file.write_all_at(&block, count * BLOCK as u64 % FILE_BYTES)?;
            self.file.sync_data()?;
            count += 1;
        }
        Ok(count as f64 / start.elapsed().as_secs_f64())
    }

    /// Seconds to write `bytes` into a new file and to sync it.
    pub(super) fn write_seconds(&self, bytes: u64) -> Result<f64> {
        let path = self.directory.join("written");
        // Not zeros, which some disks do not write.
        let block: Vec<u8> = (0..LARGE_BLOCK).map(|at| ((at * 31) >> 3) as u8).collect();
        let start = Instant::now();
        let file = File::create(&path);
        let file = file.with_context(|| format!("cannot make {}", path.display()))?;
        let mut at = 0;
        while at < bytes {
            let part = (bytes - at).min(LARGE_BLOCK as u64);
            file.write_all_at(&block[..part as usize], at)?;
            at += part;
        }
        file.sync_data()?;
        let seconds = start.elapsed().as_secs_f64();
        fs::remove_file(&path)?;
        Ok(seconds)
    }
}

/// Bytes of the files in a directory, those below it included.
pub(super) fn bytes_in(directory: &Path) -> Result<u64> {
    let mut bytes = 0;
    let entries = fs::read_dir(directory);
    for entry in entries.with_context(|| format!("cannot list {}", directory.display()))? {
        let entry = entry?;
        let about = entry.metadata();
        bytes += match about {
            Ok(about) if about.is_dir() => bytes_in(&entry.path())?,
            Ok(about) => about.len(),
            // A file may go at any moment: a log that is needed no more.
            Err(_) => 0,
        };
    }
    Ok(bytes)
}

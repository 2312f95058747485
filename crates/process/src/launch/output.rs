//! The output of instances: passed through, marked with the instance's number, or written to logs.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::error::LaunchError;

/// Longest incomplete line that is held back.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// A stream that several instances write whole lines to.
pub type SharedWrite = Arc<Mutex<dyn Write + Send>>;

/// The destination of output.
#[derive(Clone)]
pub enum OutputSink {
    /// Atoll's own stdout and stderr, unchanged.
    Through,
    /// Line by line to these two, each line after `[i] `.
    Marked {
        /// For the instances' stdout.
        stdout: SharedWrite,
        /// For the instances' stderr.
        stderr: SharedWrite,
    },
    /// `i.log` in this directory, stdout and stderr together. Existing files are overwritten.
    Logs(PathBuf),
}

impl std::fmt::Debug for OutputSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Through => f.write_str("Through"),
            Self::Marked { .. } => f.write_str("Marked"),
            Self::Logs(directory) => write!(f, "Logs({})", directory.display()),
        }
    }
}

impl OutputSink {
    /// Sets the destination of a program that is about to start.
    pub(super) fn attach(&self, command: &mut Command, instance: usize) -> Result<(), LaunchError> {
        match self {
            Self::Through => {}
            Self::Marked { .. } => {
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
            }
            Self::Logs(directory) => {
                let (out, err) = log(directory, instance)?;
                command.stdout(out).stderr(err);
            }
        }
        Ok(())
    }

    /// Copies the output of a started program, in threads that each hold `done` until its end.
    pub(super) fn copy(&self, child: &mut Child, instance: usize, done: &Sender<()>) {
        let Self::Marked { stdout, stderr } = self else { return };
        if let Some(from) = child.stdout.take() {
            copy_in_thread(from, stdout.clone(), instance, done.clone());
        }
        if let Some(from) = child.stderr.take() {
            copy_in_thread(from, stderr.clone(), instance, done.clone());
        }
    }
}

fn log(directory: &Path, instance: usize) -> Result<(File, File), LaunchError> {
    let path = directory.join(format!("{instance}.log"));
    let open = || {
        fs::create_dir_all(directory)?;
        let file = File::create(&path)?;
        Ok((file.try_clone()?, file))
    };
    open().map_err(|source| LaunchError::Log { path: path.clone(), source })
}

/// Without a thread the reading end closes, and the program sees a broken pipe.
fn copy_in_thread(
    from: impl Read + Send + 'static,
    to: SharedWrite,
    instance: usize,
    done: Sender<()>,
) {
    let copy = move || {
        copy_marked(from, &to, &format!("[{instance}] "));
        drop(done);
    };
    let _ = thread::Builder::new().name(format!("output-{instance}")).spawn(copy);
}

/// Copies line by line until the end. After the reader is gone it keeps reading, so that the
/// program does not block.
fn copy_marked(from: impl Read, to: &SharedWrite, mark: &str) {
    let mut from = BufReader::new(from);
    let mut line = mark.as_bytes().to_vec();
    loop {
        line.truncate(mark.len());
        match from.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        let mut to = to.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = to.write_all(&line).and_then(|()| to.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &[u8]) -> Vec<u8> {
        let written = Arc::new(Mutex::new(Vec::new()));
        copy_marked(text, &(written.clone() as SharedWrite), "[3] ");
        written.lock().unwrap().clone()
    }

    #[test]
    fn every_line_is_marked_and_the_last_is_ended() {
        assert_eq!(marked(b"a\n\nb\xff"), b"[3] a\n[3] \n[3] b\xff\n");
        assert_eq!(marked(b""), b"");
    }

    #[test]
    fn output_without_an_end_of_line_does_not_pile_up() {
        let long = vec![b'x'; 3 * LINE_BYTES_MAX as usize];
        assert_eq!(marked(&long).iter().filter(|byte| **byte == b'\n').count(), 3);
    }
}

//! The guest's serial ports: sockets on which this process listens and to which QEMU connects.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use crate::LabError;

/// A port speaks in pieces of a few bytes; what is there at once is forwarded at once.
const BUFFER_BYTES: usize = 64 << 10;
/// Longest line of the control port, and as much of a failure as is shown.
const LINE_BYTES_MAX: u64 = 4096;

/// A port.
pub(super) struct Port {
    path: PathBuf,
    listener: UnixListener,
}

/// How far the guest is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct BootProgress {
    /// When the program was started.
    pub(super) started: Option<Instant>,
    /// The kernel's release.
    pub(super) release: String,
    /// The program's exit code.
    pub(super) code: Option<u8>,
    /// Why it was not started.
    pub(super) failure: Option<String>,
}

impl Port {
    pub(super) fn bind(path: &Path) -> Result<Self, LabError> {
        let listener =
            UnixListener::bind(path).map_err(LabError::file(path, "listening to the guest"))?;
        Ok(Self { path: path.to_owned(), listener })
    }

    /// Ends a wait for a QEMU that never connected: connects in its place and hangs up.
    pub(super) fn wake(&self) {
        // Refused only if the receiver is gone.
        let _ = UnixStream::connect(&self.path);
    }

    /// Copies what comes until QEMU hangs up. The first error is kept.
    pub(super) fn forward(&self, to: &mut (dyn Write + Send), failed: &Mutex<Option<io::Error>>) {
        let copied = self.listener.accept().and_then(|(stream, _)| copy(stream, to));
        if let (Err(error), Ok(mut failed)) = (copied, failed.lock()) {
            failed.get_or_insert(error);
        }
    }

    /// Reads the lines of the control port until QEMU hangs up.
    pub(super) fn follow(&self, progress: &Mutex<BootProgress>) {
        let Ok((stream, _)) = self.listener.accept() else { return };
        let mut lines = BufReader::new(stream);
        let mut line = Vec::new();
        while lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line).is_ok_and(|n| n > 0)
        {
            if let Ok(mut progress) = progress.lock() {
                progress.learn(&String::from_utf8_lossy(&line));
            }
            line.clear();
        }
    }
}

fn copy(mut from: UnixStream, to: &mut (dyn Write + Send)) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                to.write_all(&buffer[..count])?;
                to.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // QEMU was killed in the middle of a word.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

impl BootProgress {
    fn learn(&mut self, line: &str) {
        let line = line.trim_end();
        match line.split_once(' ').unwrap_or((line, "")) {
            ("start", release) => {
                self.started = Some(Instant::now());
                self.release = release.to_owned();
            }
            ("code", code) => self.code = code.parse().ok(),
            ("fail", reason) => self.failure = Some(reason.trim().to_owned()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_lines_tell_how_far_things_are_and_others_tell_nothing() {
        let mut progress = BootProgress::default();
        for line in ["", "\n", "code", "code 256", "code -1", "hello", "code x"] {
            progress.learn(line);
        }
        assert_eq!(progress, BootProgress::default());
        for line in ["start 6.1.0\r\n", "code 7\n"] {
            progress.learn(line);
        }
        assert_eq!((progress.release.as_str(), progress.code), ("6.1.0", Some(7)));
        assert!(progress.started.is_some() && progress.failure.is_none());
        progress.learn("fail no node 3 \n");
        assert_eq!(progress.failure.as_deref(), Some("no node 3"));
    }

    #[test]
    fn a_wait_for_a_guest_that_never_came_is_ended() {
        let directory = tempfile::tempdir().unwrap();
        let port = Port::bind(&directory.path().join("port")).unwrap();
        let failed = Mutex::new(None);
        let mut out = Vec::new();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| port.forward(&mut out, &failed));
            port.wake();
            waiting.join().unwrap();
        });
        assert!(out.is_empty() && failed.into_inner().unwrap().is_none());
    }

    #[test]
    fn bytes_of_every_value_are_forwarded_and_an_error_of_the_reader_is_kept() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let sent: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        let send = |port: &Port| {
            let mut stream = UnixStream::connect(&port.path).unwrap();
            // A reader that went away is what this is about.
            let _ = stream.write_all(&sent);
        };
        let run = |name: &str, out: &mut (dyn Write + Send)| {
            let port = Port::bind(&directory.path().join(name)).unwrap();
            let failed = Mutex::new(None);
            std::thread::scope(|scope| {
                scope.spawn(|| port.forward(out, &failed));
                send(&port);
            });
            failed.into_inner().unwrap().map(|error: io::Error| error.kind())
        };
        let mut out = Vec::new();
        assert_eq!(run("whole", &mut out), None);
        assert!(out == sent);
        assert_eq!(run("gone", &mut Gone), Some(io::ErrorKind::BrokenPipe));
    }
}

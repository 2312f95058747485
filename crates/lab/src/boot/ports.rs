//! The guest's serial ports: sockets that QEMU has the other ends of.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use io::ErrorKind;

/// A port speaks in pieces of a few bytes.
const BUFFER_BYTES: usize = 64 << 10;
/// A line is forwarded when it is whole, so that lines of two ports that have one reader stay lines; what
/// has no line break, as a prompt, when nothing more came for this time.
const PATIENCE: Duration = Duration::from_secs(1);
/// Longest line of the control port, and as much of a failure as is shown.
const LINE_BYTES_MAX: u64 = 4096;

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

/// Copies output until QEMU hangs up, in whole lines. The first error is kept.
pub(super) fn forward(
    port: &UnixStream,
    to: &mut (dyn Write + Send),
    failed: &Mutex<Option<io::Error>>,
) {
    if let (Err(error), Ok(mut failed)) = (copy(port, to, PATIENCE), failed.lock()) {
        failed.get_or_insert(error);
    }
}

/// Reads the lines of the control port until QEMU hangs up.
pub(super) fn follow(port: &UnixStream, progress: &Mutex<BootProgress>) {
    let mut lines = BufReader::new(port);
    let mut line = Vec::new();
    while lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        if let Ok(mut progress) = progress.lock() {
            progress.learn(&String::from_utf8_lossy(&line));
        }
        line.clear();
    }
}

fn copy(mut from: &UnixStream, to: &mut (dyn Write + Send), patience: Duration) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    // The part of the last line before its newline comes.
    let mut begun = Vec::new();
    loop {
        from.set_read_timeout((!begun.is_empty()).then_some(patience))?;
        let count = match from.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // QEMU was killed in the middle of a word.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => 0,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                write(to, &mut begun, usize::MAX)?;
                continue;
            }
            Err(error) => return Err(error),
        };
        begun.extend(&buffer[..count]);
        let whole = begun.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let is_over = count == 0 || begun.len() - whole > BUFFER_BYTES;
        write(to, &mut begun, if is_over { usize::MAX } else { whole })?;
        if count == 0 {
            return Ok(());
        }
    }
}

/// Writes this many of the bytes at once and removes them.
fn write(to: &mut dyn Write, bytes: &mut Vec<u8>, count: usize) -> io::Result<()> {
    let written = bytes.drain(..count.min(bytes.len()));
    if written.as_slice().is_empty() {
        return Ok(());
    }
    to.write_all(written.as_slice())?;
    to.flush()
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
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    #[test]
    fn control_lines_show_progress_and_others_are_ignored() {
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

    /// Returns what each call wrote.
    struct Pieces(Sender<Vec<u8>>);

    impl Write for Pieces {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_that_comes_in_pieces_is_written_at_once() {
        let (own, mut guest) = UnixStream::pair().unwrap();
        let (sender, pieces) = channel();
        let copying = std::thread::spawn(move || {
            copy(&own, &mut Pieces(sender), Duration::from_secs(3600)).unwrap();
        });
        guest.write_all(b"first\nsec").unwrap();
        assert_eq!(pieces.recv().unwrap(), b"first\n");
        guest.write_all(b"ond\nlast").unwrap();
        assert_eq!(pieces.recv().unwrap(), b"second\n");
        drop(guest);
        assert_eq!(pieces.recv().unwrap(), b"last");
        copying.join().unwrap();
    }

    #[test]
    fn a_prompt_is_written_when_nothing_more_comes() {
        let (own, mut guest) = UnixStream::pair().unwrap();
        let (sender, pieces) = channel();
        let copying = std::thread::spawn(move || {
            copy(&own, &mut Pieces(sender), Duration::from_millis(1)).unwrap();
        });
        guest.write_all(b"name? ").unwrap();
        // Written while the guest still waits for an answer.
        let mut written = Vec::new();
        while written.len() < b"name? ".len() {
            written.extend(pieces.recv().unwrap());
        }
        assert_eq!(written, b"name? ");
        drop(guest);
        copying.join().unwrap();
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
        let sent: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        let run = |out: &mut (dyn Write + Send)| {
            let (own, mut guest) = UnixStream::pair().unwrap();
            let failed = Mutex::new(None);
            let (sent, kept) = (&sent, &failed);
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    forward(&own, out, kept);
                    drop(own);
                });
                // A reader that went away is what this is about.
                let _ = guest.write_all(sent);
                drop(guest);
            });
            failed.into_inner().unwrap().map(|error: io::Error| error.kind())
        };
        let mut out = Vec::new();
        assert_eq!(run(&mut out), None);
        assert!(out == sent);
        assert_eq!(run(&mut Gone), Some(io::ErrorKind::BrokenPipe));
    }
}

//! Lines of a script, read on a separate thread so that Ctrl-C works while a pipe is silent.

use std::io::{self, BufRead, BufReader, Read};
use std::thread;

use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Lines read ahead.
const AHEAD: usize = 64;

/// The lines of a script, without line ends.
pub(super) struct ScriptLines(Receiver<io::Result<String>>);

impl ScriptLines {
    /// Reads the lines of a stream. The thread ends with the stream, or after the next line once this is dropped.
    pub(super) fn from_reader(stream: impl Read + Send + 'static) -> Self {
        let (sender, receiver) = channel(AHEAD);
        thread::spawn(move || send(BufReader::new(stream), &sender));
        Self(receiver)
    }

    /// The next line; None after the last.
    pub(super) async fn next(&mut self) -> Option<io::Result<String>> {
        self.0.recv().await
    }
}

fn send(stream: impl BufRead, sender: &Sender<io::Result<String>>) {
    for line in stream.lines() {
        let is_last = line.is_err();
        if sender.blocking_send(line).is_err() || is_last {
            return;
        }
    }
}

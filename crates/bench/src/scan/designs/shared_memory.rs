//! Shards of processes that share memory with the asking process: batches and rows are written there, and each side
//! wakes the other one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use atoll_sys::{SharedWords, futex_wait, futex_wake};

use super::super::queries::ScanQuery;
use super::process::{ShardProcess, answer};
use super::rows::ShardRows;
use super::shard::{Shard, ShardPart, ShardPlace};
use super::{DesignSetup, ShardLink, message};

/// Words of a message at most: 16 MiB. Pages are taken when they are written.
const MESSAGE_WORDS: usize = 4 << 20;
/// Before the words of a message come its number, and its length in bytes.
const HEAD_WORDS: usize = 2;
const PLACE_WORDS: usize = HEAD_WORDS + MESSAGE_WORDS;

/// How long one waits before it looks whether the other one is still there.
const PATIENCE: Duration = Duration::from_millis(200);

struct SharedMemoryLink {
    words: SharedWords,
    /// Messages that were sent.
    sent: u32,
    process: ShardProcess,
}

/// A place for one message after the other in shared words.
struct MessagePlace<'a>(&'a [AtomicU32]);

/// A process with a shard.
pub(super) fn start(
    setup: &DesignSetup,
    part: ShardPart,
    place: ShardPlace,
) -> Result<Box<dyn ShardLink>> {
    let words = SharedWords::create(2 * PLACE_WORDS).context("cannot create shared memory")?;
    let process = ShardProcess::start(setup, &part, &place, Some(words.descriptor()))?;
    Ok(Box::new(SharedMemoryLink { words, sent: 0, process }))
}

impl ShardLink for SharedMemoryLink {
    fn send(&mut self, batch: &Arc<[ScanQuery]>) -> Result<()> {
        self.sent += 1;
        batches(&self.words).write(self.sent, &message::of_batch(batch))
    }

    fn receive(&mut self) -> Result<ShardRows> {
        let (process, sent) = (&mut self.process, self.sent);
        let bytes = answers(&self.words).read(sent, || process.check())?;
        message::rows(&bytes)
    }
}

/// Answers batches while the asking process lives; its end also ends this one.
pub(super) fn serve(shard: &Shard, descriptor: i32) -> Result<()> {
    let words = SharedWords::inherited(descriptor, 2 * PLACE_WORDS)?;
    for number in 1.. {
        let batch = batches(&words).read(number, || Ok(()))?;
        answers(&words).write(number, &answer(shard, &batch)?)?;
    }
    Ok(())
}

fn batches(words: &SharedWords) -> MessagePlace<'_> {
    MessagePlace(&words.words()[..PLACE_WORDS])
}

fn answers(words: &SharedWords) -> MessagePlace<'_> {
    MessagePlace(&words.words()[PLACE_WORDS..])
}

impl MessagePlace<'_> {
    /// Writes a message; the one before it has been read.
    fn write(&self, number: u32, bytes: &[u8]) -> Result<()> {
        let words = &self.0[HEAD_WORDS..];
        let room = size_of_val(words);
        ensure!(bytes.len() <= room, "a message of {} bytes; the limit is {room}", bytes.len());
        for (word, part) in words.iter().zip(bytes.chunks(4)) {
            let mut own = [0; 4];
            own[..part.len()].copy_from_slice(part);
            word.store(u32::from_le_bytes(own), Ordering::Relaxed);
        }
        self.0[1].store(bytes.len() as u32, Ordering::Relaxed);
        self.0[0].store(number, Ordering::Release);
        Ok(futex_wake(&self.0[0])?)
    }

    /// Waits for the message of a number, and looks now and then whether there is still one to wait for.
    fn read(&self, number: u32, mut is_there: impl FnMut() -> Result<()>) -> Result<Vec<u8>> {
        loop {
            let seen = self.0[0].load(Ordering::Acquire);
            if seen == number {
                break;
            }
            futex_wait(&self.0[0], seen, PATIENCE)?;
            is_there()?;
        }
        let len = self.0[1].load(Ordering::Relaxed) as usize;
        let words = self.0[HEAD_WORDS..].iter().take(len.div_ceil(4));
        let mut bytes: Vec<u8> =
            words.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        bytes.truncate(len);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written_and_one_that_is_too_long_is_refused() {
        let words: Vec<AtomicU32> = (0..HEAD_WORDS + 3).map(|_| AtomicU32::new(0)).collect();
        let place = MessagePlace(&words);
        for (number, bytes) in (1..).zip([&b"nine byte"[..], b"", b"twelve bytes"]) {
            place.write(number, bytes).expect("written");
            assert_eq!(place.read(number, || Ok(())).expect("read"), bytes);
        }
        let error = place.write(4, b"thirteen bytes").unwrap_err().to_string();
        assert!(error.contains("the limit is 12"), "{error}");
        let gone = place.read(4, || anyhow::bail!("it is gone")).unwrap_err().to_string();
        assert_eq!(gone, "it is gone");
    }
}

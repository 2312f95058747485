//! The handle of a shard's process, and messages through pipes.

use std::io::{BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context, Result, bail, ensure};
use atoll_sys::{block_signals, signal, tie_to_parent};

use super::shard::{Shard, ShardPart, ShardPlace};
use super::{DesignSetup, message};
use crate::programs::own_command;

/// Longest message: a batch, or the rows of one.
const MESSAGE_BYTES_MAX: u32 = 1 << 30;

/// A running process. Dropping it ends it.
#[derive(Debug)]
pub(super) struct ShardProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl ShardProcess {
    /// Starts it, with messages through shared memory or else through pipes.
    pub(super) fn start(
        setup: &DesignSetup,
        part: &ShardPart,
        place: &ShardPlace,
        shared: Option<i32>,
    ) -> Result<Self> {
        let mut command = own_command()?;
        command.arg("shard");
        let mut flag = |name: &str, value: String| {
            command.args([name, value.as_str()]);
        };
        flag("--relation", part.relation_rows.to_string());
        flag("--seed", part.seed.to_string());
        flag("--first", part.rows.start.to_string());
        flag("--rows", (part.rows.end - part.rows.start).to_string());
        flag("--node", place.node.0.to_string());
        flag("--cpus", place.cpus.to_string());
        if let Some(shared) = shared {
            flag("--shared", shared.to_string());
        }
        // A benchmark that is killed leaves no process running.
        tie_to_parent(&mut command, signal::KILL, block_signals(&[])?);
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.context("cannot start a process for a shard")?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the process of a shard has no standard input or output");
        };
        let mut process = Self { child, input, output: BufReader::new(output) };
        process.send(&message::of_statements(&setup.statements))?;
        Ok(process)
    }

    /// Sends a message through its pipe.
    pub(super) fn send(&mut self, message: &[u8]) -> Result<()> {
        write_message(&mut self.input, message)
            .context("the process of a shard accepts no messages")
    }

    /// Waits for a message from its pipe.
    pub(super) fn receive(&mut self) -> Result<Vec<u8>> {
        let message = read_message(&mut self.output)?;
        message.context("the process of a shard has ended; its messages are above")
    }

    /// Returns an error if it has ended.
    pub(super) fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => {
                bail!("the process of a shard ended with {status}; its messages are above")
            }
        }
    }
}

impl Drop for ShardProcess {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The answer to a batch, both as bytes.
pub(super) fn answer(shard: &Shard, batch: &[u8]) -> Result<Vec<u8>> {
    Ok(message::of_rows(&shard.answer(&message::batch(batch)?)?))
}

/// Writes a message after its length.
pub(super) fn write_message(to: &mut impl Write, message: &[u8]) -> Result<()> {
    to.write_all(&u32::try_from(message.len())?.to_le_bytes())?;
    to.write_all(message)?;
    Ok(to.flush()?)
}

/// The next message; none at the end.
pub(super) fn read_message(from: &mut impl Read) -> Result<Option<Vec<u8>>> {
    let mut len = [0; 4];
    if from.read(&mut len[..1])? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut len[1..])?;
    let len = u32::from_le_bytes(len);
    ensure!(len <= MESSAGE_BYTES_MAX, "a message of {len} bytes exceeds the limit");
    let mut message = vec![0; len as usize];
    from.read_exact(&mut message)?;
    Ok(Some(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_one_after_the_other_until_the_end() {
        let mut bytes = Vec::new();
        for message in [&b"one"[..], b"", b"three"] {
            write_message(&mut bytes, message).expect("written");
        }
        let mut from = &bytes[..];
        let mut next = || read_message(&mut from).expect("read");
        assert_eq!(next().as_deref(), Some(&b"one"[..]));
        assert_eq!(next().as_deref(), Some(&b""[..]));
        assert_eq!(next().as_deref(), Some(&b"three"[..]));
        assert_eq!(next(), None);
        assert!(read_message(&mut &bytes[..5]).is_err());
        assert!(read_message(&mut &[0xff_u8; 8][..]).is_err());
    }
}

//! The state of a guest: what each of its cpus is doing, from QEMU's monitor.
//!
//! Asked when the time is over: a guest that computes, one whose cpus all wait for an interrupt that never
//! comes and an emulator that has come to a stop itself are three different things.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long the monitor may take for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks, after which a cpu that still is at the same instruction has not moved.
const BETWEEN: Duration = Duration::from_millis(300);
/// The end of an answer of the monitor.
const PROMPT: &str = "(qemu) ";
/// Longest answer read: that of 1024 cpus is a quarter of it.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// The activity of a cpu.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cpu {
    number: u32,
    /// Address of its next instruction, hexadecimal.
    at: String,
    is_kernel: bool,
    is_halted: bool,
}

/// The activity of the guest's cpus, a line each, or why it is unknown.
pub(super) fn standing(monitor: &UnixStream) -> String {
    match looks(monitor) {
        Ok((first, second)) if !second.is_empty() => describe(&first, &second),
        Ok(_) => "QEMU's monitor names no cpu".to_owned(),
        Err(error) => {
            format!("QEMU's monitor does not answer ({error}): the emulator itself stands still")
        }
    }
}

fn looks(mut stream: &UnixStream) -> io::Result<(Vec<Cpu>, Vec<Cpu>)> {
    stream.set_read_timeout(Some(PATIENCE))?;
    // The greeting.
    answer(&mut stream)?;
    let first = look(stream)?;
    std::thread::sleep(BETWEEN);
    Ok((first, look(stream)?))
}

fn look(mut stream: &UnixStream) -> io::Result<Vec<Cpu>> {
    stream.write_all(b"info registers -a\n")?;
    Ok(parse(&answer(&mut stream)?))
}

/// All until the next prompt.
fn answer(stream: &mut impl Read) -> io::Result<String> {
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    while !text.ends_with(PROMPT.as_bytes()) {
        let count = stream.read(&mut piece)?;
        if count == 0 || text.len() > ANSWER_BYTES_MAX {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        text.extend(&piece[..count]);
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The cpus in an answer to `info registers -a`: a line `CPU#0`, then registers, among them
/// `RIP=ffffffff81e0c3f2 RFL=00000246 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=1`.
fn parse(answer: &str) -> Vec<Cpu> {
    let mut cpus = Vec::new();
    let mut number = None;
    for line in answer.lines() {
        if let Some(text) = line.trim().strip_prefix("CPU#") {
            number = text.trim().parse().ok();
        }
        let value = |name: &str| line.split_whitespace().find_map(|word| word.strip_prefix(name));
        let at = value("RIP=").or_else(|| value("EIP="));
        if let (Some(number), Some(at)) = (number, at) {
            let (is_kernel, is_halted) = (value("CPL=") == Some("0"), value("HLT=") == Some("1"));
            cpus.push(Cpu { number, at: at.to_owned(), is_kernel, is_halted });
        }
    }
    cpus
}

fn describe(first: &[Cpu], second: &[Cpu]) -> String {
    let mut text = String::new();
    for cpu in second {
        let side = if cpu.is_kernel { "kernel" } else { "program" };
        let does = match first.contains(cpu) {
            _ if cpu.is_halted => "waits for an interrupt",
            true => "has not moved",
            false => "computes",
        };
        let _ = writeln!(text, "cpu {}: {does}, in the {side} at {}", cpu.number, cpu.at);
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "info registers -a\r\n\r\nCPU#0\r\nRAX=0000000000000000 RBX=0\r\n\
        RIP=ffffffff81e0c3f2 RFL=00000246 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=1\r\nES =0000 0 0\r\n\
        \r\nCPU#11\r\nRIP=00007f0000001000 RFL=00000202 [-------] CPL=3 II=0 A20=1 SMM=0 HLT=0\r\n(qemu) ";

    #[test]
    fn cpus_are_described_by_their_activity() {
        let first = parse(ANSWER);
        assert_eq!(first.iter().map(|cpu| cpu.number).collect::<Vec<_>>(), [0, 11]);
        let moved = parse(&ANSWER.replace("1000", "2000"));
        assert_eq!(
            describe(&first, &moved),
            "cpu 0: waits for an interrupt, in the kernel at ffffffff81e0c3f2\n\
             cpu 11: computes, in the program at 00007f0000002000"
        );
        assert!(describe(&first, &first).contains("cpu 11: has not moved"));
        assert_eq!(parse("CPU#x\nRIP=1\nCPU#\n"), []);
    }

    #[test]
    fn a_monitor_is_asked_twice_and_a_missing_one_is_reported() {
        let (own, mut far) = UnixStream::pair().unwrap();
        let monitor = std::thread::spawn(move || {
            far.write_all(b"QEMU 7.2 monitor\r\n(qemu) ").unwrap();
            for _ in 0..2 {
                far.read_exact(&mut [0; "info registers -a\n".len()]).unwrap();
                far.write_all(ANSWER.as_bytes()).unwrap();
            }
        });
        assert!(standing(&own).starts_with("cpu 0: waits"));
        monitor.join().unwrap();
        assert!(standing(&own).contains("does not answer"));
    }
}

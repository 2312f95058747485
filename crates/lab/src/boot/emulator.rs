//! The process that is the guest.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use atoll_sys::{Root, SignalMask, pass_on, signal, tie_to_parent};

use super::files::{Ports, RunFiles, path_of};
use crate::pack::Packed;
use crate::{Guest, Installation, LabError, RunRequest};

/// A kernel that panics ends the guest (`panic=-1` with `-no-reboot`); files are unpacked into a
/// file system that may take all of memory. The kernel's check that the timer ticks fails on a busy
/// host, where the emulator gets no time for it. The emulator has one lock for all interrupts: cpus
/// tick one after another (`skew_tick`) and at the tick only (`highres`), or many busy cpus on few of
/// the host's come to do nothing but set timers that are already over. The kernel's watch over its clock
/// (`tsc=reliable` switches it off) compares it with one that the emulator reads under that lock: where
/// such reads are slow it may conclude that the fast clock is the wrong one, and use the slow one from
/// then on. 80,000 reads by 16 threads of a Go program took 10.9 s by it, and 0.04 s by the fast one.
const KERNEL_ARGUMENTS: &str = "console=ttyS0 quiet panic=-1 no_timer_check tsc=reliable skew_tick=1 highres=off rdinit=/atoll/init rootfstype=ramfs";

/// Unit of times in procfs on x86 (`USER_HZ`).
const TICKS_PER_SECOND: u64 = 100;

/// The boot configuration.
pub(super) struct Boot<'a> {
    pub(super) request: &'a RunRequest,
    pub(super) guest: &'a Guest,
    pub(super) installation: &'a Installation,
    pub(super) files: &'a RunFiles,
}

impl Boot<'_> {
    fn arguments(
        &self,
        packed: &Packed,
        ports: &Ports,
        is_shell: bool,
    ) -> Result<Vec<OsString>, LabError> {
        let mut words: Vec<OsString> = [
            "-accel",
            "tcg,thread=multi",
            "-no-user-config",
            "-nodefaults",
            "-display",
            "none",
            "-no-reboot",
        ]
        .map(OsString::from)
        .to_vec();
        words.extend(self.guest.qemu_arguments());
        add_port(&mut words, "console", option("file,path", &path_of(&self.files.console)));
        let out = if is_shell { "stdio,signal=off".to_owned() } else { socket(&ports.out) };
        add_port(&mut words, "out", out);
        add_port(&mut words, "err", socket(&ports.err));
        add_port(&mut words, "control", socket(&ports.control));
        let monitor = format!("{},id=monitor", socket(&ports.monitor));
        words.extend(["-chardev".into(), monitor.into()]);
        words.extend(["-mon".into(), "chardev=monitor,mode=readline".into()]);
        let mut append = KERNEL_ARGUMENTS.to_owned();
        for word in &self.request.kernel_arguments {
            append = format!("{append} {word}");
        }
        words.extend(["-kernel".into(), self.installation.kernel()?.into()]);
        words.extend(["-initrd".into(), path_of(&packed.archive).into()]);
        words.extend(["-append".into(), append.into()]);
        if self.request.counting.is_some() {
            let mut plugin = option("file", self.installation.plugin()?);
            plugin.push(",");
            plugin.push(option("setup", &path_of(&self.files.setup)));
            words.extend(["-plugin".into(), plugin]);
        }
        Ok(words)
    }
}

/// `name=path`, with commas doubled as QEMU wants them.
fn option(name: &str, path: &Path) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut word = format!("{name}=").into_bytes();
    for &byte in path.as_os_str().as_bytes() {
        word.push(byte);
        if byte == b',' {
            word.push(byte);
        }
    }
    OsString::from_vec(word)
}

/// A character device of QEMU that is a socket which it inherits.
fn socket(end: &UnixStream) -> String {
    format!("socket,fd={}", end.as_raw_fd())
}

fn add_port(words: &mut Vec<OsString>, name: &str, value: impl AsRef<OsStr>) {
    let mut port = value.as_ref().to_owned();
    port.push(format!(",id={name}"));
    words.extend(["-chardev".into(), port, "-serial".into(), format!("chardev:{name}").into()]);
}

/// A running QEMU; killed when dropped.
pub(super) struct Emulator(Child);

impl Emulator {
    /// Starts it with its ends of the ports, which only QEMU has open from then on: its end is theirs.
    pub(super) fn start(
        boot: &Boot<'_>,
        packed: &Packed,
        ports: Ports,
        is_shell: bool,
        mask: SignalMask,
    ) -> Result<Self, LabError> {
        let qemu = boot.installation.qemu()?;
        let log = boot.files.qemu.try_clone().map_err(LabError::file(qemu, "giving it a log"))?;
        let mut command = Command::new(qemu);
        command.args(boot.arguments(packed, &ports, is_shell)?).stderr(log);
        if !is_shell {
            // In a group of its own the terminal's Ctrl-C reaches only this process, which then ends
            // the guest.
            command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        }
        pass_on(&mut command, &[boot.files.passed_on(packed), ports.descriptors()].concat());
        tie_to_parent(&mut command, signal::KILL, mask);
        let child = command.spawn().map_err(LabError::file(qemu, "starting the emulator"))?;
        Ok(Self(child))
    }

    /// How QEMU ended, if it has.
    pub(super) fn ended(&mut self) -> Result<Option<String>, LabError> {
        let status = self.0.try_wait().map_err(LabError::file("QEMU", "waiting for it"))?;
        Ok(status.map(|status| format!("QEMU: {status}")))
    }

    /// Time that its threads have spent on cpus.
    pub(super) fn cpu_time(&self) -> Option<Duration> {
        cpu_time(&Root::live().read_text(&format!("proc/{}/stat", self.0.id())).ok()?)
    }
}

/// Time on cpus by a process's `stat`: fields 14 and 15, of user and of kernel code.
fn cpu_time(stat: &str) -> Option<Duration> {
    // The second field is a name in parentheses that may hold anything.
    let fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11).take(2);
    let ticks = fields.map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
    Some(Duration::from_millis(1000 / TICKS_PER_SECOND * ticks.iter().sum::<u64>()))
}

impl Drop for Emulator {
    fn drop(&mut self) {
        // Where it has ended already there is nothing left to kill.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_on_cpus_is_read_after_a_name_with_blanks() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 1 0 9 1 1";
        assert_eq!(cpu_time(stat), Some(Duration::from_secs(3)));
        assert_eq!(cpu_time("7 (a) S x 7 7 0 -1 4194560 100 0 0 0 x 50"), None);
        assert_eq!(cpu_time(""), None);
    }

    #[test]
    fn a_comma_in_a_path_is_doubled() {
        assert_eq!(option("file", Path::new("/tmp/a,b")), "file=/tmp/a,,b");
    }
}

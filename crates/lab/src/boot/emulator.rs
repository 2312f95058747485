//! The process that is the guest.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use atoll_sys::{SignalMask, signal, tie_to_parent};

use crate::pack::Packed;
use crate::{Guest, Installation, LabError, RunRequest};

/// How much of a log's end is shown.
const TAIL_BYTES: u64 = 2048;
const TAIL_LINES: usize = 12;
/// A kernel that panics ends the guest (`panic=-1` with `-no-reboot`); files are unpacked into a
/// file system that may take all of memory. The kernel's check that the timer ticks fails on a busy
/// host, where the emulator gets no time for it. The emulator has one lock for all interrupts: cpus
/// tick one after another (`skew_tick`) and at the tick only (`highres`), or many busy cpus on few of
/// the host's come to do nothing but set timers that are already over.
const KERNEL_ARGUMENTS: &str = "console=ttyS0 quiet panic=-1 no_timer_check skew_tick=1 highres=off rdinit=/atoll/init rootfstype=ramfs";

/// The files of a run, all in its private directory.
pub(super) struct RunFiles {
    pub(super) out: PathBuf,
    pub(super) err: PathBuf,
    pub(super) control: PathBuf,
    pub(super) setup: PathBuf,
    pub(super) report: PathBuf,
    pub(super) monitor: PathBuf,
    console: PathBuf,
    qemu: PathBuf,
}

impl RunFiles {
    pub(super) fn of(directory: &Path) -> Self {
        let file = |name| directory.join(name);
        Self {
            out: file("out"),
            err: file("err"),
            control: file("control"),
            setup: file("setup.json"),
            report: file("report.json"),
            monitor: file("monitor"),
            console: file("console"),
            qemu: file("qemu"),
        }
    }

    /// The last words of the guest's kernel.
    pub(super) fn console_tail(&self) -> String {
        tail(&self.console)
    }

    /// The last words of QEMU and of the plugin.
    pub(super) fn qemu_tail(&self) -> String {
        tail(&self.qemu)
    }
}

/// The last lines of a file, without what steers a terminal; empty where there is none.
fn tail(path: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text: String = String::from_utf8_lossy(&bytes)
        .chars()
        .filter(|letter| !letter.is_control() || *letter == '\n')
        .collect();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

/// What is booted.
pub(super) struct Boot<'a> {
    pub(super) request: &'a RunRequest,
    pub(super) guest: &'a Guest,
    pub(super) installation: &'a Installation,
    pub(super) files: &'a RunFiles,
}

impl Boot<'_> {
    fn arguments(&self, packed: &Packed, is_shell: bool) -> Result<Vec<OsString>, LabError> {
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
        let RunFiles { console, out, err, control, .. } = self.files;
        add_port(&mut words, "console", option("file,path", console));
        let shell = OsString::from("stdio,signal=off");
        add_port(&mut words, "out", if is_shell { shell } else { option("socket,path", out) });
        add_port(&mut words, "err", option("socket,path", err));
        add_port(&mut words, "control", option("socket,path", control));
        let monitor = option("socket,server=on,wait=off,id=monitor,path", &self.files.monitor);
        words.extend(["-chardev".into(), monitor]);
        words.extend(["-mon".into(), "chardev=monitor,mode=readline".into()]);
        let mut append = KERNEL_ARGUMENTS.to_owned();
        for word in &self.request.kernel_arguments {
            append = format!("{append} {word}");
        }
        words.extend(["-kernel".into(), self.installation.kernel()?.into()]);
        words.extend(["-initrd".into(), packed.path.clone().into()]);
        words.extend(["-append".into(), append.into()]);
        if self.request.counting.is_some() {
            let mut plugin = option("file", self.installation.plugin()?);
            plugin.push(",");
            plugin.push(option("setup", &self.files.setup));
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

fn add_port(words: &mut Vec<OsString>, name: &str, value: impl AsRef<OsStr>) {
    let mut port = value.as_ref().to_owned();
    port.push(format!(",id={name}"));
    words.extend(["-chardev".into(), port, "-serial".into(), format!("chardev:{name}").into()]);
}

/// A running QEMU; killed when dropped.
pub(super) struct Emulator(Child);

impl Emulator {
    pub(super) fn start(
        boot: &Boot<'_>,
        packed: &Packed,
        is_shell: bool,
        mask: SignalMask,
    ) -> Result<Self, LabError> {
        let qemu = boot.installation.qemu()?;
        let log = File::create(&boot.files.qemu)
            .map_err(LabError::file(&boot.files.qemu, "writing QEMU's log"))?;
        let mut command = Command::new(qemu);
        command.args(boot.arguments(packed, is_shell)?).stderr(log);
        if !is_shell {
            // In a group of its own the terminal's Ctrl-C reaches only this process, which then ends
            // the guest.
            command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        }
        tie_to_parent(&mut command, signal::KILL, mask);
        let child = command.spawn().map_err(LabError::file(qemu, "starting the emulator"))?;
        Ok(Self(child))
    }

    /// How QEMU ended, if it has.
    pub(super) fn ended(&mut self) -> Result<Option<String>, LabError> {
        let status = self.0.try_wait().map_err(LabError::file("QEMU", "waiting for it"))?;
        Ok(status.map(|status| format!("QEMU: {status}")))
    }
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
    fn a_comma_in_a_path_is_doubled() {
        assert_eq!(option("file", Path::new("/tmp/a,b")), "file=/tmp/a,,b");
    }

    #[test]
    fn a_tail_is_the_last_lines_without_what_steers_a_terminal() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("log");
        assert_eq!(tail(&file), "");
        let lines: String = (0..3000).map(|line| format!("\x1b[31mline {line}\r\n\n")).collect();
        std::fs::write(&file, lines).unwrap();
        let tail = tail(&file);
        assert_eq!(tail.lines().count(), TAIL_LINES);
        assert!(tail.ends_with("line 2999") && !tail.contains(['\x1b', '\r']), "{tail}");
    }
}

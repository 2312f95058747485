//! Boots a guest, runs the program in it, and cleans up.
//!
//! The guest has four serial ports: the kernel's console goes to a file, the program's output and
//! errors come through sockets and are forwarded as they come, and the fourth shows how far things
//! are (`pack/init.sh`). QEMU ends with the thread that started it (`PR_SET_PDEATHSIG`); signals that
//! ask for the end are blocked and taken one by one, so that the way out is always the same.

mod emulator;
mod files;
mod monitor;
mod ports;
mod terminal;

use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use atoll_simulation::{Counting, Report};
use atoll_sys::{SignalMask, block_signals, default_signal, set_signal_mask, signal, wait_signal};

use crate::pack::{self, Packed};
use crate::{Guest, Installation, LabError, RunOutcome, RunRequest, Streams};
use emulator::{Boot, Emulator};
use files::{Ports, RunFiles, path_of};
use ports::{BootProgress, follow, forward};
use terminal::GuestTerminal;

/// Signals that ask for the end, and the one that announces it.
const SIGNALS: [i32; 5] = [signal::INT, signal::TERM, signal::HUP, signal::QUIT, signal::CHLD];
/// How often the deadline and the streams are looked at when no signal comes.
const TICK: Duration = Duration::from_millis(50);
/// Longest report read: that of 128 nodes with 64 regions is a tenth of it.
const REPORT_BYTES_MAX: u64 = 1 << 30;

/// Runs a program in the lab and waits for its end, or for the time-out, or for a signal.
pub fn run(request: &RunRequest, streams: Streams<'_>) -> Result<RunOutcome, LabError> {
    let installation = Installation::find(request.kernel.as_deref());
    installation.qemu()?;
    installation.kernel()?;
    if request.counting.is_some() {
        installation.plugin()?;
    }
    let terminal = match request.command.is_empty() {
        true => Some(GuestTerminal::own().ok_or(LabError::NoTerminal)?),
        false => None,
    };
    let signals = Blocked::new()?;
    let words = terminal.as_ref().map(GuestTerminal::words);
    let packed = pack::pack(request, &installation, words.as_deref())?;
    let guest = request.guest.clone().with_room_for(packed.files);
    let files = RunFiles::new()?;
    if let Some(counting) = request.counting {
        write_setup(&guest, counting, &files)?;
    }
    let boot = Boot { request, guest: &guest, installation: &installation, files: &files };
    let run = supervise(&boot, &packed, terminal.is_some(), streams, signals.before)?;
    let report = match request.counting {
        Some(_) => Some(read_report(&files)?),
        None => None,
    };
    let progress = run.progress;
    let notes = packed.notes;
    Ok(RunOutcome {
        code: progress.code.unwrap_or_default(),
        report,
        boot: progress.started.map_or(run.wall, |started| started - run.start),
        wall: run.wall,
        qemu_version: installation.qemu_version().unwrap_or_default(),
        kernel_release: progress.release,
        guest,
        notes,
    })
}

/// Signals are blocked while this lives.
struct Blocked {
    before: SignalMask,
}

impl Blocked {
    fn new() -> Result<Self, LabError> {
        default_signal(signal::CHLD);
        Ok(Self { before: block_signals(&SIGNALS)? })
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // The mask is one that the kernel gave; there is nothing it could refuse.
        let _ = set_signal_mask(self.before);
    }
}

/// A run that came to its end.
struct Ended {
    progress: BootProgress,
    start: Instant,
    wall: Duration,
}

fn supervise(
    boot: &Boot<'_>,
    packed: &Packed,
    is_shell: bool,
    streams: Streams<'_>,
    mask: SignalMask,
) -> Result<Ended, LabError> {
    let files = boot.files;
    let (own, far) = Ports::pairs()?;
    let failed = Mutex::new(None);
    let progress = Mutex::new(BootProgress::default());
    let start = Instant::now();
    let ended = thread::scope(|scope| {
        let mut emulator = Emulator::start(boot, packed, far, is_shell, mask)?;
        if !is_shell {
            scope.spawn(|| forward(&own.out, streams.out, &failed));
            scope.spawn(|| forward(&own.err, streams.err, &failed));
        }
        scope.spawn(|| follow(&own.control, &progress));
        let ended = wait(&mut emulator, start + boot.request.timeout, &failed);
        let standing = match &ended {
            Ok(End::Deadline) => standing(&emulator, &own),
            _ => String::new(),
        };
        drop(emulator);
        ended.map(|ended| (ended, standing))
    });
    let progress = progress.into_inner().unwrap_or_default();
    let wall = start.elapsed();
    let (ended, standing) = ended?;
    let how = match ended {
        End::Emulator(how) => how,
        End::Deadline => return Err(timed_out(boot, &progress, standing)),
        End::Signal(signal) => return Err(LabError::Stopped { signal }),
    };
    if let Some(error) = failed.into_inner().unwrap_or_default() {
        return Err(LabError::Output(error));
    }
    if let Some(reason) = progress.failure {
        return Err(LabError::Prepare { reason, qemu: files.qemu_tail() });
    }
    if progress.code.is_none() {
        let (console, qemu) = (files.console_tail(), files.qemu_tail());
        return Err(LabError::Died { how, console, qemu });
    }
    Ok(Ended { progress, start, wall })
}

/// What the guest's cpus do, and how much of this machine's they had: a guest that stands still and a
/// busy host look alike from outside.
fn standing(emulator: &Emulator, ports: &Ports) -> String {
    let time = emulator
        .cpu_time()
        .map(|time| format!("QEMU had {:.1} s of cpu time\n", time.as_secs_f64()));
    time.unwrap_or_default() + &monitor::standing(&ports.monitor)
}

fn timed_out(boot: &Boot<'_>, progress: &BootProgress, standing: String) -> LabError {
    let console = match progress.started {
        Some(_) => String::new(),
        None => boot.files.console_tail(),
    };
    LabError::TimedOut { after: boot.request.timeout, console, standing }
}

/// Why waiting ended.
enum End {
    /// QEMU ended, with these words.
    Emulator(String),
    Deadline,
    Signal(i32),
}

/// Waits until QEMU ends or has to.
fn wait(
    emulator: &mut Emulator,
    deadline: Instant,
    failed: &Mutex<Option<std::io::Error>>,
) -> Result<End, LabError> {
    loop {
        if let Some(how) = emulator.ended()? {
            return Ok(End::Emulator(how));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(End::Deadline);
        }
        if failed.lock().is_ok_and(|failed| failed.is_some()) {
            return Ok(End::Emulator("its output has no reader".to_owned()));
        }
        match wait_signal(&SIGNALS, left.min(TICK))? {
            Some(taken) if taken.number != signal::CHLD => return Ok(End::Signal(taken.number)),
            _ => {}
        }
    }
}

fn write_setup(guest: &Guest, counting: Counting, files: &RunFiles) -> Result<(), LabError> {
    let setup = guest.setup(counting, path_of(&files.report));
    let text = serde_json::to_vec(&setup).map_err(std::io::Error::from);
    let written = text.and_then(|text| (&files.setup).write_all(&text));
    written.map_err(LabError::file(path_of(&files.setup), "writing the setup of the plugin"))
}

fn read_report(files: &RunFiles) -> Result<Report, LabError> {
    let failed = |reason: String| LabError::Report { reason, qemu: files.qemu_tail() };
    let mut file = &files.report;
    let mut bytes = Vec::new();
    let read = file
        .seek(SeekFrom::Start(0))
        .and_then(|_| file.take(REPORT_BYTES_MAX + 1).read_to_end(&mut bytes));
    match read.map_err(|error| failed(error.to_string()))? {
        0 => Err(failed("the plugin wrote no report".to_owned())),
        size if size as u64 > REPORT_BYTES_MAX => Err(failed(format!("{size} bytes are too many"))),
        _ => serde_json::from_slice(&bytes).map_err(|error| failed(error.to_string())),
    }
}

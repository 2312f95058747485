//! The callbacks: each reports an event of a vCPU to the simulation.

use std::ffi::{OsStr, c_int, c_uint, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use atoll_marker::Marker;
use atoll_simulation::{Setup, Simulation};

use crate::qemu::{self, InstallInfo, PluginId, ResetCallback};
use crate::say;

/// The one counter of the process: QEMU loads a plugin once.
static COUNTER: OnceLock<Counter> = OnceLock::new();

/// The end of user space on x86-64 with four levels of page tables.
pub(crate) const USER_END: u64 = 1 << 47;

/// Number of cached kinds of access. QEMU encodes size and direction in the low 18 bits.
const KINDS: usize = 1 << 18;

/// The shared state of the callbacks.
pub(crate) struct Counter {
    pub(crate) simulation: Simulation,
    pub(crate) report: PathBuf,
    /// Version of QEMU's interface.
    pub(crate) api: c_int,
    id: PluginId,
    pub(crate) cpus: usize,
    /// Registers the callbacks again.
    register: ResetCallback,
    /// Whether blocks are translated with callbacks for their accesses.
    listens: Mutex<bool>,
    /// For each kind of access [`AccessKind::pack`]ed, 0 where QEMU was not asked yet: asking it takes two
    /// calls, as long as the rest of an access that hits.
    kinds: Box<[AtomicU8]>,
}

/// What an access is.
#[derive(Clone, Copy)]
struct AccessKind {
    size_shift: u8,
    is_store: bool,
}

impl AccessKind {
    /// In one byte that is not 0.
    fn pack(self) -> u8 {
        0x80 | u8::from(self.is_store) << 6 | self.size_shift & 0x3f
    }

    fn unpack(byte: u8) -> Self {
        Self { size_shift: byte & 0x3f, is_store: byte & 0x40 != 0 }
    }

    /// Asks QEMU.
    #[cold]
    fn ask(access: u32) -> Self {
        // SAFETY: `access` is what QEMU passed to the callback; both calls only decode it.
        let (shift, is_store) = unsafe {
            (qemu::qemu_plugin_mem_size_shift(access), qemu::qemu_plugin_mem_is_store(access))
        };
        Self { size_shift: shift as u8, is_store }
    }
}

impl Counter {
    /// The counter for the set-up that the arguments name.
    pub(crate) fn install<'a>(
        info: &InstallInfo,
        id: PluginId,
        register: ResetCallback,
        arguments: impl Iterator<Item = &'a [u8]>,
    ) -> Result<&'static Self, String> {
        let setup = read_setup(&setup_path(arguments)?)?;
        if !info.is_system {
            return Err("user-mode emulation is not supported; use qemu-system-x86_64".into());
        }
        let cpus = setup.cpus.len();
        if [info.cpus, info.cpus_max].iter().any(|count| usize::try_from(*count) != Ok(cpus)) {
            return Err(format!(
                "the set-up is for {cpus} cpus and the machine has {}, up to {}; start it with -smp {cpus}",
                info.cpus, info.cpus_max
            ));
        }
        let report = setup.report.clone();
        let simulation = Simulation::new(setup).map_err(|error| error.to_string())?;
        let kinds = (0..KINDS).map(|_| AtomicU8::new(0)).collect();
        let listens = Mutex::new(simulation.listens());
        let counter =
            Self { simulation, report, api: info.api, id, cpus, register, listens, kinds };
        Ok(COUNTER.get_or_init(|| counter))
    }

    /// The installed counter.
    #[inline]
    pub(crate) fn get() -> Option<&'static Self> {
        COUNTER.get()
    }

    /// Writes the report. QEMU may be killed meanwhile: a part of a JSON document cannot be read as one.
    pub(crate) fn write_report(&self) {
        if let Err(error) = self.try_write_report() {
            say(&format!("{}: the report is lost: {error}", self.report.display()));
        }
    }

    fn try_write_report(&self) -> io::Result<()> {
        std::fs::write(&self.report, serde_json::to_vec(&self.simulation.report())?)
    }

    /// Has QEMU translate everything again if accesses begin or cease to matter.
    fn follow(&self) {
        let mut listens = self.listens.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock: the last one to take it sees the last change.
        let now = self.simulation.listens();
        if std::mem::replace(&mut *listens, now) != now {
            // SAFETY: the callback only registers others, which is what it is for.
            unsafe { qemu::qemu_plugin_reset(self.id, self.register) };
        }
    }

    #[inline]
    fn accessed(&self, cpu: c_uint, access: u32, address: u64) -> AccessKind {
        let kind = self.kind(access);
        let place = || block_address(access, address);
        self.simulation.access(cpu as usize, address, 1 << kind.size_shift, kind.is_store, place);
        kind
    }

    #[inline]
    fn kind(&self, access: u32) -> AccessKind {
        let Some(slot) = self.kinds.get(access as usize) else { return AccessKind::ask(access) };
        match slot.load(Ordering::Relaxed) {
            0 => {
                let kind = AccessKind::ask(access);
                slot.store(kind.pack(), Ordering::Relaxed);
                kind
            }
            packed => AccessKind::unpack(packed),
        }
    }
}

fn setup_path<'a>(arguments: impl Iterator<Item = &'a [u8]>) -> Result<PathBuf, String> {
    let mut path = None;
    for argument in arguments {
        match argument.strip_prefix(b"setup=") {
            Some(name) => path = Some(PathBuf::from(OsStr::from_bytes(name))),
            None => {
                let argument = String::from_utf8_lossy(argument);
                return Err(format!("unknown argument {argument}; expected setup=PATH"));
            }
        }
    }
    path.ok_or_else(|| {
        "argument setup=PATH is missing: the set-up file that `atoll lab` \
                        writes"
            .into()
    })
}

fn read_setup(path: &Path) -> Result<Setup, String> {
    let text = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| {
        let path = path.display();
        format!("{path}: {error}; write the set-up with the `atoll` that belongs to the plugin")
    })
}

/// Where in the guest's RAM an access went; none for memory of devices, and for what the processor
/// itself does for an interrupt while it is in user space: it writes to the kernel's stack.
#[inline]
fn block_address(access: u32, address: u64) -> Option<u64> {
    if address >= USER_END {
        return None;
    }
    // SAFETY: called from the callback of this very access, on its vCPU's thread; the handle lives
    // until the callback returns.
    unsafe {
        let place = qemu::qemu_plugin_get_hwaddr(access, address);
        let is_ram = !place.is_null() && !qemu::qemu_plugin_hwaddr_is_io(place);
        is_ram.then(|| qemu::qemu_plugin_hwaddr_phys_addr(place))
    }
}

/// A load or store was made.
pub(crate) extern "C" fn accessed(cpu: c_uint, access: u32, address: u64, _: *mut c_void) {
    if let Some(counter) = Counter::get() {
        counter.accessed(cpu, access, address);
    }
}

/// An access was made, and with it, if it is a load, a block began to run, of `count` instructions.
pub(crate) extern "C" fn accessed_and_entered_by_load(
    cpu: c_uint,
    access: u32,
    address: u64,
    count: *mut c_void,
) {
    if let Some(counter) = Counter::get()
        && !counter.accessed(cpu, access, address).is_store
    {
        counter.simulation.instructions(cpu as usize, count.addr() as u64);
    }
}

/// The same for blocks that are counted by a store.
pub(crate) extern "C" fn accessed_and_entered_by_store(
    cpu: c_uint,
    access: u32,
    address: u64,
    count: *mut c_void,
) {
    if let Some(counter) = Counter::get()
        && counter.accessed(cpu, access, address).is_store
    {
        counter.simulation.instructions(cpu as usize, count.addr() as u64);
    }
}

/// A block begins to run. `count` is the number of its instructions.
pub(crate) extern "C" fn entered(cpu: c_uint, count: *mut c_void) {
    if let Some(counter) = Counter::get() {
        counter.simulation.instructions(cpu as usize, count.addr() as u64);
    }
}

/// A marker runs. `marker` is the number that [`marker_number`] gave it.
pub(crate) extern "C" fn marked(cpu: c_uint, marker: *mut c_void) {
    let number = marker.addr() as u64;
    let mut bytes = [0; atoll_marker::LEN];
    bytes.copy_from_slice(&number.to_le_bytes()[..atoll_marker::LEN]);
    let (Some(counter), Some(marker)) = (Counter::get(), Marker::decode(&bytes)) else { return };
    if let Err(error) = counter.simulation.marker(cpu as usize, marker) {
        say(&error.to_string());
        counter.write_report();
        qemu::end_process(1);
    }
    counter.follow();
}

/// A marker as a number, for [`marked`].
pub(crate) fn marker_number(marker: Marker) -> usize {
    let mut bytes = [0; 8];
    bytes[..atoll_marker::LEN].copy_from_slice(&marker.encode());
    u64::from_le_bytes(bytes) as usize
}

//! The QEMU plugin of the lab: reports every access of a guest's user space to a
//! [`Simulation`](atoll_simulation::Simulation), and writes its report when QEMU ends.
//!
//! QEMU loads it with `-plugin file=libatoll_plugin.so,setup=PATH`, where PATH is a
//! [`Setup`](atoll_simulation::Setup) as JSON. It is a separate crate because it is a library that
//! QEMU loads: its symbols are the emulator's, and nothing else can link it. What it counts is
//! decided in `simulation`.
//!
//! - `qemu`: the used part of QEMU's interface.
//! - `translate`: which callbacks the instructions of a block get.
//! - `decode`: which instructions identify a run of their block by an access.
//! - `counter`: the callbacks, which run between the guest's instructions.
//! - `finish`: writes the report.
//!
//! A panic does not cross into QEMU: Rust ends the process with a message where one reaches the edge
//! of an `extern "C"` function.

mod counter;
mod decode;
mod finish;
mod qemu;
mod translate;

use std::ffi::{CStr, c_char, c_int};
use std::io::Write;
use std::sync::atomic::{AtomicI32, Ordering};

use counter::Counter;
use qemu::{InstallInfo, PluginId};

/// Version of QEMU's interface that the plugin is for; [`choose_version`] raises it.
#[unsafe(export_name = "qemu_plugin_version")]
static VERSION: AtomicI32 = AtomicI32::new(1);

/// Runs when the library is loaded, before QEMU reads the version: QEMU 9 and newer refuse plugins of
/// version 1, older ones refuse those of version 2, and what this plugin uses is the same in both.
extern "C" fn choose_version() {
    if qemu::has(c"qemu_plugin_scoreboard_new") {
        VERSION.store(2, Ordering::Relaxed);
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CHOOSE_VERSION: extern "C" fn() = choose_version;

/// Called by QEMU when it has loaded the plugin; anything but 0 ends QEMU.
///
/// # Safety
/// For QEMU to call: `info` points to its description of itself, `arguments` to `count` strings.
#[unsafe(no_mangle)]
unsafe extern "C" fn qemu_plugin_install(
    id: PluginId,
    info: *const InstallInfo,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    // SAFETY: QEMU passes that many strings that end with a zero and live as long as the plugin.
    let arguments = (0..usize::try_from(count).unwrap_or(0))
        .map(|index| unsafe { CStr::from_ptr(*arguments.add(index)) });
    // SAFETY: QEMU's description lives during this call.
    let info = unsafe { &*info };
    match Counter::install(info, id, register, arguments.map(CStr::to_bytes)) {
        Ok(_) => {
            register(id);
            0
        }
        Err(message) => {
            say(&message);
            1
        }
    }
}

/// Registers the callbacks, at first and after each reset.
extern "C" fn register(id: PluginId) {
    if let Some(counter) = Counter::get() {
        // SAFETY: QEMU installs plugins before any vCPU runs, and calls this after a reset while none does.
        unsafe { qemu::forget_callbacks(counter.cpus) };
        translate::register(id);
        finish::register(id, counter);
    }
}

/// Writes to QEMU's standard error.
fn say(message: &str) {
    // Where standard error is closed the message is lost.
    let _ = writeln!(std::io::stderr(), "libatoll_plugin: {message}");
}

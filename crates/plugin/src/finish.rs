//! The report's way into its file.

use std::ffi::c_void;
use std::io;
use std::ptr;

use crate::counter::Counter;
use crate::qemu::{self, PluginId};
use crate::say;

/// The report is written when QEMU ends.
pub(crate) fn register(id: PluginId, counter: &'static Counter) {
    let data = ptr::from_ref(counter).cast_mut().cast::<c_void>();
    // SAFETY: `ended` gets the counter, which lives as long as the process.
    unsafe { qemu::qemu_plugin_register_atexit_cb(id, ended, data) };
}

extern "C" fn ended(_: PluginId, counter: *mut c_void) {
    // SAFETY: registered with a reference to the counter, which lives as long as the process.
    write(unsafe { &*counter.cast::<Counter>() });
}

/// Writes the report. QEMU may be killed meanwhile: a part of a JSON document cannot be read as one.
pub(crate) fn write(counter: &Counter) {
    if let Err(error) = try_write(counter) {
        say(&format!("{}: the report is lost: {error}", counter.report.display()));
    }
}

fn try_write(counter: &Counter) -> io::Result<()> {
    std::fs::write(&counter.report, serde_json::to_vec(&counter.simulation.report())?)
}

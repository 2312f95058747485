//! Writes the report when QEMU ends.

use std::ffi::c_void;
use std::ptr;

use crate::counter::Counter;
use crate::qemu::{self, PluginId};

/// The report is written when QEMU ends.
pub(crate) fn register(id: PluginId, counter: &'static Counter) {
    let data = ptr::from_ref(counter).cast_mut().cast::<c_void>();
    // SAFETY: `ended` gets the counter, which lives as long as the process.
    unsafe { qemu::qemu_plugin_register_atexit_cb(id, ended, data) };
}

extern "C" fn ended(_: PluginId, counter: *mut c_void) {
    // SAFETY: registered with a reference to the counter, which lives as long as the process.
    let counter = unsafe { &*counter.cast::<Counter>() };
    counter.write_report();
}

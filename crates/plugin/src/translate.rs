//! Which callbacks the instructions of a block get when QEMU translates it.

use std::ffi::c_void;
use std::ptr;

use atoll_marker::Marker;

use crate::counter::{self, Counter};
use crate::decode::{SoleAccess, one_access};
use crate::qemu::{self, AccessCallback, Instruction, PluginId, TranslationBlock};

/// From now on blocks get their callbacks.
pub(crate) fn register(id: PluginId) {
    // SAFETY: QEMU calls `translated` with a block that lives during the call.
    unsafe { qemu::qemu_plugin_register_vcpu_tb_trans_cb(id, translated) };
}

/// A block is translated: instruments blocks of user space and ignores the kernel's. While accesses do not matter only
/// those with a marker are instrumented: the access that it announces follows in the same block.
extern "C" fn translated(_: PluginId, block: *mut TranslationBlock) {
    let Some(counter) = Counter::get() else { return };
    // SAFETY: QEMU's block lives during this call; its instructions are numbered from 0.
    unsafe {
        if qemu::qemu_plugin_tb_vaddr(block) >= counter::USER_END {
            return;
        }
        let count = qemu::qemu_plugin_tb_n_insns(block);
        let is_marker = |index| {
            let instruction = qemu::qemu_plugin_tb_get_insn(block, index);
            Marker::decode(&qemu::bytes(instruction, counter.api)).is_some()
        };
        if !counter.simulation.listens() && !(0..count).any(is_marker) {
            return;
        }
        let mut uncounted = Some(count);
        for index in 0..count {
            instrument(qemu::qemu_plugin_tb_get_insn(block, index), counter, &mut uncounted);
        }
        if let Some(count) = uncounted {
            let data = ptr::without_provenance_mut(count);
            qemu::qemu_plugin_register_vcpu_tb_exec_cb(
                block,
                counter::entered,
                qemu::NO_REGISTERS,
                data,
            );
        }
    }
}

/// Callbacks of an instruction. The first one by whose access its block can be counted takes the
/// number of the block's instructions.
///
/// # Safety
/// The instruction is one of the block being translated.
unsafe fn instrument(
    instruction: *mut Instruction,
    counter: &'static Counter,
    uncounted: &mut Option<usize>,
) {
    // SAFETY: the instruction lives, as the caller says.
    let bytes = unsafe { qemu::bytes(instruction, counter.api) };
    if let Some(marker) = Marker::decode(&bytes) {
        let data = ptr::without_provenance_mut(counter::marker_number(marker));
        // SAFETY: the instruction lives; the callback is given a number.
        unsafe {
            qemu::qemu_plugin_register_vcpu_insn_exec_cb(
                instruction,
                counter::marked,
                qemu::NO_REGISTERS,
                data,
            );
        }
        return;
    }
    let access = if uncounted.is_some() { one_access(&bytes) } else { None };
    let (callback, count): (AccessCallback, _) = match access {
        Some(SoleAccess::Load) => (counter::accessed_and_entered_by_load, uncounted.take()),
        Some(SoleAccess::Store) => (counter::accessed_and_entered_by_store, uncounted.take()),
        None => (counter::accessed, None),
    };
    let data: *mut c_void = ptr::without_provenance_mut(count.unwrap_or(0));
    // SAFETY: the instruction lives; the callbacks are given a number.
    unsafe {
        qemu::qemu_plugin_register_vcpu_mem_cb(
            instruction,
            callback,
            qemu::NO_REGISTERS,
            qemu::LOADS_AND_STORES,
            data,
        );
    }
}

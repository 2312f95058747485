//! Which callbacks the instructions of a block get when QEMU translates it.

use std::ffi::c_void;
use std::ptr;

use atoll_marker::{LEN, Marker};

use crate::counter::{self, Counter};
use crate::qemu::{self, Block, Instruction, PluginId};

/// From now on blocks get their callbacks.
pub(crate) fn register(id: PluginId) {
    // SAFETY: QEMU calls `translated` with a block that lives during the call.
    unsafe { qemu::qemu_plugin_register_vcpu_tb_trans_cb(id, translated) };
}

/// A block is translated: those of user space are told about. The kernel's are left alone.
extern "C" fn translated(_: PluginId, block: *mut Block) {
    let Some(counter) = Counter::get() else { return };
    // SAFETY: QEMU's block lives during this call; its instructions are numbered from 0.
    unsafe {
        if qemu::qemu_plugin_tb_vaddr(block) >= counter::USER_END {
            return;
        }
        let count = qemu::qemu_plugin_tb_n_insns(block);
        let data = ptr::without_provenance_mut(count);
        qemu::qemu_plugin_register_vcpu_tb_exec_cb(
            block,
            counter::entered,
            qemu::NO_REGISTERS,
            data,
        );
        for index in 0..count {
            instrument(qemu::qemu_plugin_tb_get_insn(block, index), counter);
        }
    }
}

/// # Safety
/// The instruction is one of the block being translated.
unsafe fn instrument(instruction: *mut Instruction, counter: &'static Counter) {
    // SAFETY: the instruction lives, as the caller says; what the callbacks are given is a number, or
    // the counter, which lives as long as the process.
    unsafe {
        let bytes = qemu::bytes::<LEN>(instruction, counter.api);
        match bytes.and_then(|bytes| Marker::decode(&bytes)) {
            Some(marker) => qemu::qemu_plugin_register_vcpu_insn_exec_cb(
                instruction,
                counter::marked,
                qemu::NO_REGISTERS,
                ptr::without_provenance_mut(counter::marker_number(marker)),
            ),
            None => qemu::qemu_plugin_register_vcpu_mem_cb(
                instruction,
                counter::accessed,
                qemu::NO_REGISTERS,
                qemu::LOADS_AND_STORES,
                ptr::from_ref::<Counter>(counter).cast_mut().cast::<c_void>(),
            ),
        }
    }
}

//! The used part of QEMU's plugin interface, declared by hand: `qemu-plugin.h`, API versions 1 (QEMU
//! 5.1 to 8.2) and 2 (QEMU 9 and 10). The symbols are the emulator's own and are bound when it loads
//! the plugin.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// Number that QEMU gives the plugin.
pub(crate) type PluginId = u64;

/// A block of instructions being translated; lives during the callback.
#[repr(C)]
pub(crate) struct TranslationBlock {
    _opaque: [u8; 0],
}

/// An instruction of a [`TranslationBlock`]; lives as long.
#[repr(C)]
pub(crate) struct Instruction {
    _opaque: [u8; 0],
}

/// Where an access ended up; lives during the access's callback.
#[repr(C)]
pub(crate) struct HardwareAddress {
    _opaque: [u8; 0],
}

/// QEMU's description of itself for [`qemu_plugin_install`](crate::qemu_plugin_install).
#[repr(C)]
pub(crate) struct InstallInfo {
    target_name: *const c_char,
    pub(crate) api_min: c_int,
    pub(crate) api: c_int,
    pub(crate) is_system: bool,
    pub(crate) cpus: c_int,
    pub(crate) cpus_max: c_int,
}

/// The callback touches no register of the guest.
pub(crate) const NO_REGISTERS: c_int = 0;
/// Loads and stores.
pub(crate) const LOADS_AND_STORES: c_int = 3;

/// A block is being translated.
pub(crate) type TranslationCallback = extern "C" fn(PluginId, *mut TranslationBlock);
/// An instruction or block is about to run: number of the vCPU, what was given when registering.
pub(crate) type RunCallback = extern "C" fn(c_uint, *mut c_void);
/// An access was made: number of the vCPU, kind of access, virtual address, what was given.
pub(crate) type AccessCallback = extern "C" fn(c_uint, u32, u64, *mut c_void);
/// All callbacks are gone and all translated blocks are discarded.
pub(crate) type ResetCallback = extern "C" fn(PluginId);
/// QEMU ends.
pub(crate) type ExitCallback = extern "C" fn(PluginId, *mut c_void);

unsafe extern "C" {
    pub(crate) fn qemu_plugin_register_vcpu_tb_trans_cb(
        id: PluginId,
        callback: TranslationCallback,
    );
    /// Once no vCPU runs, removes all callbacks, discards all blocks and calls `callback`. Nothing happens if such a
    /// request is already waiting.
    pub(crate) fn qemu_plugin_reset(id: PluginId, callback: ResetCallback);
    pub(crate) fn qemu_plugin_register_atexit_cb(
        id: PluginId,
        callback: ExitCallback,
        data: *mut c_void,
    );
    pub(crate) fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut TranslationBlock,
        callback: RunCallback,
        flags: c_int,
        data: *mut c_void,
    );
    pub(crate) fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut Instruction,
        callback: RunCallback,
        flags: c_int,
        data: *mut c_void,
    );
    pub(crate) fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut Instruction,
        callback: AccessCallback,
        flags: c_int,
        kinds: c_int,
        data: *mut c_void,
    );
    pub(crate) fn qemu_plugin_tb_n_insns(block: *const TranslationBlock) -> usize;
    pub(crate) fn qemu_plugin_tb_vaddr(block: *const TranslationBlock) -> u64;
    pub(crate) fn qemu_plugin_tb_get_insn(
        block: *const TranslationBlock,
        index: usize,
    ) -> *mut Instruction;
    pub(crate) fn qemu_plugin_insn_size(instruction: *const Instruction) -> usize;
    /// Until API 2 takes the instruction only and returns a pointer to its bytes; from 3 on copies
    /// them and returns how many. The two further arguments do no harm to the old form.
    pub(crate) fn qemu_plugin_insn_data(
        instruction: *const Instruction,
        destination: *mut c_void,
        len: usize,
    ) -> usize;
    pub(crate) fn qemu_plugin_mem_size_shift(access: u32) -> c_uint;
    pub(crate) fn qemu_plugin_mem_is_store(access: u32) -> bool;
    pub(crate) fn qemu_plugin_get_hwaddr(access: u32, address: u64) -> *mut HardwareAddress;
    pub(crate) fn qemu_plugin_hwaddr_is_io(address: *const HardwareAddress) -> bool;
    pub(crate) fn qemu_plugin_hwaddr_phys_addr(address: *const HardwareAddress) -> u64;

    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn _exit(code: c_int) -> !;
}

/// Whether the emulator that loads the plugin has a function of this name.
pub(crate) fn has(name: &std::ffi::CStr) -> bool {
    function(name).is_some()
}

/// The address of one of the emulator's functions, by its name.
fn function(name: &std::ffi::CStr) -> Option<std::ptr::NonNull<c_void>> {
    // SAFETY: a null handle is the default search order (RTLD_DEFAULT); the name ends with a zero.
    std::ptr::NonNull::new(unsafe { dlsym(std::ptr::null_mut(), name.as_ptr()) })
}

/// Clears what vCPUs remember of the callbacks of their last blocks, which are gone. Before 8.0, QEMU forgets to do so
/// where a block ends within an instruction, such as `rep movsb`, and calls what is not there any more. Newer versions
/// need nothing, and have not both of these functions.
///
/// # Safety
/// No vCPU runs, as in a [`ResetCallback`].
pub(crate) unsafe fn forget_callbacks(cpus: usize) {
    type GetCpu = extern "C" fn(c_int) -> *mut c_void;
    type Disable = extern "C" fn(*mut c_void);
    let get = function(c"qemu_get_cpu");
    let (Some(get), Some(disable)) = (get, function(c"qemu_plugin_disable_mem_helpers")) else {
        return;
    };
    // SAFETY: these are the types of the functions of these names, since QEMU 4.2.
    let (get, disable) = unsafe {
        (
            std::mem::transmute::<*mut c_void, GetCpu>(get.as_ptr()),
            std::mem::transmute::<*mut c_void, Disable>(disable.as_ptr()),
        )
    };
    for number in 0..cpus {
        let cpu = get(number as c_int);
        if !cpu.is_null() {
            disable(cpu);
        }
    }
}

/// Ends QEMU on the spot. `exit` would run its own clean-up, which waits for the very vCPU that asks.
pub(crate) fn end_process(code: c_int) -> ! {
    // SAFETY: the call takes an integer and does not return.
    unsafe { _exit(code) }
}

/// The longest instruction of x86.
const INSTRUCTION_MAX: usize = 15;

/// The bytes of an instruction.
#[derive(Default)]
pub(crate) struct InstructionBytes {
    bytes: [u8; INSTRUCTION_MAX],
    len: usize,
}

impl std::ops::Deref for InstructionBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The bytes of an instruction; empty if QEMU does not provide them. `api` is QEMU's version.
///
/// # Safety
/// The instruction is one of the block being translated.
pub(crate) unsafe fn bytes(instruction: *const Instruction, api: c_int) -> InstructionBytes {
    const API_COPIES: c_int = 3;
    let mut bytes = InstructionBytes::default();
    // SAFETY: the instruction lives, as the caller says.
    let len = unsafe { qemu_plugin_insn_size(instruction) };
    let Some(room) = bytes.bytes.get_mut(..len) else { return bytes };
    // SAFETY: there is room for the bytes, and the instruction lives.
    let result =
        unsafe { qemu_plugin_insn_data(instruction, room.as_mut_ptr().cast(), room.len()) };
    if api < API_COPIES {
        let data = std::ptr::with_exposed_provenance::<u8>(result);
        // SAFETY: here the result points to the instruction's bytes, which are as many as its size.
        room.copy_from_slice(unsafe { std::slice::from_raw_parts(data, len) });
    } else if result != len {
        return bytes;
    }
    bytes.len = len;
    bytes
}

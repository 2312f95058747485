//! Finds instructions that make exactly one access of a kind each time they run.
//!
//! A block's instructions are counted once each time it runs. A separate callback for that costs as much as an access;
//! if a block has an instruction that always makes exactly one load, or exactly one store, that access counts for the
//! block. Unknown instructions do not qualify: the block then has a separate callback.
//!
//! adc and sbb are excluded. QEMU calls a helper for their carry, and if such an instruction faults, it reports the
//! processor's own accesses on kernel entry as the instruction's.

/// The access that identifies a run of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SoleAccess {
    Load,
    Store,
}

/// The one load, or one store, that an x86-64 instruction makes whenever it runs. Read-modify-write
/// makes one load, and a store besides.
pub(crate) fn one_access(instruction: &[u8]) -> Option<SoleAccess> {
    let rest = match instruction {
        // REX, and the prefix of 16-bit operands with and without it.
        [0x40..=0x4f, rest @ ..] => rest,
        [0x66, 0x40..=0x4f, rest @ ..] | [0x66, rest @ ..] => rest,
        rest => rest,
    };
    match *rest {
        // push and pop of a register, push of a number, call, ret.
        [0x50..=0x57 | 0x68 | 0x6a | 0xe8, ..] => Some(SoleAccess::Store),
        [0x58..=0x5f | 0xc3, ..] => Some(SoleAccess::Load),
        // mov to memory, of a register or a number.
        [0x88 | 0x89, modrm, ..] if is_memory(modrm) => Some(SoleAccess::Store),
        [0xc6 | 0xc7, modrm, ..] if is_memory(modrm) && modrm & 0x38 == 0 => {
            Some(SoleAccess::Store)
        }
        // mov from memory; movzx and movsx; movsxd.
        [0x8a | 0x8b | 0x63, modrm, ..] if is_memory(modrm) => Some(SoleAccess::Load),
        [0x0f, 0xb6 | 0xb7 | 0xbe | 0xbf, modrm, ..] if is_memory(modrm) => Some(SoleAccess::Load),
        // add, or, and, sub, xor, cmp between a register and memory; test; with a number.
        [opcode @ 0x00..=0x3b, modrm, ..] if opcode & 7 < 4 && is_memory(modrm) => {
            (!takes_carry(opcode)).then_some(SoleAccess::Load)
        }
        [0x84 | 0x85, modrm, ..] if is_memory(modrm) => Some(SoleAccess::Load),
        [0x80 | 0x81 | 0x83, modrm, ..] if is_memory(modrm) => {
            (!takes_carry(modrm)).then_some(SoleAccess::Load)
        }
        _ => None,
    }
}

/// Whether the operand that a ModRM byte names is in memory.
fn is_memory(modrm: u8) -> bool {
    modrm < 0xc0
}

/// Whether the operation that an opcode, or the ModRM byte of one with a number, names is adc or sbb.
fn takes_carry(operation: u8) -> bool {
    matches!(operation >> 3 & 7, 2 | 3)
}

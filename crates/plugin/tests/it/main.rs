//! Which instructions identify a run of their block by an access. Only QEMU can link the plugin itself, so its decoder
//! is included here.

#[path = "../../src/decode.rs"]
mod decode;

use decode::SoleAccess::{self, Load, Store};
use decode::one_access;

fn assert_each(expected: Option<SoleAccess>, instructions: &[(&str, &[u8])]) {
    for (text, bytes) in instructions {
        assert_eq!(one_access(bytes), expected, "{text}");
    }
}

#[test]
fn loads_and_read_modify_writes_are_identified_by_their_load() {
    assert_each(
        Some(Load),
        &[
            ("mov (%rdi),%rax", &[0x48, 0x8b, 0x07]),
            ("mov 0x0(%rip),%eax", &[0x8b, 0x05, 0, 0, 0, 0]),
            ("mov (%rdi),%ax", &[0x66, 0x8b, 0x07]),
            ("mov (%r8),%r9w", &[0x66, 0x45, 0x8b, 0x08]),
            ("add (%rdi,%rcx,8),%rax", &[0x48, 0x03, 0x04, 0xcf]),
            ("add %rax,(%rdi)", &[0x48, 0x01, 0x07]),
            ("cmp (%rdi),%al", &[0x3a, 0x07]),
            ("cmpq $5,(%rdi)", &[0x48, 0x83, 0x3f, 5]),
            ("addl $1,8(%rdi)", &[0x83, 0x47, 8, 1]),
            ("test %eax,(%rdi)", &[0x85, 0x07]),
            ("movzbl (%rdi),%eax", &[0x0f, 0xb6, 0x07]),
            ("movslq (%rdi),%rax", &[0x48, 0x63, 0x07]),
            ("pop %rbx", &[0x5b]),
            ("pop %r12", &[0x41, 0x5c]),
            ("ret", &[0xc3]),
        ],
    );
}

#[test]
fn plain_stores_pushes_and_calls_are_identified_by_their_store() {
    assert_each(
        Some(Store),
        &[
            ("mov %rax,(%rdi)", &[0x48, 0x89, 0x07]),
            ("mov %al,(%rdi)", &[0x88, 0x07]),
            ("movl $7,(%rdi)", &[0xc7, 0x07, 7, 0, 0, 0]),
            ("movb $7,(%rdi)", &[0xc6, 0x07, 7]),
            ("push %rbp", &[0x55]),
            ("push %r15", &[0x41, 0x57]),
            ("push $1", &[0x6a, 1]),
            ("call", &[0xe8, 0, 0, 0, 0]),
        ],
    );
}

#[test]
fn instructions_without_exactly_one_access_do_not_qualify() {
    assert_each(
        None,
        &[
            ("nothing", &[]),
            ("a prefix alone", &[0x48]),
            ("mov %rax,%rdi", &[0x48, 0x89, 0xc7]),
            ("mov without its ModRM byte", &[0x48, 0x8b]),
            ("lea (%rdi),%rax", &[0x48, 0x8d, 0x07]),
            ("nopl (%rax)", &[0x0f, 0x1f, 0x00]),
            ("add $1,%eax", &[0x83, 0xc0, 1]),
            ("jne", &[0x75, 0xfe]),
            ("cmove (%rdi),%eax", &[0x0f, 0x44, 0x07]),
            ("movups (%rdi),%xmm0", &[0x0f, 0x10, 0x07]),
            ("rep movsb", &[0xf3, 0xa4]),
            ("movsb", &[0xa4]),
            ("lock add %rax,(%rdi)", &[0xf0, 0x48, 0x01, 0x07]),
            ("xchg %rax,(%rdi)", &[0x48, 0x87, 0x07]),
            ("mov %fs:0x28,%rax", &[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0]),
            ("vmovdqu (%rdi),%ymm0", &[0xc5, 0xfe, 0x6f, 0x07]),
            ("adc (%rdi),%rax", &[0x48, 0x13, 0x07]),
            ("sbb %rax,(%rdi)", &[0x48, 0x19, 0x07]),
            ("adcq $0,(%rdi)", &[0x48, 0x83, 0x17, 0]),
            ("xbegin", &[0xc7, 0xf8, 0, 0, 0, 0]),
        ],
    );
}

#[test]
fn no_bytes_are_too_strange_to_decode() {
    for first in 0..=u8::MAX {
        for second in 0..=u8::MAX {
            one_access(&[first]);
            one_access(&[first, second]);
            one_access(&[0x66, 0x48, first, second]);
        }
    }
}

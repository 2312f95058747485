//! Where `unsafe` may stand. An `unsafe fn` may stand anywhere, since implementing a trait such as
//! `placement::Kernel` asks for it: its body can do nothing unsafe without a block.

use super::{Check, SourceTree, TidyFinding};

/// Places (a crate or a file) that may hold `unsafe`, each with its reason.
const INSIDE: [(&str, &str); 8] = [
    ("crates/sys/", "system calls"),
    ("crates/placement/", "memory mapped by hand and shared between threads"),
    ("crates/marker/src/say.rs", "instructions written as bytes"),
    ("crates/plugin/", "QEMU's C interface for plugins"),
    ("crates/capi/", "the C interface: pointers that its callers vouch for"),
    ("crates/bench/src/kv/foreign/", "C interfaces of key-value engines, loaded at run time"),
    ("crates/primitives/src/kernel/", "loops without bounds checks, and streaming stores"),
    ("crates/testkit/src/kernel/mod.rs", "a simulated kernel still maps real memory"),
];

pub(crate) struct UnsafeFence;

impl Check for UnsafeFence {
    fn name(&self) -> &'static str {
        "unsafe_fence"
    }

    fn run(&self, tree: &SourceTree) -> Vec<TidyFinding> {
        let outside = tree.rust_code().filter(|(file, _)| !is_inside(&file.path));
        outside
            .flat_map(|(file, code)| {
                let places = code.find("unsafe").into_iter().filter(|at| !is_fn(&code.bare, *at));
                places.map(|at| finding(&file.path, code.line(at))).collect::<Vec<_>>()
            })
            .collect()
    }
}

/// Whether the keyword at `at` makes a function unsafe.
fn is_fn(code: &str, at: usize) -> bool {
    code[at..].split_whitespace().nth(1) == Some("fn")
}

fn is_inside(path: &str) -> bool {
    INSIDE.iter().any(|(place, _)| path.starts_with(place))
}

fn finding(path: &str, line: usize) -> TidyFinding {
    TidyFinding {
        path: path.to_owned(),
        line: Some(line),
        what: "`unsafe` outside of its fence".into(),
        instead:
            "a safe function in sys or placement; or, where a library's contract demands it, a \
                  file of its own with a row in the table of this check"
                .into(),
        because: "a reader who looks for undefined behaviour has few files to read",
    }
}

//! Calls with a better replacement.

use super::{Check, File, SourceTree, TidyFinding};
use crate::tidy::source::rust_code::{RustCode, find_words};

pub(crate) struct BannedCalls;

/// Where a call is banned.
enum BanScope {
    /// In crates without a `main.rs`, outside of tests.
    Libraries,
    /// In test code.
    Tests,
    Everywhere,
}

struct Ban {
    call: &'static str,
    place: BanScope,
    /// Paths (their starts or ends) where the call belongs.
    except: &'static [&'static str],
    instead: &'static str,
    because: &'static str,
}

const OWN_OUTPUT: (&str, &str) = (
    "return the text, or write to a stream that the caller gives",
    "stdout is for data and belongs to the binary; a library that prints cannot be embedded",
);

const fn print(call: &'static str) -> Ban {
    let (instead, because) = OWN_OUTPUT;
    Ban { call, place: BanScope::Libraries, except: &["/build.rs"], instead, because }
}

const BANS: [Ban; 10] = [
    print("println!"),
    print("print!"),
    print("eprintln!"),
    print("eprint!"),
    Ban {
        call: "process::exit",
        place: BanScope::Everywhere,
        except: &["src/main.rs"],
        instead: "return an error or an ExitCode to main",
        because: "exit runs no destructor: spill files stay, the shell's history is lost",
    },
    Ban {
        call: "thread::sleep",
        place: BanScope::Tests,
        except: &[],
        instead: "join the thread, or wait on a channel or a condition that the code under test sets",
        because: "a sleep is too short on a busy machine and too long on every other",
    },
    Ban {
        call: "eprintln!(\"skipped",
        place: BanScope::Tests,
        except: &[],
        instead: "atoll_testkit::skip with what the test needs",
        because: "the harness hides what a passing test prints: tests that did not run look passed",
    },
    Ban {
        call: "Command::new(\"numactl\"",
        place: BanScope::Everywhere,
        // Where both have to say the same.
        except: &["crates/tools/tests/", "crates/formats/tests/"],
        instead: "placement's strategies, or sys for a call that is missing there",
        because: "numactl need not be installed, lacks -w on Debian, and cannot say what it achieved",
    },
    Ban {
        call: "libc::",
        place: BanScope::Everywhere,
        except: &["crates/sys/"],
        instead: "a function of sys with a typed error; add it there when it is missing",
        because: "raw calls in one crate can be audited, and their errors are distinguished once",
    },
    Ban {
        call: "available_parallelism",
        place: BanScope::Everywhere,
        except: &["crates/sys/", "crates/topology/", "crates/xtask/"],
        instead: "the cpus of a topology::Machine",
        because: "a Machine is bounded by what is allowed, says where the cpus are, and can be faked",
    },
];

impl Check for BannedCalls {
    fn name(&self) -> &'static str {
        "banned_calls"
    }

    fn run(&self, tree: &SourceTree) -> Vec<TidyFinding> {
        let mut findings = Vec::new();
        for (file, code) in tree.rust_code() {
            for ban in &BANS {
                findings.extend(find(tree, file, &code, ban));
            }
        }
        findings
    }
}

fn find(tree: &SourceTree, file: &File, code: &RustCode, ban: &Ban) -> Vec<TidyFinding> {
    let is_excepted = |place: &&str| file.path.starts_with(place) || file.path.ends_with(place);
    if ban.except.iter().any(is_excepted) {
        return Vec::new();
    }
    let applies = |at: usize| {
        let is_test = file.is_test() || code.is_test(at);
        match ban.place {
            BanScope::Libraries => !is_test && is_library(tree, &file.path),
            BanScope::Tests => is_test,
            BanScope::Everywhere => true,
        }
    };
    let view = if ban.call.contains('"') { &code.literal } else { &code.bare };
    let places = find_words(view, ban.call).into_iter().filter(|at| applies(*at));
    places
        .map(|at| TidyFinding {
            path: file.path.clone(),
            line: Some(code.line(at)),
            what: format!("`{}`", ban.call),
            instead: ban.instead.to_owned(),
            because: ban.because,
        })
        .collect()
}

fn is_library(tree: &SourceTree, path: &str) -> bool {
    let mut folders = path.split('/');
    let in_crates = folders.next() == Some("crates");
    let main = folders.next().map(|name| format!("crates/{name}/src/main.rs"));
    in_crates && main.is_some_and(|main| tree.file(&main).is_none())
}

//! Everything that a guest needs in one archive, which its kernel unpacks into memory.
//!
//! | File | Owns |
//! |---|---|
//! | `program` | the program, found by name, and the interpreters of scripts |
//! | `runtime` | the standard libraries of Python and Java, and which of several versions is meant |
//! | `libraries` | shared libraries |
//! | `tree` | files at the paths that they have here |
//! | `scripts`, `init.sh` | the guest's first process |
//! | `cpio` | the archive's format |
//!
//! The lab's own files are in `/atoll`; all others are where they are on this machine.

mod cpio;
mod libraries;
mod program;
mod runtime;
mod scripts;
#[cfg(test)]
mod tests;
mod tree;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufWriter, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use atoll_topology::Bytes;

use crate::{Installation, LabError, RunRequest};
use runtime::Runtime;
use tree::PackTree;

/// Archive and contents are in low memory at the same time for a while.
const BYTES_MAX: u64 = 1400 << 20;
const OWN: &str = "/atoll";
/// Programs that scripts look for by name, wherever they are here; first on the guest's `$PATH`.
const PROGRAMS: &str = "/atoll/programs";
/// Files of this machine that programs and libraries look for, if present.
const COMMON: [&str; 7] = [
    "/etc/ld.so.cache",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/localtime",
    "/etc/protocols",
    "/etc/services",
];
const HOSTS: &str = "127.0.0.1 localhost atoll-lab\n::1 localhost\n";
/// The command line tools without the SQL engine.
const AGENT: &str = "atoll-tools";

/// An archive and its warnings.
#[derive(Debug)]
pub(crate) struct Packed {
    /// Open, and without a name.
    pub(crate) archive: File,
    /// Bytes of the files in it.
    pub(crate) files: Bytes,
    pub(crate) notes: Vec<String>,
}

/// Packs what a request needs. `terminal` is the arguments of `stty` for the terminal of a shell.
pub(crate) fn pack(
    request: &RunRequest,
    installation: &Installation,
    terminal: Option<&str>,
) -> Result<Packed, LabError> {
    let mut tree = PackTree::default();
    add_own(request, installation, terminal, &mut tree)?;
    for path in COMMON.map(Path::new).into_iter().filter(|path| path.exists()) {
        tree.add(path)?;
    }
    tree.add_text(Path::new("/etc/hosts"), 0o644, HOSTS.into());
    tree.add(&request.directory)?;
    for path in &request.with {
        add_with(&request.directory.join(path), &mut tree)?;
    }
    add_command(request, &mut tree)?;
    add_shell(&mut tree);
    let bytes = tree.bytes();
    if bytes > BYTES_MAX {
        return Err(LabError::TooLarge { bytes, limit: BYTES_MAX });
    }
    let archive = unnamed_file()?;
    tree.write(BufWriter::with_capacity(1 << 20, &archive))?;
    Ok(Packed { archive, files: Bytes(bytes), notes: tree.into_notes() })
}

/// A file or directory with all that is in it. Python and Java come with their standard library: a program may start
/// them.
fn add_with(path: &Path, tree: &mut PackTree) -> Result<(), LabError> {
    match runtime::detect(path) {
        Some(Runtime { program, library, left_out }) => {
            tree.add_all_but(&library, left_out)?;
            tree.add_with_libraries(&program)?;
            tree.add_with_libraries(path).map(|_| ())
        }
        None => tree.add_all(path),
    }
}

/// A file that has no name and is gone when it is closed, in `$TMPDIR` or `/tmp`.
pub(crate) fn unnamed_file() -> Result<File, LabError> {
    tempfile::tempfile().map_err(LabError::file(env::temp_dir(), "making a temporary file"))
}

/// The settings of the guest's first process.
fn add_own(
    request: &RunRequest,
    installation: &Installation,
    terminal: Option<&str>,
    tree: &mut PackTree,
) -> Result<(), LabError> {
    let own = |name: &str| Path::new(OWN).join(name);
    tree.add_text(&own("busybox"), 0o755, read(installation.busybox()?)?);
    tree.add_text(&own("init"), 0o755, scripts::INIT.into());
    tree.add_text(&own("prepare"), 0o644, scripts::prepare(request));
    if let Some(input) = &request.stdin {
        tree.add_text(&own("stdin"), 0o644, read(input)?);
    }
    if let Some(words) = terminal {
        tree.add_text(&own("terminal"), 0o644, words.into());
    }
    if request.counting.is_some() {
        let agent = agent().map_err(LabError::file("/proc/self/exe", "finding this program"))?;
        tree.add_with_libraries(&agent)?;
        tree.add_new_link(&own("agent"), &agent);
    }
    Ok(())
}

/// The contents of a file, or of a pipe such as `/dev/stdin` until its end.
fn read(path: &Path) -> Result<Vec<u8>, LabError> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(LabError::file(path, "packing"))?;
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(LabError::file(path, "packing"))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(LabError::TooLarge { bytes: bytes.len() as u64, limit: BYTES_MAX });
    }
    Ok(bytes)
}

/// The small tools next to this program if present, otherwise `atoll`: both have the command that calibrates, which
/// `atoll-bench` lacks.
fn agent() -> std::io::Result<PathBuf> {
    let own = env::current_exe()?;
    let mut agents = [AGENT, "atoll"].into_iter().map(|name| own.with_file_name(name));
    Ok(agents.find(|agent| agent.is_file()).unwrap_or(own))
}

/// The program, with those of its arguments that name files.
fn add_command(request: &RunRequest, tree: &mut PackTree) -> Result<(), LabError> {
    let path = Path::new(OWN).join("command");
    let Some((name, arguments)) = request.command.split_first() else {
        let shell = [OsStr::new("/atoll/bin/sh"), OsStr::new("-l")];
        tree.add_text(&path, 0o644, scripts::command(request, &shell)?);
        return Ok(());
    };
    let program = program::find(name, &request.directory)?;
    let started = program::pack(&program, &request.directory, tree)?;
    for argument in arguments.iter().flat_map(|argument| values(argument)) {
        let file = request.directory.join(argument);
        // A name too long for a file is not a file.
        if file.is_file() && !is_kernels_own(&file) {
            tree.add_with_libraries(&file)?;
        }
    }
    // As given if it has a slash and is not a shim: programs look at their own name.
    let word = match started == program && name.as_bytes().contains(&b'/') {
        true => name.clone(),
        false => OsString::from(&started),
    };
    let words: Vec<&OsStr> = std::iter::once(word.as_os_str())
        .chain(arguments.iter().map(OsString::as_os_str))
        .collect();
    tree.add_text(&path, 0o644, scripts::command(request, &words)?);
    Ok(())
}

/// An argument, and the part after its equals sign.
fn values(argument: &OsStr) -> impl Iterator<Item = &OsStr> {
    let bytes = argument.as_bytes();
    let equals = bytes.iter().position(|&byte| byte == b'=');
    let value = equals.map(|at| OsStr::from_bytes(&bytes[at + 1..]));
    std::iter::once(argument).chain(value).filter(|word| !word.is_empty())
}

fn is_kernels_own(file: &Path) -> bool {
    ["/proc", "/sys", "/dev"].iter().any(|directory| file.starts_with(directory))
}

/// Something at `/bin/sh`, which `system` and scripts ask for: this machine's own if it has one.
fn add_shell(tree: &mut PackTree) {
    let shell = Path::new("/bin/sh");
    if shell.is_file() && tree.add_with_libraries(shell).is_ok() {
        return;
    }
    if !tree.contains(shell) {
        tree.add_new_link(shell, Path::new("/atoll/bin/sh"));
    }
}

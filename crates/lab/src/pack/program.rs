//! The program to run: found, with the interpreters of scripts.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::tree::PackTree;
use super::{PROGRAMS, runtime, scripts};
use crate::LabError;

/// Longest first line that Linux reads (`BINPRM_BUF_SIZE`).
const LINE_BYTES_MAX: u64 = 256;
/// Programs that are next to this one.
const PROGRAMS_OF_ATOLL: [&str; 3] = ["atoll", "atoll-bench", "atoll-tools"];
/// An interpreter may be a script; Linux goes on four times.
const SCRIPTS_MAX: usize = 5;

/// The path of a program. A name without a slash is this program where it is its name, and else is
/// looked for on `$PATH`.
pub(super) fn find(name: &OsStr, directory: &Path) -> Result<PathBuf, LabError> {
    let not_found = || LabError::NotFound { program: name.to_owned() };
    if name.as_bytes().contains(&b'/') {
        let path = directory.join(name);
        return if path.exists() { Ok(path) } else { Err(not_found()) };
    }
    let own = env::current_exe().ok().filter(|_| PROGRAMS_OF_ATOLL.iter().any(|own| name == *own));
    let own = own.map(|own| own.with_file_name(name)).filter(|path| is_runnable(path));
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = || {
        let mut places = env::split_paths(&path).map(|place| directory.join(place).join(name));
        places.find(|path| is_runnable(path))
    };
    own.or_else(on_path).ok_or_else(not_found)
}

fn is_runnable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Packs a program with its libraries, or a script with what runs it; the program that is to be started,
/// which is another one where this one is a shim.
pub(super) fn pack(
    program: &Path,
    directory: &Path,
    tree: &mut PackTree,
) -> Result<PathBuf, LabError> {
    let cannot = |reason: &str| LabError::CannotRun {
        program: program.as_os_str().to_owned(),
        reason: reason.to_owned(),
    };
    if !program.is_file() {
        return Err(cannot("not a regular file"));
    }
    if !is_runnable(program) {
        return Err(cannot("not executable (chmod +x)"));
    }
    let started = pack_one(program, tree)?;
    let mut next = started.clone();
    for _ in 0..SCRIPTS_MAX {
        let real = tree.add(&next)?;
        let Some(line) = first_line(&real) else { return Ok(started) };
        let Some((interpreter, argument)) = interpreter(&line) else { return Ok(started) };
        next = directory.join(&interpreter);
        if !next.is_file() {
            return Err(cannot(&format!(
                "its interpreter {} was not found",
                interpreter.display()
            )));
        }
        next = pack_one(&next, tree)?;
        if let Some(name) = argument.filter(|_| interpreter.ends_with("env")) {
            next = pack_one(&find(&name, directory)?, tree)?;
            tree.add_text(&Path::new(PROGRAMS).join(&name), 0o755, scripts::starts(&next)?);
        }
    }
    Err(cannot("interpreters that are scripts are nested too deeply"))
}

/// Packs a program with its libraries, shared ones and those of its language; the program itself.
fn pack_one(program: &Path, tree: &mut PackTree) -> Result<PathBuf, LabError> {
    let runtime = runtime::detect(program);
    let program = match &runtime {
        Some(runtime) => {
            tree.add_all_but(&runtime.library, runtime.left_out)?;
            runtime.program.as_path()
        }
        None => program,
    };
    let real = tree.add_with_libraries(program)?;
    match tree.missing_of(&real) {
        Some(library) => {
            Err(LabError::Library { program: real.clone(), library: library.to_owned() })
        }
        None => Ok(program.to_owned()),
    }
}

fn first_line(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(LINE_BYTES_MAX).read_to_end(&mut head).ok()?;
    head.split(|&byte| byte == b'\n').next().map(<[u8]>::to_vec)
}

/// The interpreter of a script's first line, and the program that `env` is to look for.
pub(super) fn interpreter(line: &[u8]) -> Option<(PathBuf, Option<OsString>)> {
    let rest = line.strip_prefix(b"#!")?;
    let mut words = rest.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
    let interpreter = PathBuf::from(OsStr::from_bytes(words.next()?));
    let is_program = |word: &&[u8]| !word.starts_with(b"-") && !word.contains(&b'=');
    let argument = words.find(is_program).map(|word| OsStr::from_bytes(word).to_owned());
    Some((interpreter, argument))
}

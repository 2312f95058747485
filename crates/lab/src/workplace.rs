//! A private directory for one run, which vanishes with it.
//!
//! A process that is killed cannot remove its directory; its name has the process id and the time at
//! which the process started, and the next run removes those whose process is gone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use atoll_sys::Root;
use tempfile::TempDir;

use crate::LabError;

const PREFIX: &str = "atoll-lab-";
/// A socket's path has at most 107 bytes (`sun_path`), of which the files in the directory take some.
const PATH_BYTES_MAX: usize = 96;

/// The directory of this run, in `parent`; leftovers of processes that are gone are removed first.
pub(crate) fn create(parent: &Path) -> Result<TempDir, LabError> {
    sweep(parent, &|pid| started(pid));
    let own = std::process::id();
    let prefix = format!("{PREFIX}{own}-{}-", started(own).unwrap_or(0));
    let directory = tempfile::Builder::new()
        .prefix(&prefix)
        .tempdir_in(parent)
        .map_err(LabError::file(parent, "making a temporary directory"))?;
    if directory.path().as_os_str().len() > PATH_BYTES_MAX {
        return Err(LabError::Unusable {
            what: directory.path().display().to_string(),
            reason: "path is too long for a socket; set TMPDIR to a shorter directory".into(),
        });
    }
    Ok(directory)
}

/// Removes what killed runs left. Best effort: what cannot be removed belongs to somebody else.
fn sweep(parent: &Path, started: &dyn Fn(u32) -> Option<u64>) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some((pid, start)) = name.to_str().and_then(owner) else { continue };
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory && started(pid) != Some(start) {
            let _: io::Result<()> = fs::remove_dir_all(entry.path());
        }
    }
}

/// Process id and start time out of a directory's name.
fn owner(name: &str) -> Option<(u32, u64)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// When a process started, in clock ticks since boot; none where there is no such process.
fn started(pid: u32) -> Option<u64> {
    let text = Root::live().read_text(&format!("proc/{pid}/stat")).ok()?;
    // The second field is a name in parentheses that may hold anything; the 22nd is the start.
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

/// Where such directories go: `$TMPDIR`, else `/tmp`.
pub(crate) fn parent() -> PathBuf {
    std::env::temp_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_run_left_is_removed_and_a_living_ones_stays() {
        let parent = tempfile::tempdir().unwrap();
        let living = create(parent.path()).unwrap();
        let names = ["atoll-lab-4000000-7-abc", "atoll-lab-notes", "other"];
        for name in names {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        let next = create(parent.path()).unwrap();
        assert!(living.path().is_dir() && next.path().is_dir());
        let stays: Vec<bool> = names.iter().map(|name| parent.path().join(name).is_dir()).collect();
        assert_eq!(stays, [false, true, true]);
    }

    #[test]
    fn a_process_id_that_another_process_has_now_does_not_keep_a_directory() {
        let parent = tempfile::tempdir().unwrap();
        let own = std::process::id();
        let stale = parent.path().join(format!("{PREFIX}{own}-1-abc"));
        fs::create_dir(&stale).unwrap();
        create(parent.path()).unwrap();
        assert!(!stale.exists());
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_refused_with_advice() {
        let parent = tempfile::tempdir().unwrap();
        let long = parent.path().join("x".repeat(100));
        fs::create_dir(&long).unwrap();
        assert!(create(&long).unwrap_err().to_string().contains("TMPDIR"));
    }
}

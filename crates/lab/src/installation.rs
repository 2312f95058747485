//! Requirements of the lab, and where they are on this machine.

use std::env;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use atoll_formats::store;

/// The emulator.
pub(crate) const QEMU: &str = "qemu-system-x86_64";
const PLUGIN: &str = "libatoll_plugin.so";
const ADVICE: &str = "run 'atoll lab setup', which says what it fetches and how large it is";

/// Something that the lab needs is not on this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MissingTool {
    /// The emulator.
    #[error("{QEMU} was not found on PATH; {ADVICE}")]
    Qemu,
    /// A kernel.
    #[error(
        "no Linux kernel to boot was found; {ADVICE}, or give one with --kernel or $ATOLL_KERNEL"
    )]
    Kernel,
    /// The kernel that was named.
    #[error("the kernel {} cannot be read; give another with --kernel or $ATOLL_KERNEL", .0.display())]
    KernelFile(PathBuf),
    /// A busybox without libraries.
    #[error("no statically linked busybox was found; {ADVICE}")]
    Busybox,
    /// The plugin.
    #[error(
        "{PLUGIN} was not found next to this program, in ../lib/atoll or through $ATOLL_PLUGIN; \
         build it (cargo build --release -p atoll-plugin), or use --count off"
    )]
    Plugin,
}

/// The parts found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installation {
    /// The emulator.
    pub qemu: Option<PathBuf>,
    /// The kernel.
    pub kernel: Option<PathBuf>,
    /// A kernel that was named and cannot be read.
    pub kernel_unreadable: Option<PathBuf>,
    /// A busybox without libraries.
    pub busybox: Option<PathBuf>,
    /// The plugin.
    pub plugin: Option<PathBuf>,
}

impl Installation {
    /// Looks for everything. The kernel is the one given, else `$ATOLL_KERNEL`, else the one that
    /// set-up fetched, else one of `/boot`.
    #[doc(alias = "ATOLL_KERNEL")]
    #[doc(alias = "ATOLL_PLUGIN")]
    pub fn find(kernel: Option<&Path>) -> Self {
        let named = kernel.map(Path::to_owned).or_else(|| variable("ATOLL_KERNEL"));
        let unreadable = named.clone().filter(|path| !is_readable(path));
        let kernel = match named {
            Some(path) => Some(path).filter(|path| is_readable(path)),
            None => fetched_kernel().or_else(|| newest_kernel(Path::new("/boot"))),
        };
        Self {
            qemu: on_path(QEMU),
            kernel,
            kernel_unreadable: unreadable,
            busybox: busybox(),
            plugin: plugin(),
        }
    }

    /// The emulator.
    pub fn qemu(&self) -> Result<&Path, MissingTool> {
        self.qemu.as_deref().ok_or(MissingTool::Qemu)
    }

    /// The kernel.
    pub fn kernel(&self) -> Result<&Path, MissingTool> {
        let missing = || match &self.kernel_unreadable {
            Some(path) => MissingTool::KernelFile(path.clone()),
            None => MissingTool::Kernel,
        };
        self.kernel.as_deref().ok_or_else(missing)
    }

    /// The busybox.
    pub fn busybox(&self) -> Result<&Path, MissingTool> {
        self.busybox.as_deref().ok_or(MissingTool::Busybox)
    }

    /// The plugin.
    pub fn plugin(&self) -> Result<&Path, MissingTool> {
        self.plugin.as_deref().ok_or(MissingTool::Plugin)
    }

    /// Version of the emulator, such as `7.2.22`.
    pub fn qemu_version(&self) -> Option<String> {
        let mut command = Command::new(self.qemu.as_ref()?);
        let output = command.arg("--version").stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (_, rest) = text.split_once("version ")?;
        Some(rest.split_whitespace().next()?.to_owned())
    }
}

/// Directory for fetched files: `lab` next to the machines that are kept
/// (`$ATOLL_DATA/lab`, `$XDG_DATA_HOME/atoll/lab`, `~/.local/share/atoll/lab`). It need not exist.
pub fn data_directory() -> Result<PathBuf, store::StoreError> {
    Ok(store::directory()?.with_file_name("lab"))
}

/// The program of that name on `$PATH`.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(name)).find(|path| path.is_file())
}

fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn is_readable(path: &Path) -> bool {
    path.is_file() && File::open(path).is_ok()
}

fn fetched_kernel() -> Option<PathBuf> {
    newest_kernel(&data_directory().ok()?.join("kernel/boot"))
}

/// The readable kernel whose name is last: of releases of one length the newest.
fn newest_kernel(directory: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(directory).ok()?.flatten();
    let is_kernel = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("vmlinuz-") && is_readable(path)
    };
    entries.map(|entry| entry.path()).filter(is_kernel).max()
}

fn busybox() -> Option<PathBuf> {
    let fetched = data_directory().ok().into_iter().flat_map(|lab| {
        ["busybox/bin/busybox", "busybox/usr/bin/busybox"].map(|name| lab.join(name))
    });
    on_path("busybox").into_iter().chain(fetched).find(|path| is_static(path))
}

/// Whether a program asks for no loader: a static ELF file has no such segment.
fn is_static(path: &Path) -> bool {
    interpreter_count(path) == Some(0)
}

/// Number of loader segments (`PT_INTERP`) of a 64-bit ELF file; None for other files.
fn interpreter_count(path: &Path) -> Option<usize> {
    const HEADERS_BYTES: usize = 4096;
    const LOADER: u32 = 3;
    let mut head = Vec::new();
    File::open(path).ok()?.take(HEADERS_BYTES as u64).read_to_end(&mut head).ok()?;
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let half =
        |at: usize| Some(usize::from(u16::from_le_bytes([*head.get(at)?, *head.get(at + 1)?])));
    let (size, count) = (half(54)?, half(56)?);
    let table = usize::try_from(u64::from_le_bytes(head.get(32..40)?.try_into().ok()?)).ok()?;
    let kind = |index: usize| {
        let start = table.checked_add(index.checked_mul(size)?)?;
        Some(u32::from_le_bytes(head.get(start..start.checked_add(4)?)?.try_into().ok()?))
    };
    (0..count)
        .map(kind)
        .collect::<Option<Vec<u32>>>()
        .map(|kinds| kinds.into_iter().filter(|&kind| kind == LOADER).count())
}

fn plugin() -> Option<PathBuf> {
    if let Some(path) = variable("ATOLL_PLUGIN") {
        return Some(path).filter(|path| is_readable(path));
    }
    let own = env::current_exe().ok()?;
    let folder = own.parent()?;
    // Test binaries are one directory below.
    let places = [folder.to_owned(), folder.join("../lib/atoll"), folder.join("..")];
    places.into_iter().map(|place| place.join(PLUGIN)).find(|path| is_readable(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_elf_file_is_not_a_static_program() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        for bytes in [&b""[..], b"\x7fELF", b"\x7fELF\x02\x01", b"#!/bin/sh\n", &[0xff; 80]] {
            std::fs::write(&file, bytes).unwrap();
            assert!(!is_static(&file));
        }
        let mut hostile = b"\x7fELF\x02\x01".to_vec();
        hostile.resize(64, 0xff);
        std::fs::write(&file, hostile).unwrap();
        assert!(!is_static(&file));
    }

    #[test]
    fn a_program_with_libraries_is_not_static() {
        assert_eq!(interpreter_count(&env::current_exe().unwrap()), Some(1));
    }

    #[test]
    fn a_missing_kernel_is_reported_by_its_name() {
        let found = Installation::find(Some(Path::new("/no/such/vmlinuz")));
        assert!(found.kernel().unwrap_err().to_string().contains("/no/such/vmlinuz"));
    }
}

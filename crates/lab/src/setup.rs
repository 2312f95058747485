//! Gets the parts of the lab: QEMU from the system's packages, a kernel and a busybox unpacked from
//! Debian packages into the user's own directory.
//!
//! [`parts`] lists present and missing parts; [`fetch`] gets a missing part. Installing QEMU
//! takes root; the rest takes only `apt-get download` and `dpkg`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Installation, data_directory};

const QEMU_PACKAGE: &str = "qemu-system-x86";
const KERNEL_PACKAGE: &str = "linux-image-cloud-amd64";
const BUSYBOX_PACKAGE: &str = "busybox-static";

/// Why a part cannot be got.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// No Debian tools here.
    #[error(
        "'{tool}' was not found: this is not Debian or Ubuntu; install QEMU with your system's \
         package manager \
         and give a kernel with --kernel or $ATOLL_KERNEL"
    )]
    NotDebian {
        /// The tool.
        tool: &'static str,
    },
    /// Only root may install packages.
    #[error("installing {package} requires root: {command}")]
    NotRoot {
        /// The package.
        package: &'static str,
        /// What root has to run.
        command: String,
    },
    /// The package index does not have it.
    #[error("package {package} was not found; run 'apt-get update' as root, then this again")]
    Unknown {
        /// The package.
        package: String,
    },
    /// A command failed.
    #[error("{command}: {reason}")]
    Failed {
        /// The command.
        command: String,
        /// Its output, or how it ended.
        reason: String,
    },
    /// There is no directory for fetched files.
    #[error(transparent)]
    Directory(#[from] atoll_formats::store::StoreError),
}

/// A part of the lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Its name.
    pub kind: RequirementKind,
    /// Where it is; None if it is missing.
    pub found: Option<PathBuf>,
    /// The Debian package that has it, and its size in bytes as downloaded where apt knows it; none
    /// for the plugin, which belongs to Atoll.
    pub package: Option<(String, Option<u64>)>,
}

/// The part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequirementKind {
    /// The emulator.
    Qemu,
    /// The guest's kernel.
    Kernel,
    /// The guest's tools.
    Busybox,
    /// The plugin, needed for counting only.
    Plugin,
}

impl RequirementKind {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Qemu => "QEMU",
            Self::Kernel => "kernel",
            Self::Busybox => "busybox",
            Self::Plugin => "plugin",
        }
    }
}

/// Every part, found or missing. Looks up packages only if something is missing.
pub fn parts(installation: &Installation) -> Vec<Requirement> {
    let part = |kind, found: &Option<PathBuf>, package: &str| {
        let package = (!package.is_empty() && found.is_none()).then(|| described(kind, package));
        Requirement { kind, found: found.clone(), package }
    };
    vec![
        part(RequirementKind::Qemu, &installation.qemu, QEMU_PACKAGE),
        part(RequirementKind::Kernel, &installation.kernel, KERNEL_PACKAGE),
        part(RequirementKind::Busybox, &installation.busybox, BUSYBOX_PACKAGE),
        part(RequirementKind::Plugin, &installation.plugin, ""),
    ]
}

/// A package with its size; for the kernel the package that the named one depends on.
fn described(kind: RequirementKind, package: &str) -> (String, Option<u64>) {
    let name = match kind {
        RequirementKind::Kernel => kernel_package().unwrap_or_else(|_| package.to_owned()),
        _ => package.to_owned(),
    };
    let size =
        show(&name).ok().and_then(|text| field(&text, "Size").and_then(|it| it.parse().ok()));
    (name, size)
}

/// Gets a missing part; the output of the commands goes to `log`.
pub fn fetch(kind: RequirementKind, log: &mut dyn Write) -> Result<(), FetchError> {
    match kind {
        RequirementKind::Qemu => install(log),
        RequirementKind::Kernel => unpack(&kernel_package()?, "kernel", log),
        RequirementKind::Busybox => unpack(BUSYBOX_PACKAGE, "busybox", log),
        RequirementKind::Plugin => Ok(()),
    }
}

/// The command that installs QEMU.
pub fn qemu_command() -> Vec<&'static str> {
    vec!["apt-get", "install", "--yes", "--no-install-recommends", QEMU_PACKAGE]
}

fn install(log: &mut dyn Write) -> Result<(), FetchError> {
    let words = qemu_command();
    if !is_root() {
        let command = words.join(" ");
        return Err(FetchError::NotRoot { package: QEMU_PACKAGE, command });
    }
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env("DEBIAN_FRONTEND", "noninteractive");
    run(&mut command, "apt-get", log).map(drop)
}

/// Downloads a package and unpacks it into a directory of the lab, in the place of an older one.
fn unpack(package: &str, name: &str, log: &mut dyn Write) -> Result<(), FetchError> {
    let lab = data_directory()?;
    let (place, new) = (lab.join(name), lab.join(format!("{name}.new")));
    let failed = |path: &Path| {
        let command = format!("writing {}", path.display());
        move |error: std::io::Error| FetchError::Failed { command, reason: error.to_string() }
    };
    if new.exists() {
        fs::remove_dir_all(&new).map_err(failed(&new))?;
    }
    fs::create_dir_all(&new).map_err(failed(&new))?;
    run(Command::new("apt-get").args(["download", package]).current_dir(&new), "apt-get", log)?;
    let listed = fs::read_dir(&new).map_err(failed(&new))?.flatten().map(|entry| entry.path());
    let files: Vec<PathBuf> =
        listed.filter(|path| path.extension().is_some_and(|suffix| suffix == "deb")).collect();
    for file in &files {
        run(Command::new("dpkg").arg("-x").arg(file).arg(&new), "dpkg", log)?;
        fs::remove_file(file).map_err(failed(file))?;
    }
    if place.exists() {
        fs::remove_dir_all(&place).map_err(failed(&place))?;
    }
    fs::rename(&new, &place).map_err(failed(&place))
}

/// The package that the newest cloud kernel's name depends on.
fn kernel_package() -> Result<String, FetchError> {
    let text = show(KERNEL_PACKAGE)?;
    let unknown = || FetchError::Unknown { package: KERNEL_PACKAGE.to_owned() };
    first_dependency(&text).ok_or_else(unknown)
}

/// The first package that a package's description depends on.
fn first_dependency(text: &str) -> Option<String> {
    let depends = field(text, "Depends")?;
    let name = depends.split([',', '|', ' ', '(']).next()?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

/// What apt knows of the newest version of a package.
fn show(package: &str) -> Result<String, FetchError> {
    let mut command = Command::new("apt-cache");
    command.args(["show", "--no-all-versions", package]).env("LC_ALL", "C");
    run(&mut command, "apt-cache", &mut std::io::sink()).map_err(|error| match error {
        FetchError::Failed { .. } => FetchError::Unknown { package: package.to_owned() },
        other => other,
    })
}

/// A field of a package's description.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let value = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':');
    text.lines().find_map(value).map(str::trim)
}

/// Runs a command and returns its output.
fn run(
    command: &mut Command,
    tool: &'static str,
    log: &mut dyn Write,
) -> Result<String, FetchError> {
    let words: Vec<String> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let line = words.join(" ");
    // A write error is ignored: the log is for people.
    let _ = writeln!(log, "+ {line}");
    let output = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => FetchError::NotDebian { tool },
        _ => FetchError::Failed { command: line.clone(), reason: error.to_string() },
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let last: Vec<&str> = said.lines().rev().take(4).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    let reason = if last.is_empty() { output.status.to_string() } else { last.join("; ") };
    Err(FetchError::Failed { command: line, reason })
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: &str = "Package: linux-image-cloud-amd64\nVersion: 6.1.192-2\nInstalled-Size: 13\n\
                         Depends: linux-image-6.1.0-56-cloud-amd64 (= 6.1.192-2), other\nSize: 1504\n";

    #[test]
    fn a_description_has_its_size_and_dependencies() {
        assert_eq!(field(SHOWN, "Size"), Some("1504"));
        assert_eq!(field(SHOWN, "Section"), None);
        let package = first_dependency(SHOWN);
        assert_eq!(package.as_deref(), Some("linux-image-6.1.0-56-cloud-amd64"));
        for text in ["", "Depends:", "Depends: ,", "Depends"] {
            assert_eq!(first_dependency(text), None, "{text}");
        }
    }

    #[test]
    fn a_missing_tool_and_a_failing_tool_are_distinguished() {
        let mut log = Vec::new();
        let missing = run(&mut Command::new("/no/such/tool"), "tool", &mut log).unwrap_err();
        assert!(matches!(missing, FetchError::NotDebian { .. }));
        let mut failing = Command::new("sh");
        let failed = run(failing.args(["-c", "echo no >&2; exit 3"]), "sh", &mut log).unwrap_err();
        assert!(failed.to_string().ends_with(": no"), "{failed}");
        assert!(String::from_utf8(log).unwrap().starts_with("+ /no/such/tool\n"));
    }
}

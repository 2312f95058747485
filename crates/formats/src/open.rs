//! Opens a machine by the name of a shipped one, or from a file of any known format.

use std::fs::File;
use std::io::{self, Read};

use atoll_topology::nearest_name;

use crate::{FormatError, TEXT_MAX, numactl, toml, xml};
use atoll_topology::Knowledge;

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../machines/", $name, ".toml")))),*]
    };
}

const SHIPPED: &[(&str, &str)] = shipped![
    "cxl-2",
    "epyc-2-nps1",
    "epyc-2-nps4",
    "intel-2",
    "intel-4-square",
    "intel-8",
    "istanbul-2",
    "nehalem-ex-4",
    "opteron-8387-4",
    "santa-rosa-2",
    "sapphire-rapids-2-snc4",
    "shanghai-4",
    "symas-8",
    "westmere-ex-4",
];

/// Why a machine could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineOpenError {
    /// Neither a shipped machine nor a file.
    #[error(
        "unknown machine '{name}'{}; expected a file or one of {}",
        near.map(|near| format!(", did you mean '{near}'?")).unwrap_or_default(),
        names().join(", ")
    )]
    Unknown {
        /// The name.
        name: String,
        /// The shipped machine that was probably meant.
        near: Option<&'static str>,
    },
    /// The file cannot be read.
    #[error("cannot read machine file '{file}': {source}; give a readable file or one of {}", names().join(", "))]
    Read {
        /// The file.
        file: String,
        /// The system's error.
        source: io::Error,
    },
    /// The file exceeds the size limit.
    #[error("machine file '{file}' is longer than {TEXT_MAX} bytes; give a smaller one")]
    TooLong {
        /// The file.
        file: String,
    },
    /// The file does not follow its format.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// The machines that ship with Atoll: name and TOML, ordered by name.
pub fn shipped() -> &'static [(&'static str, &'static str)] {
    SHIPPED
}

fn names() -> Vec<&'static str> {
    SHIPPED.iter().map(|(name, _)| *name).collect()
}

/// Opens a shipped machine by its name, or else a file of at most 16 MiB in TOML, hwloc XML or the format of
/// `numactl -H`. Write `./name` for a file that has the name of a shipped machine.
pub fn open(name: &str) -> Result<Knowledge, MachineOpenError> {
    if let Some((name, text)) = SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
        return Ok(toml::parse(text, name)?);
    }
    Ok(parse(&read(name)?, name)?)
}

/// The text of a machine file. It is read once from start to end, so that a pipe such as bash's `<(command)` works
/// too.
pub fn read(name: &str) -> Result<String, MachineOpenError> {
    match File::open(name) {
        Ok(file) => read_from(file, name),
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_word(name) => {
            let near = nearest_name(name, SHIPPED.iter().map(|(shipped, _)| *shipped));
            Err(MachineOpenError::Unknown { name: name.to_owned(), near })
        }
        Err(source) => Err(MachineOpenError::Read { file: name.to_owned(), source }),
    }
}

/// The text of an open machine file; `file` is its name in messages.
pub fn read_from(reader: impl Read, file: &str) -> Result<String, MachineOpenError> {
    let mut bytes = Vec::new();
    reader
        .take(TEXT_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| MachineOpenError::Read { file: file.to_owned(), source })?;
    match bytes.len() > TEXT_MAX {
        true => Err(MachineOpenError::TooLong { file: file.to_owned() }),
        false => Ok(text(bytes, file)?),
    }
}

/// Parses a machine in the format of the text: hwloc XML begins with `<`, the output of `numactl -H` with
/// `available:` or a message about missing NUMA; everything else is TOML. The extensions `.xml` and `.toml` take
/// precedence over the content.
pub fn parse(text: &str, file: &str) -> Result<Knowledge, FormatError> {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    let suffix = |suffix: &str| file.to_ascii_lowercase().ends_with(suffix);
    let printed = ["available:", "No NUMA", "numactl:", "node "];
    if let Some(found) = not_read(start) {
        let expected = "a machine in TOML, hwloc XML, the words of 'numactl -H' or a dump, as \
                        'topo -o machine.toml' writes one";
        let (found, expected) = (found.to_owned(), expected.to_owned());
        return Err(FormatError { file: file.to_owned(), line: None, found, expected });
    }
    if suffix(".toml") {
        toml::parse(text, file)
    } else if suffix(".xml") || start.starts_with('<') {
        xml::parse(text, file)
    } else if printed.iter().any(|words| start.starts_with(words)) {
        numactl::parse(text, file)
    } else {
        toml::parse(text, file)
    }
}

/// Describes a text that is not a machine file, such as other output of `topo`.
fn not_read(start: &str) -> Option<&'static str> {
    match start {
        "" => Some("an empty file"),
        _ if start.starts_with('{') => Some("JSON, which is written for programs and not read"),
        _ if start.contains("<svg") => Some("a picture"),
        _ if start.starts_with("Machine ") => Some("a tree or boxes, which are drawn for people"),
        _ => None,
    }
}

/// Whether it looks like a machine's name rather than a path.
fn is_word(name: &str) -> bool {
    !name.contains(['/', '.'])
}

fn text(bytes: Vec<u8>, file: &str) -> Result<String, FormatError> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes()[..valid].iter().filter(|&&byte| byte == b'\n').count();
        FormatError {
            file: file.to_owned(),
            line: Some(before + 1),
            found: "bytes that are not UTF-8".to_owned(),
            expected: "a text in UTF-8".to_owned(),
        }
    })
}

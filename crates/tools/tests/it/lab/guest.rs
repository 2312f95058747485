//! Booting a guest and reading what its script prints.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use atoll_testkit::{Need, guests, skip};
use serde_json::Value;

/// One guest at a time: each keeps all cpus busy.
pub(crate) static TURN: Mutex<()> = Mutex::new(());

/// Where the scripts are.
pub(super) fn scripts() -> PathBuf {
    let crate_root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets the crate's directory");
    PathBuf::from(crate_root).join("tests/lab")
}

/// `atoll-tools lab` with the user's data directory, where the kernel image is.
pub(super) fn lab(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll-tools"));
    command.arg("lab").args(arguments).stdin(Stdio::null());
    command
}

/// Why no guest can be booted here; None if one can.
pub(super) fn obstacle() -> Option<String> {
    let output = lab(&["setup", "--dry-run"]).output().expect("the binary starts");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then_some(words)
}

/// Output of a script: its lines by their first word, the rest split at blanks into at most
/// `fields` pieces.
pub(super) struct Printed(String);

impl Printed {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    pub(super) fn lines(&self, word: &str, fields: usize) -> Vec<Vec<&str>> {
        let lines = self.0.lines().filter_map(|line| line.split_once(' '));
        let of_word = lines.filter(|(first, _)| *first == word);
        of_word.map(|(_, rest)| rest.splitn(fields, ' ').collect()).collect()
    }

    /// The only line with that word, as a JSON document.
    pub(super) fn json(&self, word: &str) -> Value {
        let lines = self.lines(word, 1);
        assert_eq!(lines.len(), 1, "lines '{word}' in:\n{}", self.0);
        serde_json::from_str(lines[0][0]).expect("a JSON document")
    }
}

/// Boots a machine that ships, has this program write one JSON document there while its regions are
/// counted (`count` is `region` or `within`), and returns the document and the record; reports a skip and returns None if nothing can be
/// counted.
pub(super) fn counted(
    machine: &str,
    count: &str,
    flags: &[&str],
    command: &[&str],
) -> Option<(Value, Value)> {
    let plugin = Path::new(env!("CARGO_BIN_EXE_atoll-tools")).with_file_name("libatoll_plugin.so");
    let missing = (!plugin.is_file()).then(|| format!("{} is not there", plugin.display()));
    if let Some(obstacle) = obstacle().or(missing) {
        skip(Need::Lab, obstacle);
        return None;
    }
    let agent = env!("CARGO_BIN_EXE_atoll-tools");
    let home = tempfile::tempdir().expect("a temporary directory");
    let record = home.path().join("record.json").display().to_string();
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let output = guests::boot(|| {
        lab(&["run", "--machine", machine, "--count", count, "--timeout", "300s"])
            .args(flags)
            .args(["--report", &record, "--", agent])
            .args(command)
            .arg("--json")
            .output()
            .expect("the binary starts")
    });
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{err}", output.status);
    let document = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let record = std::fs::read_to_string(record).expect("a record");
    Some((document, serde_json::from_str(&record).expect("a JSON document")))
}

/// A machine and the scripts that run there one after the other: it is booted once, for all tests that
/// ask for it.
pub(super) struct Guest {
    /// A file of `tests/lab` or a machine that ships.
    machine: &'static str,
    flags: &'static [&'static str],
    scripts: &'static [&'static str],
    run: OnceLock<RunDescription>,
}

/// How a guest's run went.
enum RunDescription {
    /// The lab is not set up, and why.
    Obstacle(String),
    Failed(String),
    Done(Printed),
}

/// A fully connected machine of four nodes.
pub(super) static FOUR_NODES: Guest = Guest {
    machine: "westmere-ex-4",
    flags: &["--cpus", "2", "--balancing", "off"],
    // The last leaves its shell in a cpuset.
    scripts: &["strategies.sh", "balancing.sh", "cpuset.sh"],
    run: OnceLock::new(),
};

/// Eight nodes with the published distances.
pub(super) static EIGHT_NODES: Guest = Guest {
    machine: "symas-8",
    flags: &["--cpus", "1", "--balancing", "off"],
    scripts: &["strategies.sh", "topo.sh"],
    run: OnceLock::new(),
};

/// Nodes of different sizes, one of them of memory only.
pub(super) static UNEVEN: Guest = Guest {
    machine: "uneven.toml",
    flags: &["--balancing", "off"],
    scripts: &["strategies.sh"],
    run: OnceLock::new(),
};

impl Guest {
    /// Output of its scripts; reports a skip and returns None if no guest can be booted.
    pub(super) fn printed(&self) -> Option<&Printed> {
        match self
            .run
            .get_or_init(|| obstacle().map_or_else(|| self.boot(), RunDescription::Obstacle))
        {
            RunDescription::Done(printed) => Some(printed),
            RunDescription::Failed(error) => panic!("{error}"),
            RunDescription::Obstacle(obstacle) => {
                skip(Need::Lab, obstacle);
                None
            }
        }
    }

    fn boot(&self) -> RunDescription {
        let scripts = scripts();
        let file = scripts.join(self.machine);
        let machine =
            if file.exists() { file.display().to_string() } else { self.machine.to_owned() };
        let scripts = scripts.display().to_string();
        let agent = env!("CARGO_BIN_EXE_atoll-tools");
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let output = guests::boot(|| {
            lab(&["run", "--machine", &machine, "--count", "off", "--timeout", "300s"])
                .args(self.flags)
                .args(["--with", &scripts, "--with", agent])
                .args(["--env", &format!("LAB={scripts}"), "--env", &format!("AGENT={agent}")])
                .args(["--", "sh", &format!("{scripts}/all.sh")])
                .args(self.scripts)
                .output()
                .expect("the binary starts")
        });
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        match output.status.success() {
            true => RunDescription::Done(Printed(out.into_owned())),
            false => RunDescription::Failed(format!("{}\n{out}\n{err}", output.status)),
        }
    }
}

/// `0=2048,1=3` by node.
pub(super) fn by_node(text: &str) -> BTreeMap<u32, u64> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(node, count)| (node.parse().unwrap(), count.parse().unwrap())).collect()
}

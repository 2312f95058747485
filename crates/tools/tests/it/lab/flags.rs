//! Random flags of numactl, under numactl and under `run`, on a machine of uneven nodes: the kernel holds the
//! same cpus and the same policy for the program, which ends with the same code; or neither starts it.
//!
//! One combination is left out, as it means something else here: numactl lets the last of `-N` and `-C` win,
//! `run` takes the cpus that both allow.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::PoisonError;

use atoll_sys::SplitMix64;
use atoll_testkit::{Need, guests, skip};

use super::guest::{TURN, lab, obstacle, scripts};

const SEED: u64 = 13;
/// As many as run in a minute on a busy host.
const SETS: usize = 30;

/// Draws flags.
struct FlagDraw(SplitMix64);

impl FlagDraw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn is_one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }

    /// A flag and its value, in one of the ways to write them.
    fn spelled(&mut self, short: &str, long: &str, value: &str) -> String {
        match self.below(4) {
            0 => format!("-{short}{value}"),
            1 => format!("-{short} {value}"),
            2 => format!("--{long}={value}"),
            _ => format!("--{long} {value}"),
        }
    }

    /// Nodes 0 to 3 exist, 3 without cpus.
    fn nodes(&mut self) -> &'static str {
        let some = ["0", "1", "2", "0-1", "1-2", "0,2", "0-2", "all", "+0", "+1", "+0-1", "!1"];
        match self.below(8) {
            0 => self.one(&["3", "0-3", "2,3", "!0", "!3", "+3", "all"]),
            1 => self.one(&["4", "0-9", "+4", "0,17"]),
            _ => self.one(&some),
        }
    }

    fn cpus(&mut self) -> &'static str {
        match self.below(8) {
            0 => self.one(&["9", "0-63", "+12"]),
            _ => self.one(&["0", "3", "0-2", "1,4", "2-5", "all", "+0", "+1-2", "!0", "!1-3"]),
        }
    }

    fn memory(&mut self, names_nodes: bool) -> String {
        let nodes = match names_nodes && self.is_one_in(6) {
            true => "same",
            false => self.nodes(),
        };
        let node = self.one(&["0", "1", "2", "3", "+1", "5"]);
        match self.below(5) {
            0 | 1 => self.spelled("m", "membind", nodes),
            2 => self.spelled("i", "interleave", nodes),
            3 => self.spelled("p", "preferred", node),
            _ => self.one(&["-l", "--localalloc"]).to_owned(),
        }
    }

    fn flags(&mut self) -> String {
        let mut words = Vec::new();
        let names_nodes = self.below(3) > 0;
        if names_nodes {
            let nodes = self.nodes();
            words.push(self.spelled("N", "cpunodebind", nodes));
        } else if self.below(3) > 0 {
            let cpus = self.cpus();
            words.push(self.spelled("C", "physcpubind", cpus));
        }
        if words.is_empty() || self.below(4) > 0 {
            words.push(self.memory(names_nodes));
        }
        if self.is_one_in(20) {
            words.push(self.memory(false));
        }
        if self.is_one_in(10) {
            words.insert(0, self.one(&["-a", "--all"]).to_owned());
        }
        if self.is_one_in(2) {
            words.push("--".to_owned());
        }
        words.join(" ")
    }
}

/// The outcome of a tool for a line: exit code and output of the program.
type Ended = (String, String);

/// Runs all lines in a guest; by line and tool.
fn compared(lines: &[String]) -> BTreeMap<(usize, String), Ended> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("flags");
    std::fs::write(&file, lines.join("\n") + "\n").expect("a file");
    let scripts = scripts();
    let machine = scripts.join("uneven.toml").display().to_string();
    let (scripts, file) = (scripts.display().to_string(), file.display().to_string());
    let agent = env!("CARGO_BIN_EXE_atoll-tools");
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let output = guests::boot(|| {
        lab(&["run", "--machine", &machine, "--count", "off", "--timeout", "300s"])
            .args(["--balancing", "off", "--with", &scripts, "--with", agent])
            .args(["--with", &numactl().expect("found before").display().to_string()])
            .args(["--env", &format!("LAB={scripts}"), "--env", &format!("AGENT={agent}")])
            .args(["--", "sh", &format!("{scripts}/flags.sh"), &file])
            .output()
            .expect("the binary starts")
    });
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{out}\n{}", String::from_utf8_lossy(&output.stderr));
    let parts = out.lines().filter_map(|line| {
        let mut words = line.strip_prefix("flags ")?.splitn(4, ' ').map(str::to_owned);
        let key = (words.next()?.parse().ok()?, words.next()?);
        let code = words.next()?;
        // numactl reports unknown options on its standard output.
        let shown = words.next().filter(|shown| shown.starts_with("cpus="));
        Some((key, (code, shown.unwrap_or_default())))
    });
    parts.collect()
}

/// numactl on `$PATH`.
fn numactl() -> Option<std::path::PathBuf> {
    let output = Command::new("sh").args(["-c", "command -v numactl"]).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    Some(Path::new(path.trim()).to_owned()).filter(|path| path.is_file())
}

#[test]
fn random_flags_mean_to_run_what_they_mean_to_numactl() {
    if let Some(obstacle) = obstacle() {
        return skip(Need::Lab, obstacle);
    }
    if numactl().is_none() {
        return skip(Need::Numactl, "numactl is not on PATH");
    }
    let seed = std::env::var("ATOLL_FLAGS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(SEED);
    let mut draw = FlagDraw(SplitMix64::new(seed));
    let lines: Vec<String> = (0..SETS).map(|_| draw.flags()).collect();
    let ended = compared(&lines);
    let mut differences = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let of = |tool: &str| &ended[&(number, tool.to_owned())];
        let (theirs, ours) = (of("numactl"), of("run"));
        let is_same = match theirs.1.is_empty() {
            // Refused: the codes differ, as ours show why.
            true => ours.1.is_empty() && theirs.0 != "0" && ours.0 != "0",
            false => ours == theirs,
        };
        if !is_same {
            differences.push(format!("{line}: numactl {theirs:?}, run {ours:?}"));
        }
    }
    let started = ended.values().filter(|(_, shown)| !shown.is_empty()).count();
    assert!(started > SETS, "most flags start the program, {started} of {} did", 2 * SETS);
    assert!(differences.is_empty(), "seed {seed}:\n{}", differences.join("\n"));
}

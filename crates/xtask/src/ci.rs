//! `cargo xtask ci`: the stages of `make test`, the same on a laptop and on a server.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use crate::skips::{self, SkipFile};
use crate::{cargo, loom, one_build, portable, target_directory, test_run, tidy};

/// The work of a stage.
enum StageWork {
    /// `cargo` with these arguments, from the root of the repository.
    Cargo(&'static [&'static str]),
    /// The same, through a cargo subcommand that need not be installed.
    OptionalCargo(&'static [&'static str]),
    /// The rules of the house, in this process.
    Tidy,
    /// Whether builds and tests share their dependencies.
    OneBuild,
    /// The primitives' tests again, with the loops of processors without AVX2.
    Portable,
    /// Concurrent pieces in every order of their threads.
    Loom,
    /// The kernel image that the lab's tests need.
    LabSetup,
    /// All tests, with those that are skipped counted.
    Tests,
}

struct Stage {
    name: &'static str,
    work: StageWork,
}

/// Cheap stages first, so that a slip shows in seconds.
const STAGES: [Stage; 10] = [
    Stage { name: "format", work: StageWork::Cargo(&["fmt", "--all", "--check"]) },
    Stage { name: "tidy", work: StageWork::Tidy },
    Stage { name: "one build", work: StageWork::OneBuild },
    Stage {
        name: "licences",
        work: StageWork::OptionalCargo(&["deny", "check", "licenses", "bans", "sources"]),
    },
    Stage { name: "loom", work: StageWork::Loom },
    Stage {
        name: "clippy",
        work: StageWork::Cargo(&[
            "clippy",
            "--release",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]),
    },
    // The lab's tests load the plugin, which no test links: it has to be there before they run.
    Stage { name: "build", work: StageWork::Cargo(&["build", "--release", "--workspace"]) },
    Stage { name: "lab", work: StageWork::LabSetup },
    Stage { name: "tests", work: StageWork::Tests },
    Stage { name: "portable kernels", work: StageWork::Portable },
];

/// How a stage that did not fail ended.
enum StageOutcome {
    Passed,
    /// Passed, with this note for the summary.
    Noted(String),
    /// Not run, and why.
    Skipped(String),
}

/// Runs every stage, telling the name and the time of each; stops at the first that fails. Tests may
/// be skipped for want of what `may_skip` names.
///
/// # Errors
/// The stage that failed.
pub fn run(root: &Path, may_skip: &[String]) -> Result<()> {
    let start = Instant::now();
    let mut summary = Vec::new();
    let mut times = StageTimes::open(&target_directory(root))?;
    for (number, stage) in STAGES.iter().enumerate() {
        announce(&format!("[{}/{}] {}", number + 1, STAGES.len(), describe(stage)))?;
        let stage_start = Instant::now();
        let outcome = perform(&stage.work, root, may_skip);
        times.keep(stage.name, stage_start.elapsed(), outcome.is_ok())?;
        let outcome = outcome
            .with_context(|| format!("stage '{}' failed; later stages did not run", stage.name))?;
        let time = seconds(stage_start.elapsed());
        summary.push(match outcome {
            StageOutcome::Passed => {
                announce(&format!("[{}/{}] passed in {time}", number + 1, STAGES.len()))?;
                format!("{} {time}", stage.name)
            }
            StageOutcome::Noted(note) => {
                announce(&format!("[{}/{}] passed in {time}, {note}", number + 1, STAGES.len()))?;
                format!("{} {time} ({note})", stage.name)
            }
            StageOutcome::Skipped(reason) => {
                announce(&format!("[{}/{}] skipped: {reason}", number + 1, STAGES.len()))?;
                format!("{} skipped", stage.name)
            }
        });
    }
    announce(&format!("all passed in {}: {}", seconds(start.elapsed()), summary.join(", ")))
}

/// The file that keeps the times of all runs: seconds since 1970, the stage, its seconds and how it ended, between
/// tabs.
struct StageTimes(File);

impl StageTimes {
    fn open(directory: &Path) -> Result<Self> {
        let path = directory.join("ci-times.tsv");
        std::fs::create_dir_all(directory)?;
        let file = File::options().create(true).append(true).open(&path);
        Ok(Self(file.with_context(|| format!("cannot write {}", path.display()))?))
    }

    fn keep(&mut self, stage: &str, time: Duration, passed: bool) -> Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let outcome = if passed { "passed" } else { "failed" };
        writeln!(self.0, "{now}\t{stage}\t{:.1}\t{outcome}", time.as_secs_f64())?;
        Ok(())
    }
}

/// One line to stdout, at once: what the stages print follows on the same stream.
fn announce(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "ci: {line}")?;
    Ok(out.flush()?)
}

fn describe(stage: &Stage) -> String {
    match stage.work {
        StageWork::Cargo(arguments) | StageWork::OptionalCargo(arguments) => {
            format!("{}: cargo {}", stage.name, arguments.join(" "))
        }
        StageWork::Tests => format!("{}: cargo {}", stage.name, test_run::ARGUMENTS.join(" ")),
        StageWork::Tidy => format!("{}: cargo xtask tidy", stage.name),
        StageWork::Portable => {
            format!("{}: tests of the primitives with ATOLL_KERNELS=portable", stage.name)
        }
        StageWork::Loom => format!("{}: cargo xtask loom", stage.name),
        StageWork::LabSetup => format!("{}: atoll-tools lab setup", stage.name),
        StageWork::OneBuild => format!("{}: features of builds and tests agree", stage.name),
    }
}

fn perform(work: &StageWork, root: &Path, may_skip: &[String]) -> Result<StageOutcome> {
    match work {
        StageWork::Cargo(arguments) => run_cargo(arguments, root).map(|()| StageOutcome::Passed),
        StageWork::OptionalCargo(arguments) if is_installed(arguments[0]) => {
            run_cargo(arguments, root).map(|()| StageOutcome::Passed)
        }
        StageWork::OptionalCargo(arguments) => Ok(StageOutcome::Skipped(format!(
            "cargo-{0} is not installed (cargo install cargo-{0} --locked)",
            arguments[0]
        ))),
        StageWork::Tidy => {
            let report = tidy::run(root)?;
            println!("{report}");
            if report.is_clean() { Ok(StageOutcome::Passed) } else { bail!("the tree is not tidy") }
        }
        StageWork::OneBuild => one_build::check(root).map(|()| StageOutcome::Passed),
        StageWork::Portable => {
            portable::run(root, &test_run::ARGUMENTS).map(|()| StageOutcome::Passed)
        }
        StageWork::Loom => loom::run(root).map(|()| StageOutcome::Passed),
        StageWork::LabSetup => set_up_lab(root),
        StageWork::Tests => run_tests(root, may_skip),
    }
}

/// Runs all tests; a failure too when one was skipped that should have run.
fn run_tests(root: &Path, may_skip: &[String]) -> Result<StageOutcome> {
    let file = SkipFile::create(&target_directory(root))?;
    let flaky = test_run::run(root, (skips::VARIABLE, file.path()))?;
    let skips = file.read()?;
    if !skips.is_empty() {
        announce(&skips.to_string())?;
    }
    skips.check(may_skip)?;
    let mut note = format!("{} skipped", skips.len());
    if !flaky.is_empty() {
        note += &format!("; FLAKY, passed only when run again: {}", flaky.join(", "));
    }
    Ok(StageOutcome::Noted(note))
}

/// Fetches what is missing for the lab. If that fails, its tests are skipped and say so.
fn set_up_lab(root: &Path) -> Result<StageOutcome> {
    let tools = target_directory(root).join("release/atoll-tools");
    let status = Command::new(&tools)
        .args(["lab", "setup"])
        .status()
        .with_context(|| format!("{} cannot be started", tools.display()))?;
    Ok(if status.success() {
        StageOutcome::Passed
    } else {
        StageOutcome::Skipped("the lab cannot be set up here; its tests will be skipped".to_owned())
    })
}

fn is_installed(subcommand: &str) -> bool {
    cargo()
        .args([subcommand, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn run_cargo(arguments: &[&str], root: &Path) -> Result<()> {
    let status = cargo()
        .args(arguments)
        .current_dir(root)
        .status()
        .with_context(|| format!("cargo {} cannot be started", arguments[0]))?;
    if status.success() { Ok(()) } else { bail!("cargo {}: {status}", arguments.join(" ")) }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

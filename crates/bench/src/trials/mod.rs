//! Runs of many cases that take long: each result is kept at once, a signal ends the run cleanly, and a later run
//! goes on with what is missing.
//!
//! | File | Owns |
//! |---|---|
//! | `results` | the directory of results: the plan, and a file for each case |
//! | `rounds` | case after case, group by group; what a benchmark of many cases implements |
//! | `samples` | samples of subjects that are measured in turn |
//! | `stop` | the signals that end a run, and the process that ends with it |
//! | `progress` | how long is left; free memory and disk |
//! | `placement` | a strategy that a process applies to itself, and its reading back |
//! | `server_looks` | where a server of several processes is while it works |
//! | `report`, `verdict` | how a run ends; what it says to a published statement |
//! | `flags` | `--results` and `--resume`, and values that are named twice |

mod flags;
pub(crate) mod placement;
pub(crate) mod progress;
mod report;
mod results;
mod rounds;
mod samples;
mod server_looks;
mod stop;
mod verdict;

pub(crate) use flags::{ResultArgs, stopped, unique};
pub(crate) use placement::PlacementSeen;
pub(crate) use report::TrialReport;
pub(crate) use results::{CaseResult, TrialCase, TrialResults};
pub(crate) use rounds::{TrialOutcome, Trials, run_groups, turns};
pub(crate) use samples::SampleCase;
pub(crate) use server_looks::{ServerLooks, ServerPlacement};
pub(crate) use stop::{RunStop, until_signal};
pub(crate) use verdict::{Decision, Verdict};

//! The process that answers, under a mode or as the system schedules it.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use atoll_elastic::decide::CorePolicy;
use atoll_elastic::mode::Mode;
use atoll_tools::terminal;
use atoll_topology::Machine;
use clap::ValueEnum;

use super::ElasticArgs;
use super::clients::{ClientsAnswer, ClientsRequest, ElasticEngine};
use super::follow::followed;
use super::plan::{ElasticCase, ElasticPlan, ElasticSetting};
use super::report::ModeRun;
use crate::programs::own_command;
use crate::rivals::RivalProcess;
use crate::trials::RunStop;

/// The region that the lab counts runs as that do not count.
const WARMUP_REGION: u8 = 63;

/// The process; a signal ends it.
pub(super) struct Target<'a> {
    engine: ElasticEngine,
    process: RivalProcess,
    stop: &'a RunStop,
}

impl<'a> Target<'a> {
    /// Starts it, and waits until the tables are loaded.
    ///
    /// # Errors
    /// When they cannot be loaded.
    pub(super) fn start(plan: &ElasticPlan, args: &ElasticArgs, stop: &'a RunStop) -> Result<Self> {
        let engine = plan.engine.to_possible_value().context("an engine without a name")?;
        let (name, scale) = (engine.get_name(), plan.scale_factor);
        let mut command = own_command()?;
        command.args(["elastic-clients", "--engine", name, "--threads"]);
        command.arg(plan.threads.to_string()).arg("--scale-factor").arg(scale.to_string());
        terminal::say(format_args!("{name}: TPC-H of scale factor {scale}"));
        let patience = Duration::from_secs_f64(args.timeout);
        let mut process = RivalProcess::start(name, &mut command, patience)?;
        let loaded = stop.with_process(process.pid(), || process.receive::<ClientsAnswer>())?;
        loaded.map_err(|error| anyhow!("the tables cannot be loaded: {error}"))?;
        Ok(Self { engine: plan.engine, process, stop })
    }

    /// A run as the system schedules it, which does not count.
    pub(super) fn warm_up(
        &mut self,
        machine: &Machine,
        plan: &ElasticPlan,
        setting: &ElasticSetting,
    ) -> Result<()> {
        let case = ElasticCase { setting: *setting, run: 0, mode: None };
        self.run_in_region(machine, plan, &case, WARMUP_REGION).map(drop)
    }

    /// A run, or the engine's message why it failed.
    pub(super) fn run(
        &mut self,
        machine: &Machine,
        plan: &ElasticPlan,
        case: &ElasticCase,
    ) -> Result<Result<ModeRun, String>> {
        self.run_in_region(machine, plan, case, region(case.mode))
    }

    fn run_in_region(
        &mut self,
        machine: &Machine,
        plan: &ElasticPlan,
        case: &ElasticCase,
        region: u8,
    ) -> Result<Result<ModeRun, String>> {
        let ElasticSetting { work, clients, thresholds, .. } = case.setting;
        let mut request = ClientsRequest {
            work,
            clients,
            queries: plan.queries.clone(),
            seed: plan.seed.wrapping_add(u64::from(case.run)),
            region,
            cores: None,
        };
        let policy = case.mode.map(|mode| CorePolicy {
            mode,
            thmin: thresholds.thmin,
            thmax: thresholds.thmax,
            ..CorePolicy::default()
        });
        let outside = match self.engine {
            ElasticEngine::Datafusion => policy.as_ref(),
            ElasticEngine::Atoll => {
                let cores = if case.mode.is_some() { "elastic" } else { "all" };
                request.cores = Some(cores.to_owned());
                None
            }
        };
        let (pid, process) = (self.process.pid(), &mut self.process);
        let ask = || process.ask::<ClientsAnswer>(&request);
        let done = self.stop.with_process(pid, || followed(machine, pid, outside, ask));
        let (answer, followed) = done?;
        let is_cores_unknown = self.engine == ElasticEngine::Atoll && case.mode.is_some();
        Ok(answer.map(|answer| ModeRun { answer, followed, is_cores_unknown }))
    }
}

/// The region that the lab counts a mode as: 0 is the system's own scheduling.
fn region(mode: Option<Mode>) -> u8 {
    mode.map_or(0, |mode| 1 + mode as u8)
}

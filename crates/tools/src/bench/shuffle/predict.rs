//! Shuffles on a machine that is not here: schedules become flows, flows are simulated, and the
//! published figures are shown next to the predictions.

use atoll_model::simulate::{
    Access, AccessKind, Interconnect, Protocol, SimulationError, StateCosts, ThreadState, Waiting,
    Work, calibrate,
};
use atoll_primitives::shuffle::{Coordination, Moved, Order, Schedule, Shuffle, Visit};
use atoll_runtime::WorkerId;
use atoll_topology::{Machine, NodeId, Quantity, links_assumed};
use serde::Serialize;

use super::published::{Published, Says, Statement, Workload};
use super::{ShuffleArgs, not_here, variants};
use crate::bench::Curve;
use crate::exit::{CommandError, Exit};

/// Protocol of machines of which nothing but bandwidths is known: as under a directory, which asks
/// only who has the line.
const DIRECTORY: Protocol = Protocol { header: 8.0, snoop: 0.0, meeting: 1.0 };
/// Groups of a partition, log2, between which the crossover is looked for.
const GROUPS_LOG2: (i32, i32) = (10, 24);
/// Rounds of halving between two of these.
const HALVINGS: usize = 12;
/// Most workers that are simulated: their pairs are all looked at in each variant.
const WORKERS_MAX: usize = 256;

/// The predictions for a machine.
#[derive(Debug, Serialize)]
pub(super) struct Prediction {
    pub(super) machine: String,
    pub(super) threads: usize,
    pub(super) notes: Vec<String>,
    /// Bytes of a line's header, of a snoop and its reply; what meeting leaves of a bandwidth.
    pub(super) protocol: [f64; 3],
    /// All controllers, GB/s.
    pub(super) memory: f64,
    /// Figure 6.
    pub(super) bars: Vec<Bar>,
    /// Figure 7: GB/s by threads.
    pub(super) scaling: Vec<Scaling>,
    /// Figure 10: GB/s by groups of a partition.
    pub(super) aggregation: Vec<Aggregation>,
    pub(super) crossover: Crossover,
    /// Statements of the paper in words.
    pub(super) said: Vec<String>,
}

/// A shuffle.
#[derive(Debug, Serialize)]
pub(super) struct Bar {
    pub(super) order: &'static str,
    pub(super) moved: &'static str,
    pub(super) coordination: &'static str,
    pub(super) gbps: f64,
    pub(super) published: Option<f64>,
    pub(super) deviation_percent: Option<f64>,
    /// Where it is published.
    pub(super) origin: Option<&'static str>,
}

/// So many threads.
#[derive(Debug, Serialize)]
pub(super) struct Scaling {
    pub(super) threads: usize,
    pub(super) naive: f64,
    pub(super) ring: f64,
    pub(super) migration: f64,
}

/// So many groups.
#[derive(Debug, Serialize)]
pub(super) struct Aggregation {
    pub(super) groups: f64,
    pub(super) naive: f64,
    pub(super) ring: f64,
    pub(super) migration: f64,
    pub(super) migration_and_copy: f64,
}

/// Where the ring overtakes migration.
#[derive(Debug, Serialize)]
pub(super) struct Crossover {
    /// Groups of a partition; None if one is ahead everywhere.
    pub(super) groups: Option<f64>,
    pub(super) published: Option<f64>,
    pub(super) published_ahead_below: Option<f64>,
    /// Ours by the published.
    pub(super) ratio: Option<f64>,
    /// Where it is published.
    pub(super) origin: Option<&'static str>,
}

/// Figure 10's ways.
#[derive(Clone, Copy)]
enum CpuRoute {
    Stays(Order),
    Moves,
    Copies,
}

/// Predicts the cases that the flags select.
pub(super) fn predict(name: &str, args: &ShuffleArgs) -> Result<Prediction, CommandError> {
    let mut knowledge = atoll_formats::open(name).map_err(anyhow::Error::from)?;
    let mut notes = Vec::new();
    if knowledge.machine.links.is_empty() {
        knowledge.machine.links = links_assumed(&knowledge.machine);
        notes.push("links: assumed, as the distances suggest".to_owned());
    }
    let protocol = protocol(&knowledge.machine.name, &mut notes)?;
    let simulator = Simulator {
        interconnect: Interconnect::from_knowledge(&knowledge, protocol).map_err(not_here)?,
        states: StateCosts::from_knowledge(&knowledge).map_err(not_here)?,
        workload: Published::li_2013().workload,
        machine: &knowledge.machine,
    };
    let threads = threads(args, &knowledge.machine)?;
    let all = threads.iter().copied().max().unwrap_or(1);
    let prediction = simulator.prediction(args, &threads, all, notes).map_err(not_here)?;
    let memory = (knowledge.machine.nodes_with_memory())
        .filter_map(|node| knowledge.bandwidth(node.id, node.id, Quantity::ReadBandwidth, None))
        .map(|fact| fact.value)
        .sum();
    let Protocol { header, snoop, meeting } = protocol;
    Ok(Prediction { memory, protocol: [header, snoop, meeting], ..prediction })
}

/// Fitted where the machine's processors were measured, assumed elsewhere.
fn protocol(machine: &str, notes: &mut Vec<String>) -> Result<Protocol, CommandError> {
    let calibration = &Published::li_2013().calibration;
    if !calibration.holds_for.iter().any(|name| name == machine) {
        notes
            .push("coherence: assumed, a header of 8 bytes for each line and no snoops".to_owned());
        return Ok(DIRECTORY);
    }
    let measured = atoll_formats::open(&calibration.machine).map_err(anyhow::Error::from)?;
    notes.push(format!(
        "coherence: source snooping, fitted on {} to Li 2013, {}",
        calibration.machine, calibration.origin
    ));
    calibrate(&measured, &calibration.observed()).map_err(not_here)
}

/// Numbers of threads; an eighth of the cores, two eighths, … unless the flags set them.
fn threads(args: &ShuffleArgs, machine: &Machine) -> Result<Vec<usize>, CommandError> {
    let asked: Vec<usize> = args.threads.iter().map(|threads| usize::from(*threads)).collect();
    let cores = machine.cores.len().clamp(1, WORKERS_MAX);
    let mut threads = match asked.is_empty() {
        false => asked,
        true => {
            (1..=8).map(|eighth| (cores * eighth / 8).max(1)).chain([1, 2.min(cores)]).collect()
        }
    };
    threads.sort_unstable();
    threads.dedup();
    match threads.last() {
        Some(most) if *most > WORKERS_MAX => {
            let message = format_args!("at most {WORKERS_MAX} threads are simulated");
            Err(CommandError::with(Exit::Usage, message))
        }
        _ => Ok(threads),
    }
}

struct Simulator<'a> {
    interconnect: Interconnect,
    states: StateCosts,
    workload: Workload,
    machine: &'a Machine,
}

impl Simulator<'_> {
    fn prediction(
        &self,
        args: &ShuffleArgs,
        threads: &[usize],
        all: usize,
        notes: Vec<String>,
    ) -> Result<Prediction, SimulationError> {
        let machine = self.machine.name.clone();
        let bars = args.shuffles().into_iter().map(|shuffle| self.bar(shuffle, all));
        let scaling = threads.iter().map(|threads| self.scaling(*threads));
        let powers = (GROUPS_LOG2.0..=GROUPS_LOG2.1).map(|power| 2_f64.powi(power));
        let aggregation = powers.map(|groups| self.aggregation(groups, all));
        let bars = bars.collect::<Result<Vec<_>, _>>()?;
        Ok(Prediction {
            threads: all,
            notes,
            protocol: [0.0; 3],
            memory: 0.0,
            said: said(&machine, &bars),
            bars,
            scaling: scaling.collect::<Result<_, _>>()?,
            aggregation: aggregation.collect::<Result<_, _>>()?,
            crossover: self.crossover(all)?,
            machine,
        })
    }

    fn bar(&self, shuffle: Shuffle, threads: usize) -> Result<Bar, SimulationError> {
        let gbps = self.integers(shuffle, threads)?;
        let (order, moved) = (shuffle.order.name(), shuffle.moved.name());
        let coordination = variants::coordination(shuffle);
        let bars = &Published::li_2013().bars;
        let published = bars.iter().find(|bar| {
            (bar.machine == self.machine.name)
                && (bar.order == order && bar.moved == moved && bar.coordination == coordination)
        });
        let origin = published.map(|bar| bar.origin.as_str());
        let published = published.map(|bar| bar.gbps);
        let deviation_percent = published.map(|published| (gbps / published - 1.0) * 100.0);
        Ok(Bar { order, moved, coordination, gbps, published, deviation_percent, origin })
    }

    fn scaling(&self, threads: usize) -> Result<Scaling, SimulationError> {
        let tight = |order, moved| {
            self.integers(Shuffle { order, moved, coordination: Coordination::Tight }, threads)
        };
        Ok(Scaling {
            threads,
            naive: tight(Order::Naive, Moved::Pulled)?,
            ring: tight(Order::Ring, Moved::Pulled)?,
            migration: tight(Order::Ring, Moved::Threads)?,
        })
    }

    /// GB/s of the paper's experiment; a byte that is read and then written counts once.
    fn integers(&self, shuffle: Shuffle, threads: usize) -> Result<f64, SimulationError> {
        let schedule = self.schedule(shuffle, threads);
        let all = self.workload.rows * self.workload.integer_bytes;
        let bytes = all / (threads * threads) as f64;
        let work = |visit: &Visit| Work { accesses: piece(&schedule, visit, bytes), own: 0.0 };
        self.bandwidth(&schedule, work, all)
    }

    fn aggregation(&self, groups: f64, threads: usize) -> Result<Aggregation, SimulationError> {
        Ok(Aggregation {
            groups,
            naive: self.groups(CpuRoute::Stays(Order::Naive), groups, threads)?,
            ring: self.groups(CpuRoute::Stays(Order::Ring), groups, threads)?,
            migration: self.groups(CpuRoute::Moves, groups, threads)?,
            migration_and_copy: self.groups(CpuRoute::Copies, groups, threads)?,
        })
    }

    /// GB/s at which rows are grouped, each worker's table having this many groups.
    fn groups(&self, way: CpuRoute, groups: f64, threads: usize) -> Result<f64, SimulationError> {
        let (order, moved) = match way {
            CpuRoute::Stays(order) => (order, Moved::Pulled),
            CpuRoute::Moves | CpuRoute::Copies => (Order::Ring, Moved::Threads),
        };
        let shuffle = Shuffle { order, moved, coordination: Coordination::Tight };
        let schedule = self.schedule(shuffle, threads);
        let accesses = self.workload.rows / (threads * threads) as f64;
        let nodes = self.machine.nodes_with_cpus().count();
        let state = ThreadState {
            bytes: groups * self.workload.group_bytes,
            accesses,
            threads: threads.div_ceil(nodes) as f64,
        };
        let work = |visit: &Visit| {
            let at = schedule.node(visit.place);
            let (of_state, own) = match way {
                CpuRoute::Stays(_) => self.states.stays(&state, at),
                CpuRoute::Moves => self.states.moves(&state, at, schedule.home(visit.actor)),
                CpuRoute::Copies => self.states.copies(&state, at, before(&schedule, visit)),
            };
            let mut accesses = piece(&schedule, visit, accesses * self.workload.row_bytes);
            accesses.extend(of_state);
            Work { accesses, own }
        };
        self.bandwidth(&schedule, work, self.workload.rows * self.workload.row_bytes)
    }

    /// Groups from which on the ring is ahead, after migration was.
    fn crossover(&self, threads: usize) -> Result<Crossover, SimulationError> {
        let ahead = |power: f64| -> Result<f64, SimulationError> {
            let groups = power.exp2();
            let ring = self.groups(CpuRoute::Stays(Order::Ring), groups, threads)?;
            Ok(self.groups(CpuRoute::Moves, groups, threads)? - ring)
        };
        let mut found = None;
        for power in GROUPS_LOG2.0..GROUPS_LOG2.1 {
            let (mut low, mut high) = (f64::from(power), f64::from(power + 1));
            if ahead(low)? > 0.0 && ahead(high)? <= 0.0 {
                for _ in 0..HALVINGS {
                    let middle = f64::midpoint(low, high);
                    *if ahead(middle)? > 0.0 { &mut low } else { &mut high } = middle;
                }
                found = Some(high.exp2().round());
            }
        }
        let crossovers = &Published::li_2013().crossovers;
        let published = crossovers.iter().find(|it| it.machine == self.machine.name);
        Ok(Crossover {
            groups: found,
            published: published.map(|it| it.groups),
            published_ahead_below: published.map(|it| it.ahead_below),
            ratio: found.zip(published).map(|(ours, published)| ours / published.groups),
            origin: published.map(|it| it.origin.as_str()),
        })
    }

    fn bandwidth(
        &self,
        schedule: &Schedule,
        work: impl Fn(&Visit) -> Work,
        bytes: f64,
    ) -> Result<f64, SimulationError> {
        let workers = (0..schedule.workers() as u32).map(WorkerId);
        let threads: Vec<Vec<Work>> = workers
            .map(|worker| schedule.turns(worker).map(|visit| work(&visit)).collect())
            .collect();
        let waiting = match schedule.shuffle().coordination {
            Coordination::Tight => Waiting::Tight,
            Coordination::Loose => Waiting::Loose,
        };
        Ok(bytes / self.interconnect.run(&threads, waiting)?.time)
    }

    /// The schedule of this many threads, dealt to the nodes in turn.
    fn schedule(&self, shuffle: Shuffle, threads: usize) -> Schedule {
        let nodes: Vec<NodeId> = self.machine.nodes_with_cpus().map(|node| node.id).collect();
        let mut workers: Vec<NodeId> = nodes.iter().copied().cycle().take(threads).collect();
        workers.sort();
        Schedule::new(self.machine, workers, shuffle)
    }
}

/// Statements of the paper about a machine besides the bars, and the predictions for them.
fn said(machine: &str, bars: &[Bar]) -> Vec<String> {
    let published = Published::li_2013();
    let statements = published.statements.iter().filter(|it| it.machine == machine);
    let words = statements.flat_map(|it| {
        let bar = bars.iter().find(|bar| bar.order == it.order && bar.moved == it.moved);
        bar.map(|bar| compared(it, bar))
    });
    let scalings = published.scalings.iter().filter(|it| it.machine == machine);
    let scalings =
        scalings.map(|it| format!("{}: {} threads ({})", it.order, it.threads, it.origin));
    let limits = published.limits.iter().filter(|it| it.machine == machine);
    let limits = limits
        .map(|it| format!("limits {} of memory, {} of links ({})", it.memory, it.links, it.origin));
    words.chain(scalings).chain(limits).collect()
}

/// A bar next to the paper's statement: near is within a fifth.
fn compared(said: &Statement, bar: &Bar) -> String {
    let Statement { order, moved, gbps, origin, .. } = said;
    let (words, agrees) = match said.says {
        Says::About => ("about", (bar.gbps / gbps - 1.0).abs() <= 0.2),
        Says::Below => ("below", bar.gbps < *gbps),
    };
    let verdict = match agrees {
        true => "as predicted",
        false => {
            "the model differs: every snoop to seven others and every reply take their part of \
             twelve links, and the machine must have sent fewer"
        }
    };
    format!("{order}, {moved}: {words} {gbps} ({origin}); ours {:.1}: {verdict}", bar.gbps)
}

/// A piece read where the visit runs, and written where it is pushed to.
fn piece(schedule: &Schedule, visit: &Visit, bytes: f64) -> Vec<Access> {
    let at = schedule.node(visit.place);
    let access = |home, kind| Access { at, home, bytes, kind };
    let mut accesses = vec![access(schedule.home(visit.source), AccessKind::Read)];
    if schedule.shuffle().moved == Moved::Pushed {
        accesses.push(access(schedule.home(visit.worker), AccessKind::Write));
    }
    accesses
}

/// Where the state of the visit's thread was before.
fn before(schedule: &Schedule, visit: &Visit) -> NodeId {
    match visit.step.checked_sub(1) {
        Some(step) => schedule.node(schedule.visit(visit.actor, step).place),
        None => schedule.home(visit.actor),
    }
}

impl Prediction {
    /// What this is.
    pub(super) fn title(&self) -> String {
        format!("Shuffle of {} threads on {}, simulated", self.threads, self.machine)
    }

    /// Figure 7.
    pub(super) fn curves(&self) -> Vec<Curve> {
        let mut curves = Vec::new();
        for row in &self.scaling {
            let columns = [
                ("naive, pulled", row.naive),
                ("ring, pulled", row.ring),
                ("ring, threads", row.migration),
            ];
            for (name, gbps) in columns {
                Curve::add(&mut curves, name.to_owned(), (row.threads as f64, gbps));
            }
        }
        curves
    }
}

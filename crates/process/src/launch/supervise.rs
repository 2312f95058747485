//! Instances that are started, watched and stopped together.
//!
//! One loop takes signals one by one (they are blocked, so nothing happens in between) and does the
//! next due action:
//!
//! | Event | The program alone | Instances |
//! |---|---|---|
//! | `SIGCHLD` | its end is Atoll's end | a failure stops all |
//! | `SIGINT`, `SIGTERM`, `SIGHUP`, `SIGQUIT` sent by a process | passed on | stops all; a second time kills all |
//! | the same from the terminal's keys | the program has received them already | as above |
//! | `SIGUSR1`, `SIGUSR2`, `SIGWINCH` | passed on | passed on |
//! | Ctrl-Z | stops both, as one job of the shell | stops all, `fg` continues all |
//!
//! Stopping is `SIGTERM` to each instance's process group and, after the grace, `SIGKILL`. A process is
//! only sent signals until its end was taken, so its number is never another's.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use atoll_sys as sys;
use atoll_sys::{EndedChild, Ending, Root, SignalMask, TakenSignal, signal};

use super::calls::PlacementCalls;
use super::error::LaunchError;
use super::obstacle::Obstacle;
use super::output::OutputSink;
use super::plan::{InstancePlan, LaunchPlan};
use super::program::Program;
use super::sample::{Sampled, Sampler};
use super::start::{Start, start};

/// Longest wait for a signal: bounds the delay if another thread of the process took one by mistake.
const WAIT_MAX: Duration = Duration::from_millis(200);
/// First look at the pages, and the longest time between two looks; the interval doubles in between.
const LOOK_FIRST: Duration = Duration::from_millis(50);
const LOOK_MAX: Duration = Duration::from_secs(1);
/// In the long run, the pause after a look is this many times its cpu time: at most
/// 1 % of a cpu.
const LOOK_COST: u32 = 99;
/// In the beginning, looking may cost more: at most 10 % of a cpu.
const LOOK_COST_FIRST: u32 = 9;
/// How long to wait for output after the last instance: an orphaned process may hold a
/// pipe open forever.
const OUTPUT_WAIT: Duration = Duration::from_secs(1);

/// How programs are watched.
#[derive(Debug)]
pub struct Supervision {
    /// The destination of output.
    pub sink: OutputSink,
    /// Start nothing if a part of the placement is refused.
    pub is_strict: bool,
    /// Whether it is the program alone, in Atoll's place, not instances.
    pub is_alone: bool,
    /// Look at the pages while it runs.
    pub is_sampled: bool,
    /// Time between `SIGTERM` and `SIGKILL`.
    pub grace: Duration,
}

/// The outcome of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchOutcome {
    /// Each instance.
    pub instances: Vec<InstanceOutcome>,
    /// The instance whose failure stopped all.
    pub failed: Option<usize>,
    /// The signal that stopped all.
    pub stopped_by: Option<i32>,
}

/// The outcome of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceOutcome {
    /// What was planned.
    pub plan: InstancePlan,
    /// Its process.
    pub pid: i32,
    /// The obstacles met at its start.
    pub obstacles: Vec<Obstacle>,
    /// How it ended, and the resources it used.
    pub ended: EndedChild,
    /// Time from its start to its end.
    pub elapsed: Duration,
    /// Where its pages were; `None` if not looked up.
    pub sampled: Option<Sampled>,
}

impl LaunchOutcome {
    /// The exit code: that of the instance that failed first, 128 + the signal that ended it
    /// or that stopped all, 0 if none failed.
    pub fn code(&self) -> u8 {
        let code = |ending| match ending {
            Ending::Code(code) => code,
            Ending::Signal(number) => 128_u8.saturating_add(number as u8),
        };
        let is_clean = |it: &InstanceOutcome| it.ended.ending == Ending::Code(0);
        match (self.failed, self.stopped_by) {
            (Some(failed), _) => code(self.instances[failed].ended.ending),
            (None, Some(_)) if self.instances.iter().all(is_clean) => 0,
            (None, Some(number)) => 128_u8.saturating_add(number as u8),
            (None, None) => 0,
        }
    }
}

/// Starts the instances of a plan, each with the program at the same position, and watches them to
/// their end. Calls `tell` for obstacles while others already run. Call it before the
/// process has other threads, or these take signals that are meant for it.
pub fn supervise(
    plan: &LaunchPlan,
    programs: Vec<Program>,
    supervision: &Supervision,
    calls: Arc<dyn PlacementCalls>,
    tell: &mut dyn FnMut(&Obstacle),
) -> Result<LaunchOutcome, LaunchError> {
    let taken = taken_signals(supervision.is_alone);
    sys::default_signal(signal::CHLD);
    let mask = sys::block_signals(&taken)?;
    let result = watch(plan, programs, supervision, &calls, tell, (&taken, mask));
    sys::set_signal_mask(mask)?;
    result
}

fn watch(
    plan: &LaunchPlan,
    programs: Vec<Program>,
    supervision: &Supervision,
    calls: &Arc<dyn PlacementCalls>,
    tell: &mut dyn FnMut(&Obstacle),
    (taken, mask): (&[i32], SignalMask),
) -> Result<LaunchOutcome, LaunchError> {
    let (done, copied) = channel();
    let mut watch = InstanceWatch::new(supervision);
    for (instance, program) in plan.instances.iter().zip(programs) {
        let start = Start {
            instance: instance.clone(),
            program,
            sink: supervision.sink.clone(),
            calls: calls.clone(),
            is_strict: supervision.is_strict,
            is_alone: supervision.is_alone,
            mask,
        };
        if let Err(error) = watch.start(start, &done, tell) {
            watch.stop();
            watch.until_all_ended(taken)?;
            return Err(error);
        }
    }
    drop(done);
    watch.until_all_ended(taken)?;
    // No message is ever sent: this returns when the last copying thread has dropped its end.
    let _ = copied.recv_timeout(OUTPUT_WAIT);
    Ok(watch.outcome())
}

/// Signals that Atoll handles itself, except those that it ignores (`nohup`).
fn taken_signals(is_alone: bool) -> Vec<i32> {
    use signal::{CHLD, HUP, INT, QUIT, TERM, TSTP, USR1, USR2, WINCH};
    let mut taken = vec![HUP, INT, QUIT, TERM, USR1, USR2, WINCH];
    if !is_alone {
        taken.push(TSTP);
    }
    taken.retain(|number| !sys::is_signal_ignored(*number));
    taken.push(CHLD);
    taken
}

/// A started instance.
struct RunningInstance {
    plan: InstancePlan,
    pid: i32,
    obstacles: Vec<Obstacle>,
    start: Instant,
    sampler: Option<Sampler>,
    ended: Option<(EndedChild, Duration)>,
    /// Keeps the thread that started it alive.
    _hold: Sender<()>,
}

/// The instances and the due actions.
struct InstanceWatch<'a> {
    supervision: &'a Supervision,
    instances: Vec<RunningInstance>,
    failed: Option<usize>,
    stopped_by: Option<i32>,
    /// When instances that were asked to end are killed.
    kill_at: Option<Instant>,
    is_killed: bool,
    look_at: Instant,
    look_after: Duration,
    begin: Instant,
}

/// The time from a look, which took `cost`, to the next one; `elapsed` is the time since the
/// start. At most that long, unless looking would take more than a tenth of a cpu: the last look
/// at a program is then in the second half of its life, however long a look takes.
fn pause(regular: Duration, elapsed: Duration, cost: Duration) -> Duration {
    let affordable = (cost * LOOK_COST).min(elapsed);
    regular.max(affordable).max(cost * LOOK_COST_FIRST)
}

impl<'a> InstanceWatch<'a> {
    fn new(supervision: &'a Supervision) -> Self {
        Self {
            supervision,
            instances: Vec::new(),
            failed: None,
            stopped_by: None,
            kill_at: None,
            is_killed: false,
            look_at: Instant::now() + LOOK_FIRST,
            look_after: LOOK_FIRST,
            begin: Instant::now(),
        }
    }

    fn start(
        &mut self,
        begin: Start,
        done: &Sender<()>,
        tell: &mut dyn FnMut(&Obstacle),
    ) -> Result<(), LaunchError> {
        let (plan, sink) = (begin.instance.clone(), begin.sink.clone());
        // Before the start, because the program's time counts from its first instruction.
        let at = Instant::now();
        let mut started = start(begin)?;
        started.obstacles.iter().for_each(tell);
        sink.copy(&mut started.child, plan.index, done);
        let pid = started.child.id() as i32;
        let sampler = self.supervision.is_sampled.then(|| Sampler::new(Root::live(), pid));
        self.instances.push(RunningInstance {
            plan,
            pid,
            obstacles: started.obstacles,
            start: at,
            sampler,
            ended: None,
            _hold: started.hold,
        });
        Ok(())
    }

    fn until_all_ended(&mut self, taken: &[i32]) -> Result<(), LaunchError> {
        loop {
            self.take_ends()?;
            if self.instances.iter().all(|instance| instance.ended.is_some()) {
                return Ok(());
            }
            self.do_what_is_due();
            if let Some(signal) = sys::wait_signal(taken, self.wait())? {
                self.heed(signal);
            }
        }
    }

    fn take_ends(&mut self) -> Result<(), LaunchError> {
        for index in 0..self.instances.len() {
            let instance = &mut self.instances[index];
            if instance.ended.is_some() {
                continue;
            }
            let Some(ended) = sys::ended_child(instance.pid)? else { continue };
            instance.ended = Some((ended, instance.start.elapsed()));
            if ended.ending != Ending::Code(0) && self.kill_at.is_none() {
                self.failed = Some(index);
                self.stop();
            }
        }
        Ok(())
    }

    /// Asks all to end, once.
    fn stop(&mut self) {
        if self.kill_at.is_none() {
            self.kill_at = Some(Instant::now() + self.supervision.grace);
            self.send(signal::TERM);
        }
    }

    fn do_what_is_due(&mut self) {
        let now = Instant::now();
        if !self.is_killed && self.kill_at.is_some_and(|at| at <= now) {
            self.is_killed = true;
            self.send(signal::KILL);
        }
        if self.supervision.is_sampled && self.look_at <= now {
            self.look();
        }
    }

    fn look(&mut self) {
        let begin = sys::thread_cpu_time();
        for instance in self.instances.iter_mut().filter(|instance| instance.ended.is_none()) {
            if let Some(sampler) = &mut instance.sampler {
                sampler.look();
            }
        }
        let cost = sys::thread_cpu_time().saturating_sub(begin);
        self.look_after = (self.look_after * 2).min(LOOK_MAX);
        let pause = pause(self.look_after, self.begin.elapsed(), cost);
        self.look_at = Instant::now() + pause;
    }

    /// The time until the next due action.
    fn wait(&self) -> Duration {
        let look = self.supervision.is_sampled.then_some(self.look_at);
        let kill = self.kill_at.filter(|_| !self.is_killed);
        let due = look.into_iter().chain(kill).min();
        due.map_or(WAIT_MAX, |at| at.saturating_duration_since(Instant::now()).min(WAIT_MAX))
    }

    fn heed(&mut self, taken: TakenSignal) {
        match taken.number {
            signal::CHLD => {}
            number if self.supervision.is_alone => {
                // The terminal signals the whole job, including the program.
                if taken.is_sent {
                    self.send(number);
                }
            }
            signal::USR1 | signal::USR2 | signal::WINCH => self.send(taken.number),
            signal::TSTP => self.pause(),
            _ if self.kill_at.is_some() => self.kill_at = Some(Instant::now()),
            number => {
                self.stopped_by = Some(number);
                self.stop();
            }
        }
    }

    /// Stops with all instances until the shell continues.
    fn pause(&self) {
        self.send(signal::TSTP);
        let _ = sys::kill_process(std::process::id() as i32, signal::STOP);
        self.send(signal::CONT);
    }

    /// A group may be gone although its leader has not been waited for.
    fn send(&self, number: i32) {
        for instance in self.instances.iter().filter(|instance| instance.ended.is_none()) {
            let _ = match self.supervision.is_alone {
                true => sys::kill_process(instance.pid, number),
                false => sys::kill_group(instance.pid, number),
            };
        }
    }

    fn outcome(self) -> LaunchOutcome {
        let outcome = |instance: RunningInstance| {
            let (ended, elapsed) = instance.ended?;
            Some(InstanceOutcome {
                plan: instance.plan,
                pid: instance.pid,
                obstacles: instance.obstacles,
                ended,
                elapsed,
                sampled: instance.sampler.map(|sampler| sampler.found()),
            })
        };
        LaunchOutcome {
            instances: self.instances.into_iter().filter_map(outcome).collect(),
            failed: self.failed,
            stopped_by: self.stopped_by,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_as_dear_as_1_percent_in_the_long_run_and_never_all_in_the_beginning() {
        let [regular, cost] = [100, 60].map(Duration::from_millis);
        let at = |seconds| pause(regular, Duration::from_secs(seconds), cost);
        assert_eq!(at(0), cost * 9);
        assert_eq!(at(3), Duration::from_secs(3), "at most twice the time");
        assert_eq!(at(3600), cost * 99);
        assert_eq!(pause(regular, Duration::from_secs(3), Duration::ZERO), regular);
    }
}

//! Queues of waiting jobs, and who takes them.
//!
//! `cargo xtask loom` runs this file in every order that threads may take (loom/src/queues_models.rs),
//! so it names nothing but std and the lock.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// One queue per group of the runtime.
pub(super) struct Queues<J> {
    queues: Vec<Mutex<TaskQueue<J>>>,
    /// For each group, the number of runners it needs.
    runners: Vec<usize>,
    /// For each group, the groups it may steal from, nearest first.
    victims: Vec<Vec<usize>>,
}

struct TaskQueue<J> {
    jobs: VecDeque<J>,
    /// Runners of the group that have not started yet. Each finds a job that was not stolen.
    awaited: usize,
}

impl<J> TaskQueue<J> {
    fn steal(&mut self) -> Option<J> {
        if self.jobs.len() > self.awaited { self.jobs.pop_back() } else { None }
    }
}

impl<J> Queues<J> {
    /// Fills the queues with jobs and their groups; jobs of a group keep their order. For each group,
    /// the number of its workers and the groups it may steal from, nearest first.
    pub(super) fn new(workers: &[usize], victims: Vec<Vec<usize>>, jobs: Vec<(usize, J)>) -> Self {
        let mut waiting: Vec<VecDeque<J>> = workers.iter().map(|_| VecDeque::new()).collect();
        for (group, job) in jobs {
            waiting[group].push_back(job);
        }
        let sizes: Vec<usize> = waiting.iter().map(VecDeque::len).collect();
        let queues = waiting.into_iter().zip(workers).map(|(jobs, workers)| {
            let awaited = jobs.len().min(*workers);
            Mutex::new(TaskQueue { jobs, awaited })
        });
        Self { queues: queues.collect(), runners: runners(&sizes, workers, &victims), victims }
    }

    /// Number of runners of a group.
    pub(super) fn runners(&self, group: usize) -> usize {
        self.runners[group]
    }

    /// A job for a runner of this group, and the group the job was dealt to: its own oldest, or the
    /// newest of the nearest group that can spare one, so that owner and thief work towards each
    /// other. `first` means that this is the runner's first job.
    pub(super) fn take(&self, group: usize, first: bool) -> Option<(usize, J)> {
        let own = {
            let mut queue = self.queues[group].lock();
            queue.awaited = queue.awaited.saturating_sub(usize::from(first));
            queue.jobs.pop_front()
        };
        own.map(|job| (group, job)).or_else(|| self.steal(group))
    }

    fn steal(&self, thief: usize) -> Option<(usize, J)> {
        let mut victims = self.victims[thief].iter().copied();
        victims.find_map(|victim| Some((victim, self.queues[victim].lock().steal()?)))
    }
}

/// Runners of each group: one per job of its own, and as thieves no more than the jobs within reach
/// that find no worker at home; at most one per worker.
pub(super) fn runners(jobs: &[usize], workers: &[usize], victims: &[Vec<usize>]) -> Vec<usize> {
    let surplus = |victim: &usize| jobs[*victim].saturating_sub(workers[*victim]);
    let within_reach = |group: usize| victims[group].iter().map(surplus).sum::<usize>();
    (0..jobs.len()).map(|group| workers[group].min(jobs[group] + within_reach(group))).collect()
}

//! Runners that take jobs from the queues of a step.

use std::sync::Arc;

use loom::thread;

use super::Model;
use super::queues::Queues;

pub(super) const MODELS: [Model; 3] = [
    ("every job is taken once, and none is left", every_job_once),
    ("no job leaves a group that has a worker for it", jobs_stay_with_their_workers),
    ("two thieves share what a group cannot do alone", two_thieves),
];

/// What a runner took: the group it was dealt to, and the job.
type Taken = Vec<(usize, u8)>;

/// Takes until nothing is left within reach, as the runners of a step do.
fn runner(queues: &Queues<u8>, group: usize) -> Taken {
    let mut first = true;
    std::iter::from_fn(|| queues.take(group, std::mem::take(&mut first))).collect()
}

/// Runs the runners that the queues ask for, the last of them here; what each took, by group.
fn run(workers: &[usize], victims: Vec<Vec<usize>>, jobs: Vec<(usize, u8)>) -> Vec<(usize, Taken)> {
    let queues = Arc::new(Queues::new(workers, victims, jobs.clone()));
    let groups = 0..workers.len();
    let mut runners: Vec<usize> =
        groups.flat_map(|group| vec![group; queues.runners(group)]).collect();
    let here = runners.pop();
    let spawned: Vec<_> = runners
        .into_iter()
        .map(|group| {
            let queues = Arc::clone(&queues);
            (group, thread::spawn(move || runner(&queues, group)))
        })
        .collect();
    let own = here.map(|group| (group, runner(&queues, group)));
    let mut ended: Vec<(usize, Taken)> =
        spawned.into_iter().map(|(group, it)| (group, it.join().expect("it ends"))).collect();
    ended.extend(own);
    let mut taken: Vec<(usize, u8)> = ended.iter().flat_map(|(_, taken)| taken.clone()).collect();
    taken.sort();
    assert_eq!(taken, jobs, "every job once, from the group it was dealt to");
    ended
}

fn every_job_once() {
    run(&[1, 1], vec![vec![1], vec![0]], vec![(0, 1), (0, 2), (0, 3), (1, 4)]);
}

/// As many jobs as workers: nothing is stolen, however late a runner comes.
fn jobs_stay_with_their_workers() {
    let ended = run(&[2, 1], vec![vec![1], vec![0]], vec![(0, 1), (0, 2), (1, 3)]);
    for (group, taken) in ended {
        assert!(taken.iter().all(|(home, _)| *home == group), "group {group}: {taken:?}");
    }
}

fn two_thieves() {
    let victims = vec![vec![1, 2], vec![2, 0], vec![0, 1]];
    let ended = run(&[1, 1, 1], victims, vec![(0, 1), (0, 2), (0, 3)]);
    let own = ended.iter().find(|(group, _)| *group == 0).map(|(_, taken)| taken);
    assert!(own.is_some_and(|taken| !taken.is_empty()), "the owner finds its own: {ended:?}");
}

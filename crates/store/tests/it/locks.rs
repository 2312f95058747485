//! Locks against a model of who holds what: in seeded orders of many sessions, in every order of few, and
//! on threads. A session that is never woken fails the test, and so does a deadlock that is not one.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use atoll_store::lock::{Deadlock, HeldLocks, LockManager, LockMode, LockTarget, TransactionId};
use atoll_store::{RowId, TableId};
use atoll_sys::SplitMix64;

use crate::stepped::{SteppedTasks, block_on, give_up_after, run_all_orders, step};
use LockMode::{Exclusive, Shared};

/// A lock that a script asks for, and after how many polls it gives up.
type Wish = (LockTarget, LockMode, Option<u64>);

fn row(number: u64) -> LockTarget {
    LockTarget::Row(TableId::new(1), RowId::new(number))
}

/// Who holds what and who waits for what, as the sessions saw it.
#[derive(Default)]
struct LockModel {
    held: BTreeMap<LockTarget, BTreeMap<TransactionId, LockMode>>,
    waiting: BTreeMap<TransactionId, LockTarget>,
    next: u64,
    deadlocks: u64,
}

impl LockModel {
    fn answered(
        &mut self,
        target: LockTarget,
        owner: TransactionId,
        mode: LockMode,
        answer: Option<Result<(), Deadlock>>,
    ) -> Result<(), Deadlock> {
        match answer {
            Some(Ok(())) => self.granted(target, owner, mode),
            Some(Err(deadlock)) => {
                self.expect_circle(&deadlock);
                return Err(deadlock);
            }
            None => {
                self.waiting.remove(&owner);
            }
        }
        Ok(())
    }

    fn granted(&mut self, target: LockTarget, owner: TransactionId, mode: LockMode) {
        self.waiting.remove(&owner);
        let holders = self.held.entry(target).or_default();
        let mine = holders.entry(owner).or_insert(mode);
        *mine = mode.max(*mine);
        let is_alone = holders.len() == 1 || holders.values().all(|mode| *mode == Shared);
        assert!(is_alone, "{target:?} is held by {holders:?}");
    }

    fn expect_circle(&mut self, deadlock: &Deadlock) {
        self.deadlocks += 1;
        let circle = &deadlock.circle;
        for (at, (waiter, target)) in circle.iter().enumerate() {
            let (holder, _) = circle[(at + 1) % circle.len()];
            assert_ne!(*waiter, holder);
            assert_eq!(self.waiting.get(waiter), Some(target), "{deadlock:?}");
            assert!(self.held[target].contains_key(&holder), "{deadlock:?}");
        }
        self.waiting.remove(&circle[0].0);
    }

    fn forget(&mut self, owner: TransactionId) {
        for holders in self.held.values_mut() {
            holders.remove(&owner);
        }
    }
}

/// Takes all locks of a script, one after the other, and lets go of them; again after a deadlock.
async fn run_script(
    manager: Arc<LockManager>,
    model: Rc<RefCell<LockModel>>,
    script: Vec<Wish>,
    attempts: u64,
) {
    for _ in 0..attempts {
        let owner = {
            let mut model = model.borrow_mut();
            model.next += 1;
            TransactionId(model.next)
        };
        let mut locks = HeldLocks::new(Arc::clone(&manager), owner);
        let ended = take_all(&mut locks, &model, &script).await;
        model.borrow_mut().forget(owner);
        drop(locks);
        if ended.is_ok() {
            return;
        }
        step().await;
    }
}

async fn take_all(
    locks: &mut HeldLocks,
    model: &RefCell<LockModel>,
    script: &[Wish],
) -> Result<(), Deadlock> {
    let owner = locks.owner();
    for (target, mode, patience) in script {
        model.borrow_mut().waiting.insert(owner, *target);
        let request = locks.lock(*target, *mode);
        let answer = match patience {
            Some(polls) => give_up_after(*polls, request).await,
            None => Some(request.await),
        };
        model.borrow_mut().answered(*target, owner, *mode, answer)?;
        step().await;
    }
    Ok(())
}

#[test]
fn locks_exclude_and_no_session_is_forgotten_in_any_seeded_order() {
    let mut deadlocks = 0;
    for seed in 0..1500 {
        let mut random = SplitMix64::new(seed);
        let manager = Arc::new(LockManager::new());
        let model = Rc::new(RefCell::new(LockModel::default()));
        let mut tasks = SteppedTasks::default();
        let (sessions, targets) = (2 + random.below(6), 1 + random.below(4));
        for _ in 0..sessions {
            let wish = |random: &mut SplitMix64| {
                let mode = if random.below(3) == 0 { Shared } else { Exclusive };
                let patience = (random.below(4) == 0).then(|| 1 + random.below(3));
                (row(random.below(targets)), mode, patience)
            };
            let script = (0..1 + random.below(5)).map(|_| wish(&mut random)).collect();
            tasks.spawn(run_script(Arc::clone(&manager), Rc::clone(&model), script, 1000));
        }
        assert_eq!(tasks.run_seeded(&mut random), 0, "sessions that are never woken, seed {seed}");
        assert_eq!(manager.count(), 0, "locks that are left, seed {seed}");
        deadlocks += model.borrow().deadlocks;
    }
    assert!(deadlocks > 100, "{deadlocks}");
}

#[test]
fn three_sessions_and_two_locks_are_right_in_every_order() {
    let wishes = [
        vec![(row(0), Exclusive, None), (row(1), Exclusive, None)],
        vec![(row(1), Exclusive, None), (row(0), Exclusive, None)],
        vec![(row(0), Shared, None), (row(0), Exclusive, None)],
        vec![(row(1), Shared, None), (row(0), Shared, None)],
        vec![(row(0), Exclusive, Some(2)), (row(1), Shared, None)],
    ];
    let mut orders = 0;
    for first in 0..wishes.len() {
        for second in first..wishes.len() {
            for third in second..wishes.len() {
                orders += run_all_orders(|tasks| {
                    let manager = Arc::new(LockManager::new());
                    let model = Rc::new(RefCell::new(LockModel::default()));
                    for script in [first, second, third] {
                        let script = wishes[script].clone();
                        let (manager, model) = (Arc::clone(&manager), Rc::clone(&model));
                        tasks.spawn(run_script(manager, model, script, 1));
                    }
                });
            }
        }
    }
    assert!(orders > 10_000, "{orders}");
}

#[test]
fn a_hot_row_goes_round_all_sessions() {
    const ROUNDS: u64 = 50;
    for seed in 0..20 {
        let manager = Arc::new(LockManager::new());
        let grants: Rc<RefCell<Vec<u64>>> = Rc::default();
        let mut tasks = SteppedTasks::default();
        for session in 0..32 {
            let (manager, grants) = (Arc::clone(&manager), Rc::clone(&grants));
            tasks.spawn(async move {
                for round in 0..ROUNDS {
                    let owner = TransactionId(session * ROUNDS + round);
                    let mut locks = HeldLocks::new(Arc::clone(&manager), owner);
                    locks.lock(row(0), Exclusive).await.unwrap();
                    grants.borrow_mut().push(session);
                    step().await;
                }
            });
        }
        assert_eq!(tasks.run_seeded(&mut SplitMix64::new(seed)), 0, "seed {seed}");
        let grants = grants.borrow();
        assert_eq!(grants.len() as u64, 32 * ROUNDS);
        // Each round is handed on in the order in which it was asked for, so that every session has its
        // turn before another one has its second after that.
        for turns in grants.windows(64).take(grants.len() / 2) {
            let all = (0..32).all(|session| turns.contains(&session));
            assert!(all, "seed {seed}: a session was overtaken twice in {turns:?}");
        }
    }
}

#[test]
fn requests_are_granted_in_their_order_and_sharing_ones_together() {
    let manager = Arc::new(LockManager::new());
    let mut holder = HeldLocks::new(Arc::clone(&manager), TransactionId(100));
    assert!(holder.try_lock(row(0), Shared));
    let granted: Rc<RefCell<Vec<usize>>> = Rc::default();
    let modes = [Exclusive, Shared, Shared, Exclusive, Shared];
    let mut tasks = SteppedTasks::default();
    for (number, mode) in modes.into_iter().enumerate() {
        let (manager, granted) = (Arc::clone(&manager), Rc::clone(&granted));
        tasks.spawn(async move {
            let mut locks = HeldLocks::new(manager, TransactionId(number as u64));
            locks.lock(row(0), mode).await.unwrap();
            granted.borrow_mut().push(number);
        });
    }
    assert_eq!(tasks.run(|_| 0), 5, "a sharing request behind an exclusive one waits");
    assert!(!HeldLocks::new(Arc::clone(&manager), TransactionId(101)).try_lock(row(0), Shared));
    drop(holder);
    assert_eq!(tasks.run(|_| 0), 0);
    assert_eq!(*granted.borrow(), [0, 1, 2, 3, 4]);
}

#[test]
fn a_dropped_request_leaves_the_lock_as_it_was() {
    let manager = Arc::new(LockManager::new());
    let owner = |number| HeldLocks::new(Arc::clone(&manager), TransactionId(number));
    let (mut first, mut second) = (owner(1), owner(2));
    assert!(first.try_lock(row(0), Shared) && second.try_lock(row(0), Shared));
    // A waiting wish for more is taken back, and one that was granted meanwhile too.
    assert!(block_on(give_up_after(1, first.lock(row(0), Exclusive))).is_none());
    assert!(first.holds(&row(0), Shared) && !first.holds(&row(0), Exclusive));
    let mut request = Box::pin(first.lock(row(0), Exclusive));
    assert!(block_on(give_up_after(1, request.as_mut())).is_none());
    drop(second);
    drop(request);
    assert!(first.holds(&row(0), Shared) && !first.holds(&row(0), Exclusive));
    assert!(owner(3).try_lock(row(0), Shared));
    drop(first);
    assert_eq!(manager.count(), 0);
}

#[test]
fn threads_lose_no_update_and_no_wake_up() {
    const TARGETS: u64 = 3;
    let manager = Arc::new(LockManager::new());
    let counters: Vec<AtomicU64> = (0..TARGETS).map(|_| AtomicU64::new(0)).collect();
    let next = AtomicU64::new(0);
    let done: u64 = thread::scope(|scope| {
        let run = |seed| {
            let mut random = SplitMix64::new(seed);
            let mut done = 0;
            for _ in 0..1500 {
                let owner = TransactionId(next.fetch_add(1, Ordering::Relaxed));
                let mut locks = HeldLocks::new(Arc::clone(&manager), owner);
                let (one, two) = (random.below(TARGETS), random.below(TARGETS));
                let both = async {
                    locks.lock(row(one), Exclusive).await?;
                    locks.lock(row(two), Exclusive).await
                };
                if block_on(both).is_ok() {
                    for counter in [one, two] {
                        let counter = &counters[counter as usize];
                        let before = counter.load(Ordering::Relaxed);
                        thread::yield_now();
                        counter.store(before + 1, Ordering::Relaxed);
                    }
                    done += 2;
                }
            }
            done
        };
        let threads: Vec<_> = (0..8).map(|seed| scope.spawn(move || run(seed))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let counted: u64 = counters.iter().map(|counter| counter.load(Ordering::Relaxed)).sum();
    assert_eq!(counted, done);
    assert_eq!(manager.count(), 0);
}

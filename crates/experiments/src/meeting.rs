//! A barrier between the threads of several processes.
//!
//! Three words in shared memory: who has arrived, how many meetings there were, whether it is called
//! off. The last to arrive begins the next meeting and wakes the others; a member that fails cancels it,
//! and all who wait or come later are released, so that no thread waits for one that is gone.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use atoll_sys::{SharedWords, futex_wait, futex_wake};

use crate::ExperimentError;

/// Words that a meeting takes. Each has its own line.
pub(crate) const WORDS: usize = 3 * APART;
const APART: usize = 16;
/// Looks at the word before the thread goes to sleep: about a microsecond.
const LOOKS: u32 = 100;
/// Longest sleep between two looks whether the others still live.
const SLEEP: Duration = Duration::from_millis(200);

/// A barrier for a fixed number of threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessBarrier<'a> {
    words: &'a [AtomicU32],
    members: u32,
}

impl<'a> ProcessBarrier<'a> {
    /// Meeting number `number` of those in the shared words.
    pub(crate) fn new(
        shared: &'a SharedWords,
        number: usize,
        members: usize,
    ) -> Result<Self, ExperimentError> {
        let words = shared.words().get(number * WORDS..(number + 1) * WORDS);
        let words = words.ok_or_else(|| ExperimentError::Part("too few words".to_owned()))?;
        Ok(Self { words, members: u32::try_from(members).unwrap_or(u32::MAX) })
    }

    fn arrived(&self) -> &AtomicU32 {
        &self.words[0]
    }

    fn count(&self) -> &AtomicU32 {
        &self.words[APART]
    }

    fn is_off(&self) -> &AtomicU32 {
        &self.words[2 * APART]
    }

    /// Returns when all members have come.
    ///
    /// # Errors
    /// [`ExperimentError::CalledOff`] when a thread [called it off](Self::call_off).
    pub(crate) fn wait(&self) -> Result<(), ExperimentError> {
        self.wait_watching(&mut || Ok(()))
    }

    /// The same; `watch` is asked now and then whether to go on waiting.
    pub(crate) fn wait_watching(
        &self,
        watch: &mut dyn FnMut() -> Result<(), ExperimentError>,
    ) -> Result<(), ExperimentError> {
        let before = self.count().load(Ordering::Acquire);
        if self.arrived().fetch_add(1, Ordering::AcqRel) + 1 >= self.members {
            self.arrived().store(0, Ordering::Relaxed);
            self.count().fetch_add(1, Ordering::Release);
            futex_wake(self.count())?;
            return self.still_on();
        }
        for _ in 0..LOOKS {
            if self.count().load(Ordering::Acquire) != before {
                return self.still_on();
            }
            std::hint::spin_loop();
        }
        while self.count().load(Ordering::Acquire) == before {
            self.still_on()?;
            watch()?;
            futex_wait(self.count(), before, SLEEP)?;
        }
        self.still_on()
    }

    fn still_on(&self) -> Result<(), ExperimentError> {
        match self.is_off().load(Ordering::Acquire) {
            0 => Ok(()),
            _ => Err(ExperimentError::CalledOff),
        }
    }

    /// Ends all waiting, now and later.
    pub(crate) fn call_off(&self) {
        self.is_off().store(1, Ordering::Release);
        // A sleeping thread looks again after `SLEEP` at the latest, woken or not.
        let _ = futex_wake(self.count());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn no_member_is_a_round_ahead() {
        const THREADS: usize = 4;
        let shared = SharedWords::create(WORDS).unwrap();
        let meeting = ProcessBarrier::new(&shared, 0, THREADS).unwrap();
        let rounds: [AtomicUsize; THREADS] = Default::default();
        std::thread::scope(|scope| {
            for own in &rounds {
                let all = &rounds;
                scope.spawn(move || {
                    for round in 1..=200 {
                        own.store(round, Ordering::Release);
                        meeting.wait().unwrap();
                        let seen = all.iter().map(|other| other.load(Ordering::Acquire));
                        assert!(seen.into_iter().all(|seen| seen == round || seen == round + 1));
                        meeting.wait().unwrap();
                    }
                });
            }
        });
    }

    #[test]
    fn a_meeting_that_is_called_off_keeps_no_thread() {
        let shared = SharedWords::create(WORDS).unwrap();
        let meeting = ProcessBarrier::new(&shared, 0, 2).unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(move || meeting.wait());
            meeting.call_off();
            assert!(matches!(waits.join().unwrap(), Err(ExperimentError::CalledOff)));
        });
        assert!(meeting.wait().is_err());
    }

    #[test]
    fn waiting_threads_check_whether_the_others_live() {
        let shared = SharedWords::create(WORDS).unwrap();
        let meeting = ProcessBarrier::new(&shared, 0, 2).unwrap();
        let mut gone = || Err(ExperimentError::Part("gone".to_owned()));
        let error = meeting.wait_watching(&mut gone).unwrap_err();
        assert!(error.to_string().contains("gone"), "{error}");
        assert!(ProcessBarrier::new(&shared, 1, 2).is_err());
    }
}

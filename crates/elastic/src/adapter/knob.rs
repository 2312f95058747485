//! A thread knob that follows the cores, on a separate thread: a client may be slow, and no decision waits for it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use super::{Adapter, AdapterCalls, AdapterError, KnobSetting};
use crate::journal::{FoundJournal, Journal, JournalError, Record};

/// Number of looks before a DBMS that did not answer is asked again.
const AGAIN_AFTER: u32 = 50;

/// The knob of a DBMS.
#[derive(Debug)]
pub struct Knob {
    adapter: Adapter,
    calls: Arc<dyn AdapterCalls>,
    /// Its original value; None until the DBMS has answered.
    before: Option<Vec<KnobSetting>>,
    /// Looks until the next attempt.
    ask_in: Option<u32>,
    /// The last requested value.
    cores: Option<usize>,
    teller: Option<Teller>,
}

/// The thread that runs the client.
#[derive(Debug)]
struct Teller {
    orders: Sender<Order>,
    answers: Receiver<Answer>,
    thread: JoinHandle<()>,
}

enum Order {
    Ask,
    Set(Vec<KnobSetting>),
}

enum Answer {
    Asked(Result<Vec<KnobSetting>, AdapterError>),
    NotSet(AdapterError),
}

impl Knob {
    /// A knob over these calls.
    pub fn new(adapter: Adapter, calls: Arc<dyn AdapterCalls>) -> Self {
        Self { adapter, calls, before: None, ask_in: Some(0), cores: None, teller: None }
    }

    /// The DBMS.
    pub fn adapter(&self) -> &Adapter {
        &self.adapter
    }

    /// Sets the knob for this many cores, once its original value is in the journal. Returns failures, a sentence each.
    pub fn follow(
        &mut self,
        journal: &mut Journal,
        cores: usize,
    ) -> Result<Vec<String>, JournalError> {
        let mut notes = Vec::new();
        let (adapter, calls) = (&self.adapter, &self.calls);
        let teller = self.teller.get_or_insert_with(|| Teller::start(adapter, calls));
        for answer in teller.answers.try_iter() {
            match answer {
                Answer::Asked(Ok(settings)) => {
                    let (adapter, settings) = (adapter.to_string(), settings);
                    journal.write(&[Record::KnobSet { adapter, settings: settings.clone() }])?;
                    self.before = Some(settings);
                }
                Answer::Asked(Err(error)) => {
                    notes.push(format!("{error}; retrying"));
                    self.ask_in = Some(AGAIN_AFTER);
                }
                Answer::NotSet(error) => notes.push(error.to_string()),
            }
        }
        let order = match (&self.before, self.ask_in) {
            (None, Some(0)) => {
                self.ask_in = None;
                Some(Order::Ask)
            }
            (None, left) => {
                self.ask_in = left.map(|looks| looks - 1);
                None
            }
            (Some(before), _) if self.cores != Some(cores) => {
                self.cores = Some(cores);
                Some(Order::Set(adapter.wanted(before, cores)))
            }
            (Some(_), _) => None,
        };
        // Only this knob ends its thread.
        let _ = order.map(|order| teller.orders.send(order));
        Ok(notes)
    }

    /// Restores the original value; returns failures. A DBMS that has ended keeps only values in files.
    pub fn restore(&mut self, has_ended: bool) -> Vec<String> {
        if let Some(teller) = self.teller.take() {
            drop(teller.orders);
            let _ = teller.thread.join();
        }
        let (Some(before), Some(_)) = (self.before.take(), self.cores.take()) else {
            return Vec::new();
        };
        if has_ended && !self.adapter.is_kept() {
            return Vec::new();
        }
        let failed = self.calls.set(&self.adapter, &before).err();
        failed.map(|error| left(&error, &before)).into_iter().collect()
    }
}

impl Teller {
    fn start(adapter: &Adapter, calls: &Arc<dyn AdapterCalls>) -> Self {
        let (orders, ordered) = channel();
        let (answer, answers) = channel();
        let (adapter, calls) = (adapter.clone(), Arc::clone(calls));
        let thread = thread::spawn(move || {
            while let Ok(first) = ordered.recv() {
                // Of several requests only the last one counts.
                let told = match ordered.try_iter().last().unwrap_or(first) {
                    Order::Ask => Some(Answer::Asked(calls.settings(&adapter))),
                    Order::Set(settings) => {
                        calls.set(&adapter, &settings).err().map(Answer::NotSet)
                    }
                };
                let _ = told.map(|told| answer.send(told));
            }
        });
        Self { orders, answers, thread }
    }
}

/// Result of undoing the knobs of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UndoneKnobs {
    /// Knobs that were restored.
    pub count: usize,
    /// Failures, a sentence each.
    pub failed: Vec<String>,
    /// Whether the DBMS keeps one of these, so that the journal must be kept as well.
    pub is_left: bool,
}

/// Restores all knobs of a journal. `is_stale`: the machine was rebooted since, so only values in files are left.
pub fn undo_knobs(calls: &dyn AdapterCalls, journal: &FoundJournal, is_stale: bool) -> UndoneKnobs {
    let mut undone = UndoneKnobs::default();
    for record in journal.records.iter().rev() {
        let Record::KnobSet { adapter, settings } = record else { continue };
        let adapter = match Adapter::named(adapter) {
            Ok(adapter) => adapter,
            Err(error) => {
                undone.failed.push(error);
                continue;
            }
        };
        if is_stale && !adapter.is_kept() {
            continue;
        }
        match calls.set(&adapter, settings) {
            Ok(()) => undone.count += 1,
            Err(error) => {
                undone.is_left |= adapter.is_kept();
                undone.failed.push(left(&error, settings));
            }
        }
    }
    undone
}

/// Message for settings that keep their value.
fn left(error: &AdapterError, before: &[KnobSetting]) -> String {
    let value = |it: &KnobSetting| match &it.value {
        Some(value) => format!("{} = {value}", it.name),
        None => format!("{} not set", it.name),
    };
    let before: Vec<String> = before.iter().map(value).collect();
    format!("{error}; before the run it was: {}", before.join(", "))
}

//! What a session listens to, and the notifications that wait for it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{Notification, Notifications, WAITING_MAX};

/// The notifications that wait for a session.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    state: Mutex<InboxState>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct InboxState {
    channels: BTreeSet<Arc<str>>,
    waiting: VecDeque<Arc<Notification>>,
    bytes: usize,
    /// Whether there were more notifications than may wait.
    is_lost: bool,
}

impl Inbox {
    /// Listens on a channel; false if it does already.
    pub(super) fn add(&self, channel: &Arc<str>) -> bool {
        self.state.lock().channels.insert(Arc::clone(channel))
    }

    pub(super) fn remove(&self, channel: &str) {
        self.state.lock().channels.remove(channel);
    }

    pub(super) fn push(&self, notification: &Arc<Notification>) {
        let mut state = self.state.lock();
        if state.is_lost {
            return;
        }
        state.bytes += notification.bytes();
        state.waiting.push_back(Arc::clone(notification));
        if state.bytes > WAITING_MAX {
            *state = InboxState {
                channels: std::mem::take(&mut state.channels),
                is_lost: true,
                ..InboxState::default()
            };
        }
        drop(state);
        self.arrived.notify_waiters();
    }

    fn has_arrived(&self) -> bool {
        let state = self.state.lock();
        state.is_lost || !state.waiting.is_empty()
    }
}

/// A change of what a session listens to, which its transaction commits.
#[derive(Clone, Debug)]
pub(crate) enum ListenChange {
    Listen(Arc<str>),
    Unlisten(Arc<str>),
    UnlistenAll,
}

/// A session as a listener; dropping this ends all its listening.
#[derive(Debug)]
pub(crate) struct Listener {
    notifications: Arc<Notifications>,
    inbox: Arc<Inbox>,
    /// Whether nothing can be delivered to the session's client.
    is_deaf: AtomicBool,
}

impl Listener {
    /// A session that does not listen yet.
    pub(crate) fn new(notifications: &Arc<Notifications>) -> Self {
        Self {
            notifications: Arc::clone(notifications),
            inbox: Arc::default(),
            is_deaf: AtomicBool::new(false),
        }
    }

    pub(crate) fn set_deaf(&self) {
        self.is_deaf.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_deaf(&self) -> bool {
        self.is_deaf.load(Ordering::Relaxed)
    }

    /// The channels, in the order of their names.
    pub(crate) fn channels(&self) -> Vec<Arc<str>> {
        self.inbox.state.lock().channels.iter().cloned().collect()
    }

    /// How full the inbox is, from 0 to 1.
    pub(crate) fn usage(&self) -> f64 {
        self.inbox.state.lock().bytes as f64 / WAITING_MAX as f64
    }

    pub(super) fn change(&self, change: &ListenChange) {
        match change {
            ListenChange::Listen(channel) => self.notifications.add(channel, &self.inbox),
            ListenChange::Unlisten(channel) => self.notifications.remove(channel, &self.inbox),
            ListenChange::UnlistenAll => {
                for channel in self.channels() {
                    self.notifications.remove(&channel, &self.inbox);
                }
            }
        }
    }

    /// Waits until notifications have arrived or were lost.
    pub(crate) async fn arrived(&self) {
        loop {
            // Registered before the check, so that no notification is missed.
            let arrived = self.inbox.arrived.notified();
            tokio::pin!(arrived);
            arrived.as_mut().enable();
            if self.inbox.has_arrived() {
                return;
            }
            arrived.await;
        }
    }

    /// Takes the notifications that have arrived, without those of channels that the session has left since.
    pub(crate) fn take(&self) -> Vec<Notification> {
        let mut state = self.inbox.state.lock();
        state.bytes = 0;
        let arrived = std::mem::take(&mut state.waiting);
        let heard = arrived.into_iter().filter(|it| state.channels.contains(&it.channel));
        heard.map(Arc::unwrap_or_clone).collect()
    }

    /// Whether notifications were lost since the last call, because too many waited.
    pub(crate) fn take_lost(&self) -> bool {
        std::mem::take(&mut self.inbox.state.lock().is_lost)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.change(&ListenChange::UnlistenAll);
    }
}

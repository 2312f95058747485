//! LISTEN and NOTIFY: messages that transactions send to the sessions that listen on a channel.
//!
//! ```text
//! NOTIFY, pg_notify ─▶ Announcements of the transaction ──commit──▶ Notifications ─▶ Inbox of each listener ─▶ client
//! LISTEN, UNLISTEN  ─▶        (undone with it)                        of the database    (bounded)
//! ```
//!
//! Notifications are delivered once their transaction is as durable as requested, in the order of commits. A
//! transaction that changed nothing has no place in that order: its notifications are delivered at once.
//!
//! A commit never waits for a listener. An inbox that exceeds [`WAITING_MAX`] is emptied and takes no more; its
//! session learns that it has missed notifications.

mod announcements;
mod inbox;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use atoll_store::log::Position;
use datafusion::common::Result;
use parking_lot::Mutex;

pub(crate) use announcements::{AnnouncedCommit, AnnouncementMark, Announcements};
use inbox::Inbox;
pub(crate) use inbox::{ListenChange, Listener};

use atoll_sql_common::error::SqlState;

/// Bytes of notifications that may wait for a session, and that a transaction may send.
pub(crate) const WAITING_MAX: usize = 16 << 20;

/// Bytes counted for a notification besides its channel and payload.
const OVERHEAD: usize = 64;

/// Channels are shorter, as PostgreSQL's names are.
const CHANNEL_END: usize = 64;

/// Payloads are shorter, as in PostgreSQL.
const PAYLOAD_END: usize = 8000;

/// A notification.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Notification {
    /// The number of the session that sent it, as `pg_backend_pid()` returns it there.
    pub process: u32,
    /// The channel.
    pub channel: Arc<str>,
    /// The payload, which may be empty.
    pub payload: Arc<str>,
}

impl Notification {
    /// A notification to send.
    ///
    /// # Errors
    /// For a channel without a name, and names and payloads that are too long.
    pub(crate) fn try_new(process: u32, channel: &str, payload: &str) -> Result<Self> {
        check_channel(channel)?;
        if payload.len() >= PAYLOAD_END {
            return Err(SqlState::INVALID_PARAMETER.error("payload string too long"));
        }
        Ok(Self { process, channel: channel.into(), payload: payload.into() })
    }

    fn bytes(&self) -> usize {
        self.channel.len() + self.payload.len() + OVERHEAD
    }
}

/// Refuses invalid names of channels.
pub(crate) fn check_channel(channel: &str) -> Result<()> {
    if channel.is_empty() {
        return Err(SqlState::INVALID_PARAMETER.error("channel name cannot be empty"));
    }
    if channel.len() >= CHANNEL_END {
        return Err(SqlState::INVALID_PARAMETER.error("channel name too long"));
    }
    Ok(())
}

/// The listeners of a database, and what commits announced that are not durable yet.
#[derive(Debug, Default)]
pub(crate) struct Notifications {
    /// Held while commits are delivered in their order.
    delivering: Mutex<()>,
    /// In the order of commits. A commit adds to it under the lock of all commits, so that it is locked for a moment
    /// only.
    ordered: Mutex<VecDeque<OrderedCommit>>,
    listeners: Mutex<HashMap<Arc<str>, Vec<Arc<Inbox>>>>,
}

/// What a commit announced.
#[derive(Debug)]
struct OrderedCommit {
    /// Its position in the log.
    position: Position,
    /// LISTENs and UNLISTENs, which come before its own notifications.
    changes: Vec<(Arc<Listener>, ListenChange)>,
    notifications: Vec<Arc<Notification>>,
}

impl OrderedCommit {
    fn deliver(&self, all: &Notifications) {
        self.changes.iter().for_each(|(listener, change)| listener.change(change));
        let listeners = all.listeners.lock();
        for notification in &self.notifications {
            let inboxes = listeners.get(&notification.channel);
            inboxes.into_iter().flatten().for_each(|inbox| inbox.push(notification));
        }
    }
}

impl Notifications {
    /// Keeps what an ordered commit announced until it is durable.
    fn order(&self, commit: OrderedCommit) {
        self.ordered.lock().push_back(commit);
    }

    /// Delivers what all commits up to a position announced, which are durable.
    fn deliver_to(&self, position: Position) {
        let _delivering = self.delivering.lock();
        let next = || self.ordered.lock().pop_front_if(|commit| commit.position <= position);
        while let Some(commit) = next() {
            commit.deliver(self);
        }
    }

    fn add(&self, channel: &Arc<str>, inbox: &Arc<Inbox>) {
        let mut listeners = self.listeners.lock();
        if inbox.add(channel) {
            let inboxes = listeners.entry(Arc::clone(channel)).or_default();
            inboxes.push(Arc::clone(inbox));
        }
    }

    fn remove(&self, channel: &str, inbox: &Arc<Inbox>) {
        let mut listeners = self.listeners.lock();
        inbox.remove(channel);
        if let Some(inboxes) = listeners.get_mut(channel) {
            inboxes.retain(|other| !Arc::ptr_eq(other, inbox));
            if inboxes.is_empty() {
                listeners.remove(channel);
            }
        }
    }
}

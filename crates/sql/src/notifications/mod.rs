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
    /// The payload; empty if there is none.
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

/// The listeners of a database, and notifications of commits that are not durable yet.
#[derive(Debug, Default)]
pub(crate) struct Notifications(Mutex<NotificationsState>);

#[derive(Debug, Default)]
struct NotificationsState {
    listeners: HashMap<Arc<str>, Vec<Arc<Inbox>>>,
    /// In the order of commits, with their positions in the log.
    ordered: VecDeque<(Position, Vec<Arc<Notification>>)>,
}

impl NotificationsState {
    fn deliver(&self, notifications: &[Arc<Notification>]) {
        for notification in notifications {
            let inboxes = self.listeners.get(&notification.channel);
            inboxes.into_iter().flatten().for_each(|inbox| inbox.push(notification));
        }
    }
}

impl Notifications {
    /// Keeps notifications of an ordered commit until it is durable.
    fn order(&self, position: Position, notifications: Vec<Arc<Notification>>) {
        self.0.lock().ordered.push_back((position, notifications));
    }

    /// Delivers the notifications of all commits up to a position, which are durable.
    fn deliver_to(&self, position: Position) {
        let mut state = self.0.lock();
        while let Some((_, notifications)) = state.ordered.pop_front_if(|(at, _)| *at <= position) {
            state.deliver(&notifications);
        }
    }

    /// Delivers notifications of a transaction without changes.
    fn deliver(&self, notifications: &[Arc<Notification>]) {
        self.0.lock().deliver(notifications);
    }

    fn add(&self, channel: &Arc<str>, inbox: &Arc<Inbox>) {
        let mut state = self.0.lock();
        if inbox.add(channel) {
            let inboxes = state.listeners.entry(Arc::clone(channel)).or_default();
            inboxes.push(Arc::clone(inbox));
        }
    }

    fn remove(&self, channel: &str, inbox: &Arc<Inbox>) {
        let mut state = self.0.lock();
        inbox.remove(channel);
        if let Some(inboxes) = state.listeners.get_mut(channel) {
            inboxes.retain(|other| !Arc::ptr_eq(other, inbox));
            if inboxes.is_empty() {
                state.listeners.remove(channel);
            }
        }
    }
}

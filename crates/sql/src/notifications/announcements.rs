//! The notifications and LISTENs of a transaction, which take effect when it commits.

use std::collections::HashSet;
use std::sync::Arc;

use atoll_store::database::Database as StoreDatabase;
use atoll_store::log::Position;
use datafusion::common::Result;
use tokio::runtime::Handle;

use super::{ListenChange, Listener, Notification, Notifications, OrderedCommit, WAITING_MAX};
use atoll_sql_common::error::SqlState;

/// The notifications and LISTENs of an open transaction, in the order of its statements.
#[derive(Debug, Default)]
pub(crate) struct Announcements {
    notifications: Vec<Arc<Notification>>,
    /// The same: equal ones are sent once.
    known: HashSet<Arc<Notification>>,
    bytes: usize,
    changes: Vec<(Arc<Listener>, ListenChange)>,
}

/// A point to which announcements are undone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AnnouncementMark {
    notifications: usize,
    changes: usize,
}

impl Announcements {
    /// Adds a notification, unless the transaction has the same already.
    ///
    /// # Errors
    /// If there are too many.
    pub(crate) fn notify(&mut self, notification: Notification) -> Result<()> {
        if self.known.contains(&notification) {
            return Ok(());
        }
        let bytes = self.bytes + notification.bytes();
        if bytes > WAITING_MAX {
            let most = WAITING_MAX >> 20;
            return Err(SqlState::PROGRAM_LIMIT_EXCEEDED.error(format!(
                "too many notifications in one transaction: more than {most} MiB; send them in several"
            )));
        }
        self.bytes = bytes;
        let notification = Arc::new(notification);
        self.known.insert(Arc::clone(&notification));
        self.notifications.push(notification);
        Ok(())
    }

    /// Adds a LISTEN or UNLISTEN.
    pub(crate) fn listen(&mut self, listener: &Arc<Listener>, change: ListenChange) {
        self.changes.push((Arc::clone(listener), change));
    }

    pub(crate) fn mark(&self) -> AnnouncementMark {
        AnnouncementMark { notifications: self.notifications.len(), changes: self.changes.len() }
    }

    /// Undoes all after a mark.
    pub(crate) fn undo_to(&mut self, mark: AnnouncementMark) {
        self.changes.truncate(mark.changes);
        let from = mark.notifications.min(self.notifications.len());
        for undone in self.notifications.drain(from..) {
            self.bytes -= undone.bytes();
            self.known.remove(&undone);
        }
    }

    fn take(&mut self, position: Position) -> OrderedCommit {
        let Self { notifications, changes, .. } = std::mem::take(self);
        OrderedCommit { position, changes, notifications }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.notifications.is_empty() && self.changes.is_empty()
    }
}

/// The announcements of a transaction that commits. They take effect if it was ordered, even if no caller waits for the
/// end of its commit.
pub(crate) struct AnnouncedCommit {
    all: Arc<Notifications>,
    store: Arc<StoreDatabase>,
    /// Where to wait for the log.
    threads: Handle,
    /// Until the commit is ordered.
    announced: Announcements,
    /// The position of the commit, once it is ordered.
    position: Option<Position>,
}

impl AnnouncedCommit {
    pub(crate) fn new(
        announcements: Announcements,
        all: &Arc<Notifications>,
        store: &Arc<StoreDatabase>,
        threads: &Handle,
    ) -> Self {
        Self {
            all: Arc::clone(all),
            store: Arc::clone(store),
            threads: threads.clone(),
            announced: announcements,
            position: None,
        }
    }

    /// The commit has its place in the order of all.
    pub(crate) fn ordered(&mut self, position: Position) {
        self.position = Some(position);
        self.all.order(self.announced.take(position));
    }

    /// The commit is durable.
    pub(crate) fn finish(mut self) {
        match self.position.take() {
            Some(position) => self.all.deliver_to(position),
            // Without changes it has no place in the order.
            None => self.announced.take(Position(0)).deliver(&self.all),
        }
    }
}

impl Drop for AnnouncedCommit {
    fn drop(&mut self) {
        let Some(position) = self.position.take() else { return };
        let (all, store) = (Arc::clone(&self.all), Arc::clone(&self.store));
        // If the log fails, it is unknown whether the transaction is committed.
        self.threads.spawn(async move {
            if store.sync_to(position).await.is_ok() {
                all.deliver_to(position);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn notification(channel: &str, payload: &str) -> Notification {
        Notification::try_new(7, channel, payload).expect("it is valid")
    }

    /// The payloads that a listener takes.
    fn taken(listener: &Listener) -> Vec<String> {
        listener.take().iter().map(|it| it.payload.to_string()).collect()
    }

    #[test]
    fn equal_notifications_are_sent_once_and_are_new_after_an_undo() {
        let mut announced = Announcements::default();
        announced.notify(notification("a", "1")).unwrap();
        let mark = announced.mark();
        announced.notify(notification("a", "1")).unwrap();
        announced.notify(notification("a", "2")).unwrap();
        announced.undo_to(mark);
        assert_eq!(announced.notifications.len(), 1);
        announced.notify(notification("a", "2")).unwrap();
        announced.notify(notification("b", "1")).unwrap();
        assert_eq!(announced.notifications.len(), 3);
        announced.undo_to(AnnouncementMark::default());
        assert!(announced.is_empty() && announced.known.is_empty() && announced.bytes == 0);
    }

    #[test]
    fn a_transaction_cannot_send_more_than_may_wait() {
        let mut announced = Announcements::default();
        let payload = "x".repeat(7000);
        let sent = (0..4000)
            .map(|at| announced.notify(notification("a", &format!("{at}{payload}"))))
            .take_while(Result::is_ok);
        let count = sent.count();
        assert!((2000..3000).contains(&count), "{count}");
    }

    fn commit(position: u64, notifications: Vec<Notification>) -> OrderedCommit {
        let notifications = notifications.into_iter().map(Arc::new).collect();
        OrderedCommit { position: Position(position), changes: Vec::new(), notifications }
    }

    #[test]
    fn notifications_of_ordered_commits_wait_for_the_log_and_those_behind_them() {
        let all = Arc::new(Notifications::default());
        let listener = Listener::new(&all);
        listener.change(&ListenChange::Listen("a".into()));
        all.order(commit(10, vec![notification("a", "first")]));
        all.order(commit(20, vec![notification("a", "second")]));
        commit(0, vec![notification("a", "alone")]).deliver(&all);
        assert_eq!(taken(&listener), ["alone"]);
        assert!(listener.arrived().now_or_never().is_none());
        all.deliver_to(Position(20));
        assert!(listener.arrived().now_or_never().is_some());
        assert_eq!(taken(&listener), ["first", "second"]);
    }

    #[test]
    fn a_slow_listener_loses_what_it_has_and_takes_no_more() {
        let all = Arc::new(Notifications::default());
        let (slow, quick) = (Listener::new(&all), Listener::new(&all));
        for listener in [&slow, &quick] {
            listener.change(&ListenChange::Listen("a".into()));
        }
        let long = commit(0, vec![notification("a", &"x".repeat(7999))]);
        for _ in 0..WAITING_MAX / 7999 + 1 {
            long.deliver(&all);
            assert_eq!(quick.take().len(), 1);
        }
        assert!(slow.arrived().now_or_never().is_some());
        assert!(slow.take().is_empty() && slow.usage() == 0.0);
        assert!(slow.take_lost() && !slow.take_lost() && !quick.take_lost());
        long.deliver(&all);
        assert_eq!(slow.take().len(), 1);
    }

    #[test]
    fn channels_that_were_left_are_not_heard() {
        let all = Arc::new(Notifications::default());
        let listener = Listener::new(&all);
        listener.change(&ListenChange::Listen("a".into()));
        listener.change(&ListenChange::Listen("a".into()));
        listener.change(&ListenChange::Listen("b".into()));
        commit(0, vec![notification("a", "1"), notification("b", "2")]).deliver(&all);
        listener.change(&ListenChange::Unlisten("a".into()));
        commit(0, vec![notification("a", "3"), notification("b", "4")]).deliver(&all);
        assert_eq!(taken(&listener), ["2", "4"]);
        listener.change(&ListenChange::UnlistenAll);
        commit(0, vec![notification("b", "5")]).deliver(&all);
        assert!(listener.take().is_empty() && listener.channels().is_empty());
        listener.change(&ListenChange::Listen("b".into()));
        drop(listener);
        assert!(all.listeners.lock().is_empty());
    }
}

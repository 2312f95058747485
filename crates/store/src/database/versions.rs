//! The newest version, and the newest that may be shown.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::RwLock;

use super::version::DatabaseVersion;
use crate::log::Position;

/// The newest version, and the newest one on disk.
#[derive(Debug)]
pub(super) struct Versions(RwLock<KnownVersions>);

#[derive(Debug)]
struct KnownVersions {
    newest: Arc<DatabaseVersion>,
    published: Arc<DatabaseVersion>,
    /// Versions after the published one, oldest first; the last one is the newest.
    unsynced: VecDeque<Arc<DatabaseVersion>>,
}

impl Versions {
    pub(super) fn new(version: DatabaseVersion) -> Self {
        let newest = Arc::new(version);
        let published = Arc::clone(&newest);
        Self(RwLock::new(KnownVersions { newest, published, unsynced: VecDeque::new() }))
    }

    pub(super) fn newest(&self) -> Arc<DatabaseVersion> {
        Arc::clone(&self.0.read().newest)
    }

    /// The newest version up to whose position the log is synced; `synced` is called only if it
    /// matters.
    pub(super) fn published(&self, synced: impl FnOnce() -> Position) -> Arc<DatabaseVersion> {
        let known = self.0.read();
        let Some(next) = known.unsynced.front().map(|next| next.position) else {
            return Arc::clone(&known.published);
        };
        drop(known);
        let synced = synced();
        if next > synced {
            return Arc::clone(&self.0.read().published);
        }
        let mut known = self.0.write();
        let mut old = Vec::new();
        while let Some(next) = known.unsynced.pop_front_if(|next| next.position <= synced) {
            old.push(std::mem::replace(&mut known.published, next));
        }
        let published = Arc::clone(&known.published);
        drop(known);
        drop(old);
        published
    }

    /// Adds the next version; it is shown at once, or when the log is synced up to its position. Returns the
    /// previous one, to be dropped when no lock is held.
    pub(super) fn push(&self, next: Arc<DatabaseVersion>, at_once: bool) -> Arc<DatabaseVersion> {
        let mut known = self.0.write();
        if at_once && known.unsynced.is_empty() {
            known.published = Arc::clone(&next);
        } else {
            known.unsynced.push_back(Arc::clone(&next));
        }
        std::mem::replace(&mut known.newest, next)
    }

    /// Shows all versions.
    pub(super) fn publish_all(&self) {
        let mut known = self.0.write();
        known.published = Arc::clone(&known.newest);
        known.unsynced.clear();
    }
}

//! What a supervisor such as systemd is told of the server; nothing where there is none.

use sd_notify::NotifyState;

/// Tells that clients are answered.
pub fn tell_ready() {
    tell(NotifyState::Ready);
}

/// Tells that the server stops.
pub fn tell_stopping() {
    tell(NotifyState::Stopping);
}

fn tell(state: NotifyState<'_>) {
    // A supervisor that does not listen is none.
    let _ = sd_notify::notify(&[state]);
}

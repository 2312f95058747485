//! Signals that tests send to programs they start.

use atoll_sys::{default_signal, signal};

/// Resets the signals that end programs to their default action, in this process and in all that it starts later.
/// Children inherit ignored signals: under `nohup`, or in the background of a script, a program would ignore such a
/// signal, and its test would wait forever.
pub fn default_signals() {
    for number in [signal::HUP, signal::INT, signal::QUIT, signal::TERM] {
        default_signal(number);
    }
}

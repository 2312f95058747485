//! Signals that tests send to programs they start.

use atoll_sys::{default_signal, signal};

/// Gives the signals that end programs their default action, in this process and in all that it starts
/// from now on. What a parent ignores stays ignored in its children: under `nohup`, or in the background
/// of a script, a program that is sent such a signal would run on, and its test wait for ever.
pub fn default_signals() {
    for number in [signal::HUP, signal::INT, signal::QUIT, signal::TERM] {
        default_signal(number);
    }
}

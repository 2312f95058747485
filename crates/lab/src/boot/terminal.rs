//! The terminal that a shell in the guest takes over.

use std::io::{IsTerminal, stdin, stdout};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// This process's terminal; gets back its settings when dropped, as QEMU, which makes it raw, may be
/// killed before it does so itself.
pub(super) struct GuestTerminal {
    before: Termios,
}

impl GuestTerminal {
    /// None unless standard input and output are both a terminal.
    pub(super) fn own() -> Option<Self> {
        if !(stdin().is_terminal() && stdout().is_terminal()) {
            return None;
        }
        Some(Self { before: tcgetattr(stdin()).ok()? })
    }

    /// Its size as `stty` takes it.
    pub(super) fn words(&self) -> String {
        match tcgetwinsize(stdout()) {
            Ok(size) => format!("rows {} cols {}", size.ws_row, size.ws_col),
            Err(_) => String::new(),
        }
    }
}

impl Drop for GuestTerminal {
    fn drop(&mut self) {
        // A terminal that is gone has no settings to get back.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}

//! The terminal: whether there is one, how wide it is, whether it may be coloured; and stderr.

use std::io::{IsTerminal, Write, stderr, stdout};

use terminal_size::{Width, terminal_size_of};

/// Bold red, and back.
const ERROR: (&str, &str) = ("\x1b[1;31m", "\x1b[0m");

/// Width of the terminal on stdout; None if stdout is not a terminal.
pub fn width() -> Option<usize> {
    if !stdout().is_terminal() {
        return None;
    }
    terminal_size_of(stdout()).map(|(Width(columns), _)| usize::from(columns))
}

/// Whether a stream that is a terminal may be coloured (<https://no-color.org>).
pub fn colors(is_terminal: bool) -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    is_terminal && !is_set("NO_COLOR") && !is_dumb
}

/// Writes a line to stderr. A failure to write is ignored.
pub fn say(line: impl std::fmt::Display) {
    let _ = writeln!(stderr(), "{line}");
}

/// Writes `error: …` to stderr.
pub fn say_error(message: impl std::fmt::Display) {
    let (on, off) = if colors(stderr().is_terminal()) { ERROR } else { ("", "") };
    say(format_args!("{on}error:{off} {message}"));
}

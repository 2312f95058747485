//! Looks again and again: redrawn on a terminal, one after the other elsewhere.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use atoll_sys::{block_signals, signal, wait_signal};
use terminal_size::{Height, Width, terminal_size_of};

use super::session::WatchSession;
use super::{Look, WhereArgs, json, text};
use crate::exit::{CommandError, Exit};

/// Signals that end the watch. They are taken while waiting, so that the screen is restored.
const ENDING: [i32; 3] = [signal::INT, signal::TERM, signal::HUP];
/// The other screen, without a cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
/// Back, as it was.
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// To the first line.
const HOME: &str = "\x1b[H";
/// Clears to the end of the line, and to the end of the screen.
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_REST: &str = "\x1b[J";

/// Watches until a signal, the last requested look, or the end of the last process.
pub(super) fn run(args: &WhereArgs, every: Duration) -> Result<(), CommandError> {
    block_signals(&ENDING).map_err(anyhow::Error::from)?;
    let mut session = WatchSession::open(args, Some(every))?;
    session.prime()?;
    let is_screen = !args.jsonl && io::stdout().is_terminal();
    let screen = is_screen.then(Screen::enter).transpose()?;
    let result = watch(args, every, &mut session, is_screen);
    drop(screen);
    result
}

fn watch(
    args: &WhereArgs,
    every: Duration,
    session: &mut WatchSession,
    is_screen: bool,
) -> Result<(), CommandError> {
    let mut next = Instant::now() + args.over.min(every);
    let mut looks = 0;
    loop {
        let wait = next.saturating_duration_since(Instant::now());
        if wait_signal(&ENDING, wait).map_err(anyhow::Error::from)?.is_some() {
            return Err(CommandError::quietly(Exit::Interrupted));
        }
        let look = session.look(args.over.min(every))?;
        if look.snapshot.processes.is_empty() {
            return Err(CommandError::with(
                Exit::Statement,
                "every process that was watched has ended",
            ));
        }
        show(args, session, &look, is_screen)?;
        looks += 1;
        if args.count.is_some_and(|count| looks >= count) {
            return Ok(());
        }
        // A late look is not made up for.
        next = (next + every).max(Instant::now());
    }
}

fn show(args: &WhereArgs, session: &WatchSession, look: &Look, is_screen: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if args.jsonl {
        writeln!(out, "{}", json::document(session, look, args.threads))?;
    } else if is_screen {
        let size = terminal_size_of(io::stdout());
        let (Width(width), Height(height)) = size.unwrap_or((Width(80), Height(24)));
        let page = text::page(session, look, args.threads, Some(usize::from(width)));
        out.write_all(frame(&page, usize::from(width), usize::from(height)).as_bytes())?;
    } else {
        session.tell_ended(look);
        writeln!(out, "{}", text::page(session, look, args.threads, None))?;
    }
    out.flush()
}

/// A page as it is drawn over the last one: no line wraps, none runs off the screen.
fn frame(page: &str, width: usize, height: usize) -> String {
    let mut frame = HOME.to_owned();
    let mut separator = "";
    for line in page.lines().take(height.max(1)) {
        frame.push_str(separator);
        frame.extend(line.chars().take(width));
        frame.push_str(CLEAR_LINE);
        separator = "\r\n";
    }
    frame.push_str(CLEAR_REST);
    frame
}

/// The terminal's other screen, left when this is dropped.
struct Screen;

impl Screen {
    fn enter() -> io::Result<Self> {
        let mut out = io::stdout().lock();
        out.write_all(ENTER.as_bytes())?;
        out.flush()?;
        Ok(Self)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let mut out = io::stdout().lock();
        // A terminal that went away needs no restoring.
        let _ = out.write_all(LEAVE.as_bytes()).and_then(|()| out.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_fits_the_screen_and_covers_the_last_one() {
        let frame = frame("wide line\nä\nthird\n", 4, 2);
        assert_eq!(frame, "\x1b[Hwide\x1b[K\r\nä\x1b[K\x1b[J");
    }
}

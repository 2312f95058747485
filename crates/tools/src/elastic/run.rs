//! `run`: starts a program and gives it the cores that it needs.

use std::ffi::OsString;
use std::process::{Child, Command};
use std::time::Duration;

use atoll_elastic::monitor::ElasticTarget;
use atoll_elastic::session::TargetSession;
use atoll_sys::{Ending, TakenSignal, ended_child, kill_process, signal, wait_signal};

use super::control::{HandArgs, PolicyArgs};
use super::drive::{Drive, Woken};
use super::setup::{Surroundings, session_error, set_knob};
use crate::exit::{CommandError, Exit};
use crate::terminal;

/// How long a wait for a program is that is not followed any longer.
const WAIT: Duration = Duration::from_millis(200);

/// Arguments of `run`.
#[derive(clap::Args, Debug)]
pub(super) struct RunArgs {
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    hand: HandArgs,
    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    command: Vec<OsString>,
}

pub(super) fn run(args: &RunArgs) -> Result<(), CommandError> {
    let surroundings = Surroundings::open()?;
    let all = surroundings.machine.cores.len();
    args.policy.policy().parameters(all).map_err(|error| CommandError::with(Exit::Usage, error))?;
    atoll_sys::default_signal(signal::CHLD);
    let child = start(&args.command)?;
    let pid = child.id();
    Drive::take_signals()?;
    let mut ending = None;
    let followed = follow(args, &surroundings, pid, &mut ending);
    let ending = match (followed, ending) {
        (Ok(()), Some(ending)) => ending,
        (Ok(()), None) => wait(pid)?,
        // A program that ended before it could be followed did not fail.
        (Err(_), Some(ending)) => ending,
        (Err(error), None) => {
            // The program goes on with all of its cores: it is not ours to end.
            let was_running = ended_child(pid as i32).ok().flatten();
            if let Some(ended) = was_running {
                return end(ended.ending);
            }
            terminal::say_error(error.message.unwrap_or_default());
            terminal::say("the program runs on without elastic cores");
            wait(pid)?
        }
    };
    end(ending)
}

fn start(command: &[OsString]) -> Result<Child, CommandError> {
    let [program, arguments @ ..] = command else {
        return Err(CommandError::with(Exit::Usage, "name a program to run"));
    };
    Command::new(program).args(arguments).spawn().map_err(|error| {
        let exit = match error.kind() {
            std::io::ErrorKind::NotFound => Exit::NotFound,
            _ => Exit::CannotRun,
        };
        CommandError::with(exit, format!("{}: {error}", program.to_string_lossy()))
    })
}

fn follow(
    args: &RunArgs,
    surroundings: &Surroundings,
    pid: u32,
    ending: &mut Option<Ending>,
) -> Result<(), CommandError> {
    let target = ElasticTarget::Process(pid);
    let (source, processes) = surroundings.open_target(&target, args.policy.work())?;
    let allowed = surroundings.allowed(&processes, args.policy.cpus())?;
    let (table, offered) = surroundings.table(&allowed);
    let name = args.command.first().map(|name| name.to_string_lossy()).unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or_default().to_owned();
    let hand = surroundings.hand(&args.hand, &target, &name, &processes, &allowed)?;
    let policy = args.policy.policy();
    let mut session =
        TargetSession::new(name, policy, table.clone(), offered, Box::new(source), hand)
            .map_err(session_error)?;
    surroundings.set_load(&mut session, args.policy.load())?;
    set_knob(&mut session, args.policy.dbms());
    surroundings.set_mover(&mut session, &args.hand);
    let interval = args.policy.interval();
    let mut drive = Drive::new(surroundings, &args.hand, vec![(session, 0)], table, interval)?;
    let ran = drive.run(|taken| {
        pass_on(pid, taken);
        match ended_child(pid as i32) {
            Ok(Some(ended)) => {
                *ending = Some(ended.ending);
                Ok(Woken::End)
            }
            _ => Ok(Woken::GoOn),
        }
    });
    let finished = drive.finish();
    ran?;
    finished
}

/// Forwards a signal sent by a process; the program already has those of the terminal's keys.
fn pass_on(pid: u32, taken: Option<TakenSignal>) {
    if let Some(taken) = taken.filter(|taken| taken.is_sent && taken.number != signal::CHLD) {
        // It may have ended in the meantime.
        let _ = kill_process(pid as i32, taken.number);
    }
}

/// Waits for the end of the program.
fn wait(pid: u32) -> Result<Ending, CommandError> {
    let taken = [signal::INT, signal::TERM, signal::HUP, signal::QUIT, signal::CHLD];
    loop {
        match ended_child(pid as i32) {
            Ok(Some(ended)) => return Ok(ended.ending),
            Ok(None) => {}
            Err(error) => return Err(anyhow::Error::from(error).into()),
        }
        pass_on(pid, wait_signal(&taken, WAIT).map_err(anyhow::Error::from)?);
    }
}

fn end(ending: Ending) -> Result<(), CommandError> {
    match ending {
        Ending::Code(0) => Ok(()),
        Ending::Code(code) => Err(CommandError::quietly(Exit::Child(code))),
        Ending::Signal(number) => {
            Err(CommandError::quietly(Exit::Child(128_u8.saturating_add(number as u8))))
        }
    }
}

//! `attach`: gives a running program the cores that it needs.

use atoll_elastic::session::TargetSession;
use atoll_sys::signal;

use super::control::{HandArgs, PolicyArgs, TargetArgs};
use super::drive::{Drive, DriveEnd, Woken};
use super::setup::{Surroundings, session_error, set_knob};
use crate::exit::{CommandError, Exit};
use crate::terminal;

/// Arguments of `attach`.
#[derive(clap::Args, Debug)]
pub(super) struct AttachArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    hand: HandArgs,
    /// End after this many seconds
    #[arg(long = "for", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
}

pub(super) fn run(args: &AttachArgs) -> Result<(), CommandError> {
    Drive::take_signals()?;
    let surroundings = Surroundings::open()?;
    let target = surroundings.target(&args.target)?;
    let (source, processes) = surroundings.open_target(&target, args.policy.work())?;
    let name = target.to_string();
    // Undoes a killed run before looking at the cpus that the target may use.
    if !args.hand.dry_run {
        surroundings.journals(&args.hand.journal.path())?;
    }
    let allowed = surroundings.allowed(&processes, args.policy.cpus())?;
    let (table, offered) = surroundings.table(&allowed);
    let policy = args.policy.policy();
    policy.parameters(table.len()).map_err(|error| CommandError::with(Exit::Usage, error))?;
    let hand = surroundings.hand(&args.hand, &target, &name, &processes, &allowed)?;
    let mut session =
        TargetSession::new(name.clone(), policy, table.clone(), offered, Box::new(source), hand)
            .map_err(session_error)?;
    surroundings.set_load(&mut session, args.policy.load())?;
    set_knob(&mut session, args.policy.dbms());
    surroundings.set_mover(&mut session, &args.hand);
    if args.hand.verbose {
        let how = session.actuator().unwrap_or_else(|| "nothing is changed".to_owned());
        terminal::say(format_args!("{name}: cpus {allowed}; {how}"));
    }
    let interval = args.policy.interval();
    let mut drive = Drive::new(&surroundings, &args.hand, vec![(session, 0)], table, interval)?;
    let ran = drive.run(until(args.seconds));
    let finished = drive.finish();
    ended(ran?)?;
    finished
}

/// Ends at a signal or when the time is over.
pub(super) fn until(
    seconds: Option<u64>,
) -> impl FnMut(Option<atoll_sys::TakenSignal>) -> Result<Woken, CommandError> {
    let began = std::time::Instant::now();
    move |_| match seconds.is_some_and(|seconds| began.elapsed().as_secs() >= seconds) {
        true => Ok(Woken::End),
        false => Ok(Woken::Leave),
    }
}

/// A run ended by a signal did not fail; Ctrl-C has its own code.
pub(super) fn ended(end: DriveEnd) -> Result<(), CommandError> {
    match end {
        DriveEnd::Signal(number) if number == signal::INT => {
            Err(CommandError::quietly(Exit::Interrupted))
        }
        DriveEnd::Targets => {
            terminal::say("the target has ended");
            Ok(())
        }
        DriveEnd::Signal(_) | DriveEnd::Caller => Ok(()),
    }
}

//! `elastic`: another program gets only the cores that it needs, where its data is.
//!
//! | File | Does |
//! |---|---|
//! | `control` | flags for how cores are chosen and given |
//! | `setup` | a target that was named as a session: its cores, its actuator, its journal |
//! | `followed` | a target that a run follows |
//! | `drive` | looks, decides and acts until the targets end or a signal comes |
//! | `run`, `attach`, `manage` | a program that is started, one that runs, several of a file |
//! | `recommend` | recommended cores, and why |
//! | `status` | runs and their cores; undoing killed ones |
//! | `record`, `metrics` | traces as CSV, JSON or a picture; Prometheus |
//! | `top`, `screen` | the live view, and a trace in it |

mod attach;
mod control;
mod drive;
mod followed;
mod manage;
mod metrics;
mod net;
mod recommend;
mod record;
mod run;
mod screen;
mod setup;
mod status;
mod top;

use clap::Subcommand;

use crate::exit::CommandError;

/// What `--help` shows.
pub const EXAMPLES: &str = "\
Examples:

Give a server only the cores that it needs, where its data is:
  atoll elastic run -- postgres -D /data
  atoll elastic attach --unit postgresql@15-main.service --cores-min 2
  atoll elastic attach --pid 4711 --mode dense --trace trace.csv
  atoll elastic attach --cgroup system.slice/mariadb.service --metrics 9466
  atoll elastic attach --unit mariadb.service --dbms 'mariadb:--socket=/run/mysqld/mysqld.sock'

What would it do, and why?
  atoll elastic recommend --pid 4711            after looking for 5 seconds
  atoll elastic attach --pid 4711 --dry-run     decides and changes nothing
  atoll elastic show-net                        the rules: a Predicate/Transition net
  atoll elastic show-net -o net.svg

Several servers on one machine, on disjoint nodes:
  atoll elastic manage elastic.toml

What is going on?
  atoll elastic status                          every run, its cores and its last decision
  atoll elastic top --pid 4711                  a row for each cpu, a colour for each thread
  atoll elastic picture trace.csv -o trace.svg
  atoll elastic replay trace.csv --speed 4
  atoll elastic undo                            give back what runs that were killed have left

Cores are decided on as in Dominico 2018: a core more when the load of its cores is above --thmax percent
(70), if it pays; a core less when the load would fit. Everything that is changed is written to a journal
first, and given back when the run ends.";

/// Arguments.
#[derive(clap::Args, Debug)]
pub struct ElasticArgs {
    #[command(subcommand)]
    command: ElasticCommand,
}

/// The commands.
#[derive(Debug, Subcommand)]
enum ElasticCommand {
    /// Start a program and give it the cores that it needs
    Run(run::RunArgs),
    /// Give a program that runs the cores that it needs
    Attach(attach::AttachArgs),
    /// Share the cores of this machine between the targets of a TOML file
    Manage(manage::ManageArgs),
    /// Say how many cores a program needs and where, and why
    Recommend(recommend::RecommendArgs),
    /// Show every run, its cores and its last decision
    Status(status::StatusArgs),
    /// Undo the changes left by killed runs
    Undo(status::UndoArgs),
    /// Watch the threads of a program on the cpus
    Top(top::TopArgs),
    /// Show a trace as it happened
    Replay(top::ReplayArgs),
    /// Print the Predicate/Transition net, or draw it
    ShowNet(net::NetArgs),
    /// Draw a trace
    Picture(record::PictureArgs),
}

/// Runs it.
pub(crate) fn run(args: &ElasticArgs) -> Result<(), CommandError> {
    match &args.command {
        ElasticCommand::Run(args) => run::run(args),
        ElasticCommand::Attach(args) => attach::run(args),
        ElasticCommand::Manage(args) => manage::run(args),
        ElasticCommand::Recommend(args) => recommend::run(args),
        ElasticCommand::Status(args) => status::show(args),
        ElasticCommand::Undo(args) => status::undo_all(args),
        ElasticCommand::Top(args) => top::run(args),
        ElasticCommand::Replay(args) => top::replay(args),
        ElasticCommand::ShowNet(args) => net::run(args),
        ElasticCommand::Picture(args) => record::picture(args),
    }
}

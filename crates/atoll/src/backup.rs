//! `atoll backup`: a copy of a data directory that is closed, or of the database of a server that runs.

use std::env;
use std::io::{self, Write};
use std::path::{Path, absolute};
use std::str::FromStr;

use atoll_tools::data;
use atoll_tools::exit::{CommandError, Exit};
use tokio_postgres::{Client, Config, Error, NoTls};

use crate::cli::BackupArgs;

/// Runs the command.
pub(crate) async fn run(args: &BackupArgs) -> Result<(), CommandError> {
    match (&args.server, &args.data) {
        (Some(server), _) => of_server(server, &args.to).await,
        (None, Some(data)) => {
            data::backup(&data::BackupArgs { data: data.clone(), to: args.to.clone() })
        }
        (None, None) => Err(CommandError::with(
            Exit::Usage,
            "what to copy is missing; give --data DIR for a database that is closed, or --server URL for one that is \
             served",
        )),
    }
}

/// Has a server copy its database.
async fn of_server(server: &str, to: &Path) -> Result<(), CommandError> {
    // The server has a working directory of its own.
    let to = absolute(to)?;
    let Some(path) = to.to_str() else {
        let message = format!("the name of {} is not UTF-8", to.display());
        return Err(CommandError::with(Exit::Usage, message));
    };
    let client = connect(server).await?;
    let backup = format!("BACKUP DATABASE TO '{}'", path.replace('\'', "''"));
    client.batch_execute(&backup).await.map_err(told)?;
    Ok(writeln!(io::stdout(), "the server's database is copied to {path} and checked")?)
}

async fn connect(server: &str) -> Result<Client, CommandError> {
    let config = Config::from_str(server);
    let mut config = config.map_err(|error| {
        let expected = "expected a URL such as postgres://boss@127.0.0.1:5432, or host=/tmp";
        CommandError::with(Exit::Usage, format!("--server: {error}; {expected}"))
    })?;
    if config.get_hosts().is_empty() {
        return Err(CommandError::with(Exit::Usage, "--server needs a host: host=/tmp"));
    }
    if let (None, Ok(password)) = (config.get_password(), env::var("PGPASSWORD")) {
        config.password(password);
    }
    if config.get_dbname().is_none() {
        config.dbname("atoll");
    }
    let connected = config.application_name("atoll backup").connect(NoTls).await;
    let (client, connection) = connected.map_err(told)?;
    tokio::spawn(connection);
    Ok(client)
}

/// What a server said, or why it said nothing.
fn told(error: Error) -> CommandError {
    match error.as_db_error() {
        Some(error) => {
            let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            let message = format!("{} ({}){hint}", error.message(), error.code().code());
            CommandError::with(Exit::Statement, message)
        }
        None => anyhow::Error::from(error).into(),
    }
}

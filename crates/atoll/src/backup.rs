//! `atoll backup`: copies a closed data directory, or the database of a running server.

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
            "nothing to copy; give --data DIR for a closed database, or --server URL for one that is being \
             served",
        )),
    }
}

/// Has a server copy its database.
async fn of_server(server: &str, to: &Path) -> Result<(), CommandError> {
    // The server resolves relative paths against its own working directory.
    let to = absolute(to)?;
    let Some(path) = to.to_str() else {
        let message = format!("the name of {} is not UTF-8", to.display());
        return Err(CommandError::with(Exit::Usage, message));
    };
    let client = connect(server).await?;
    let backup = format!("BACKUP DATABASE TO '{}'", path.replace('\'', "''"));
    client.batch_execute(&backup).await.map_err(server_error)?;
    Ok(writeln!(io::stdout(), "copied the server's database to {path} and checked the copy")?)
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
    let (client, connection) = connected.map_err(server_error)?;
    tokio::spawn(connection);
    Ok(client)
}

/// The server's error message, or the connection error.
fn server_error(error: Error) -> CommandError {
    match error.as_db_error() {
        Some(error) => {
            let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            let message = format!("{} ({}){hint}", error.message(), error.code().code());
            CommandError::with(Exit::Statement, message)
        }
        None => anyhow::Error::from(error).into(),
    }
}

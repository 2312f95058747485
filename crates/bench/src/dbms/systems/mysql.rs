//! MySQL and MariaDB: a server without a network, on a socket in a directory of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use anyhow::{Context, Result, ensure};
use atoll_sys::{kill_process, signal, tie_to_parent};
use tempfile::TempDir;

use super::mysql_client::MysqlClient;
use super::{UNPRIVILEGED, directory, is_public};
use crate::dbms::clients::{DbmsOutcome, DbmsWork, drive};
use crate::dbms::data::DbmsData;
use crate::dbms::schema::literal;
use crate::dbms::system::{DbmsEngine, InstanceOptions};
use crate::protocol::Answer;
use crate::server::process::{is_root, start};

/// How tables are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dbms) enum MysqlTables {
    /// In memory alone, as the paper has them.
    Memory,
    Innodb,
}

impl MysqlTables {
    /// The engine's name.
    pub(in crate::dbms) fn engine(self) -> &'static str {
        match self {
            Self::Memory => "MEMORY",
            Self::Innodb => "InnoDB",
        }
    }

    /// How keys are indexed. MEMORY tables use hashes by default, which are slow for many equal keys.
    pub(in crate::dbms) fn index_method(self) -> &'static str {
        match self {
            Self::Memory => "USING BTREE",
            Self::Innodb => "",
        }
    }
}

/// Programs of a version.
#[derive(Clone, Debug)]
pub(in crate::dbms) struct MysqlPrograms {
    server: PathBuf,
    /// Where its messages are.
    share: PathBuf,
}

impl MysqlPrograms {
    /// MariaDB: the distribution's, else that of `setup`.
    pub(in crate::dbms) fn mariadb() -> Result<Self> {
        let own = directory()?.join("mariadb");
        let places = [Path::new("/"), &own];
        let found = places.into_iter().find(|root| root.join("usr/sbin/mariadbd").is_file());
        let root = found.context(
            "MariaDB is not installed; 'atoll bench dbms setup mariadb' installs it (Debian: mariadb-server)",
        )?;
        Ok(Self { server: root.join("usr/sbin/mariadbd"), share: root.join("usr/share/mysql") })
    }

    /// MySQL 5.5, which only `setup` installs.
    pub(in crate::dbms) fn mysql() -> Result<Self> {
        let own = directory()?.join("mysql");
        let server = own.join("mysqld");
        ensure!(
            server.is_file(),
            "MySQL 5.5 is not installed; 'atoll bench dbms setup mysql' installs it"
        );
        Ok(Self { server, share: own.join("share") })
    }
}

/// A running server.
pub(in crate::dbms) struct Mysql {
    child: Child,
    version: String,
    settings: String,
    tables: MysqlTables,
    socket: PathBuf,
    options: InstanceOptions,
    /// Its files.
    _directory: TempDir,
}

impl Mysql {
    /// Starts a server over an empty directory, without accounts: its socket is for its user and root alone.
    pub(in crate::dbms) fn start(
        programs: MysqlPrograms,
        tables: MysqlTables,
        options: InstanceOptions,
    ) -> Result<Self> {
        let directory = tempfile::tempdir_in(&options.directory)?;
        let place = directory.path();
        let is_root = is_root();
        let is_unprivileged = is_root && is_public(&programs.server);
        let mut command = match is_unprivileged {
            false => Command::new(&programs.server),
            true => {
                let owned = Command::new("chown").arg(UNPRIVILEGED).arg(place).status();
                ensure!(owned.is_ok_and(|it| it.success()), "chown of {} failed", place.display());
                let mut command = Command::new("setpriv");
                command.args(["--reuid", UNPRIVILEGED, "--clear-groups", "--pdeathsig", "KILL"]);
                command.arg(&programs.server);
                command
            }
        };
        let path = |name: &str, path: &Path| format!("--{name}={}", path.display());
        let socket = place.join("s");
        let buffer = match tables {
            MysqlTables::Memory => 64 << 20,
            MysqlTables::Innodb => options.buffer_bytes,
        };
        command.args([
            "--no-defaults",
            "--skip-networking",
            "--skip-grant-tables",
            "--local-infile=1",
        ]);
        command.args([path("datadir", place), path("tmpdir", place), path("socket", &socket)]);
        command
            .args([path("lc-messages-dir", &programs.share), path("pid-file", &place.join("pid"))]);
        command.arg(path("character-sets-dir", &programs.share.join("charsets")));
        let settings = [
            format!("innodb-buffer-pool-size={buffer}"),
            "innodb-flush-log-at-trx-commit=0".to_owned(),
            format!("max-heap-table-size={}", 64_u64 << 30),
            format!("max-connections={}", options.clients + 10),
        ];
        command.args(settings.iter().map(|setting| format!("--{setting}")));
        if is_root && !is_unprivileged {
            command.arg("--user=root");
        }
        tie_to_parent(&mut command, signal::KILL, options.mask);
        let (child, _) = start(command, "ready for connections")?;
        let settings = format!("{} tables, {}", tables.engine(), settings.join(", "));
        let version = String::new();
        let mut server =
            Self { child, version, settings, tables, socket, options, _directory: directory };
        let mut client = MysqlClient::connect(&server.socket, server.options.patience)?;
        client.run("CREATE DATABASE bench")?;
        let version = client.answer("SELECT version()")?.values.into_iter().flatten().flatten();
        server.version = version.collect();
        Ok(server)
    }

    fn client(&self) -> Result<MysqlClient> {
        let mut client = MysqlClient::connect(&self.socket, self.options.patience)?;
        client.run("USE bench")?;
        Ok(client)
    }
}

impl DbmsEngine for Mysql {
    fn version(&self) -> String {
        self.version.clone()
    }

    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn process(&self) -> (u32, i32) {
        (self.child.id(), signal::KILL)
    }

    fn load(&mut self, data: &DbmsData) -> Result<()> {
        let mut client = self.client()?;
        for table in data.tables() {
            let name = table.name;
            client.run(&table.create_mysql(self.tables))?;
            if !data.is_filled(name) {
                continue;
            }
            let (file, text) = (data.text(name), literal(&data.text(name)));
            let load =
                format!("LOAD DATA LOCAL INFILE {text} INTO TABLE {name} FIELDS TERMINATED BY '|'");
            client.load(&load, &file).with_context(|| format!("cannot load {name}"))?;
            client.run(&format!("ANALYZE TABLE {name}"))?;
        }
        Ok(())
    }

    fn answer(&mut self, sql: &str) -> Result<Answer> {
        self.client()?.answer(sql)
    }

    fn run(&mut self, work: &DbmsWork) -> Result<DbmsOutcome> {
        drive(|| self.client(), work, self.options.cpus.as_ref())
    }
}

impl Drop for Mysql {
    fn drop(&mut self) {
        let _ = kill_process(self.child.id().cast_signed(), signal::KILL);
        let _ = self.child.wait();
    }
}

//! `--tpch`.

use atoll_sql::tpch;
use atoll_topology::Bytes;

use super::Shell;
use super::stop::Stop;
use crate::progress::{LoadBar, QueryBar};

impl Shell {
    /// Loads the TPC-H tables.
    pub(super) async fn load_tpch(&mut self, scale: f64) -> Result<(), Stop> {
        let bar = LoadBar::new(tpch::TABLES.len(), self.settings.progress);
        let mut done = |loaded: &tpch::LoadedTpchTable| {
            let size = Bytes(loaded.bytes as u64);
            bar.done(format!("{}: {} rows, {size}", loaded.table, loaded.rows));
        };
        let load = tpch::load(&self.session, scale, &mut done);
        let loaded = self.interrupts.unless(&mut QueryBar::new(false), None, load).await?;
        loaded.map_err(|error| Stop::failed(format!("cannot load TPC-H: {error}")))
    }
}

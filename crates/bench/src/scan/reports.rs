//! Reports alongside the clients: sessions that group all bookings again and again, on the workers of the clients or on
//! cores of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use atoll_sql::Session;

use super::client::ClientLoad;
use super::ours::{BookingDatabase, LoadRun};

/// A report: all rows, several columns, some thousand groups.
const REPORT: &str = "SELECT origin, cabin, count(*), sum(total_cents), avg(passengers), max(distance_km) \
                      FROM bookings GROUP BY origin, cabin";
/// Name of the pool of the reports.
const POOL: &str = "reports";

/// Results of clients alongside reports.
pub(super) struct WithReports {
    pub(super) clients: LoadRun,
    /// Reports a second.
    pub(super) reports: f64,
}

impl BookingDatabase {
    /// A closed loop alongside concurrent reports, which have the last half of the cores to themselves if
    /// they have a pool.
    pub(super) fn run_with_reports(
        &mut self,
        load: ClientLoad,
        time: Duration,
        has_pool: bool,
    ) -> Result<WithReports> {
        let cores = self.cores();
        if has_pool {
            let last = cores - 1;
            self.run(&format!("CREATE POOL {POOL} ON CORES {}-{last}", cores - cores / 2))?;
        }
        let done = self.run_reports_and_clients(load, time, cores / 2, has_pool);
        if has_pool {
            self.run(&format!("DROP POOL {POOL}"))?;
        }
        done
    }

    fn run_reports_and_clients(
        &mut self,
        load: ClientLoad,
        time: Duration,
        reports: usize,
        has_pool: bool,
    ) -> Result<WithReports> {
        let is_over = Arc::new(AtomicBool::new(false));
        let mut tasks = Vec::with_capacity(reports);
        for number in 0..reports {
            let (session, is_over) = (self.session()?, Arc::clone(&is_over));
            tasks.push(self.spawn(number, run_reports(session, is_over, has_pool)));
        }
        let begun = Instant::now();
        let clients = self.closed(load, time);
        is_over.store(true, Ordering::Relaxed);
        let count: u64 = self.wait(tasks)?.into_iter().sum();
        let seconds = begun.elapsed().as_secs_f64();
        Ok(WithReports { clients: clients?, reports: count as f64 / seconds })
    }
}

/// Runs reports until it is over; how many.
async fn run_reports(session: Session, is_over: Arc<AtomicBool>, has_pool: bool) -> Result<u64> {
    if has_pool {
        session.run(&format!("SET atoll.pool = {POOL}")).await?.collect().await?;
    }
    let mut count = 0;
    while !is_over.load(Ordering::Relaxed) {
        session.run(REPORT).await?.collect().await?;
        count += 1;
    }
    Ok(count)
}

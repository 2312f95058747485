//! Verifies the placement of tables and threads through the system tables, which ask the kernel.

use atoll_sql::Session;

use super::ask;
use super::facts::{PageRow, PlacementFacts, WorkerRow};

const PAGES: &str = "SELECT * FROM atoll.pages ORDER BY \"table\", wanted_node, found_node";
const WORKERS: &str = "SELECT * FROM atoll.workers ORDER BY worker";

/// Reads the placement back. A failure to read is a problem as well.
pub(super) async fn verify(session: &Session) -> PlacementFacts {
    let mut problems = Vec::new();
    let pages = ask::rows(session, PAGES).await;
    let pages: Vec<PageRow> = pages.unwrap_or_else(|error| {
        problems.push(format!("cannot read the homes of pages: {error:#}"));
        Vec::new()
    });
    let workers = ask::rows(session, WORKERS).await;
    let workers: Vec<WorkerRow> = workers.unwrap_or_else(|error| {
        problems.push(format!("cannot read the bindings of threads: {error:#}"));
        Vec::new()
    });
    judged(pages, workers, problems)
}

fn judged(
    pages: Vec<PageRow>,
    workers: Vec<WorkerRow>,
    mut problems: Vec<String>,
) -> PlacementFacts {
    let count = |chosen: fn(&PageRow) -> bool| -> u64 {
        pages.iter().filter(|row| chosen(row)).map(|row| row.pages).sum()
    };
    let untouched = count(|row| row.found_node.is_none());
    let free = count(|row| row.found_node.is_some() && row.wanted_node.is_none());
    let at_home = count(|row| row.found_node.is_some() && row.found_node == row.wanted_node);
    let elsewhere = count(|row| row.found_node.is_some()) - free - at_home;
    if elsewhere > 0 {
        problems.push(format!("{elsewhere} pages are on the wrong node"));
    }
    if at_home + elsewhere + free == 0 && problems.is_empty() {
        problems.push("the kernel reports no pages for the tables".to_owned());
    }
    let unbound = workers.iter().filter(|worker| !worker.bound);
    problems.extend(unbound.map(|worker| format!("worker {}: {}", worker.worker, worker.binding)));
    PlacementFacts {
        pages,
        workers,
        pages_at_home: at_home,
        pages_elsewhere: elsewhere,
        pages_free: free,
        pages_untouched: untouched,
        problems,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(wanted_node: Option<u32>, found_node: Option<u32>, pages: u64) -> PageRow {
        let bytes = pages * 4096;
        PageRow { table: "t".into(), wanted_node, found_node, pages, bytes, sampled: false }
    }

    fn worker(bound: bool) -> WorkerRow {
        WorkerRow {
            worker: 1,
            node: 0,
            domain: 0,
            cpus_wanted: "0-1".into(),
            cpus_found: Some("0-3".into()),
            cpu_seen: Some(3),
            bound,
            binding: "free to run on 0-3".into(),
        }
    }

    #[test]
    fn pages_at_home_and_bound_threads_raise_no_problem() {
        let rows = vec![
            pages(Some(0), Some(0), 5),
            pages(Some(1), Some(1), 6),
            pages(None, Some(1), 2),
            pages(Some(1), None, 1),
        ];
        let placement = judged(rows, vec![worker(true)], Vec::new());
        assert_eq!(placement.pages_at_home, 11);
        assert_eq!(placement.pages_free, 2);
        assert_eq!(placement.pages_untouched, 1);
        assert_eq!(placement.problems, [""; 0]);
    }

    #[test]
    fn misplaced_pages_and_unbound_threads_are_reported() {
        let rows = vec![pages(Some(0), Some(1), 7), pages(Some(0), Some(0), 1)];
        let placement = judged(rows, vec![worker(false)], Vec::new());
        assert_eq!(placement.pages_elsewhere, 7);
        assert_eq!(
            placement.problems,
            ["7 pages are on the wrong node", "worker 1: free to run on 0-3"]
        );
    }

    #[test]
    fn missing_pages_are_a_problem() {
        assert_eq!(judged(Vec::new(), Vec::new(), Vec::new()).problems.len(), 1);
    }
}

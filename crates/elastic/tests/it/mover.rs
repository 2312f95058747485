//! Memory follows the cores: late, recorded first, and reported as left by `undo`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use atoll_elastic::actuate::{PageCalls, PageMover, Record, undo};
use atoll_process::inspect::{ProcessId, identify};
use atoll_sys::{CallError, Root};
use atoll_topology::NodeSet;

use crate::fake::{FakeThreads, FakeUnits, Journals};

/// Fake memory that records moves.
#[derive(Debug, Default)]
struct FakePages {
    moved: Mutex<Vec<String>>,
    answer: Option<i32>,
}

impl PageCalls for FakePages {
    fn migrate(&self, process: ProcessId, from: &NodeSet, to: &NodeSet) -> Result<u64, CallError> {
        self.moved.lock().unwrap().push(format!("{} {from} to {to}", process.pid));
        match self.answer {
            None => Ok(0),
            Some(errno) if errno > 0 => Err(CallError { call: "migrate_pages", errno }),
            Some(left) => Ok(u64::from(left.unsigned_abs())),
        }
    }
}

impl FakePages {
    fn moved(&self) -> Vec<String> {
        self.moved.lock().unwrap().clone()
    }
}

fn nodes(list: &str) -> NodeSet {
    NodeSet::parse(list).unwrap()
}

fn mover(pages: &Arc<FakePages>) -> PageMover {
    let calls: Arc<dyn PageCalls> = pages.clone();
    PageMover::new(calls, nodes("0-3"))
}

/// This process, which exists.
fn own() -> ProcessId {
    identify(&Root::live(), std::process::id()).unwrap()
}

const STEP: Duration = Duration::from_secs(1);

#[test]
fn pages_follow_once_the_nodes_have_stayed_the_same_and_it_is_written_down_first() {
    let (journals, pages) = (Journals::new(), Arc::new(FakePages::default()));
    let (mut journal, mut mover, own) = (journals.begin(), mover(&pages), own());
    let mut look = |second: u32, at: &str| {
        mover.follow(&mut journal, STEP * second, &[own], &nodes(at)).unwrap()
    };
    // A core that is tried elsewhere restarts the time.
    for (second, at) in [(0, "2"), (4, "2-3"), (5, "2"), (9, "2")] {
        assert!(look(second, at).is_empty());
    }
    assert_eq!(journals.only().records.len(), 1);
    look(10, "2");
    let moved = |from: &str, to: &str| Record::PagesMoved {
        pid: own.pid,
        start: own.start,
        from: from.to_owned(),
        to: to.to_owned(),
    };
    assert_eq!(journals.only().records[1..], [moved("0-1,3", "2")]);
    // Once, and not for cores on all nodes.
    (11..30).for_each(|second| drop(look(second, "2")));
    (30..40).for_each(|second| drop(look(second, "0-3")));
    assert_eq!(journals.only().records.len(), 2);
    while pages.moved().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(pages.moved(), [format!("{} 0-1,3 to 2", own.pid)]);
    let undone = undo(
        &Root::live(),
        &*FakeThreads::with(1, &[1], "0"),
        &FakeUnits::default(),
        &journals.only(),
    );
    assert!(undone.failed.is_empty(), "{undone:?}");
    assert!(undone.left[0].contains("moved from nodes 0-1,3 to 2; they stay there"), "{undone:?}");
}

#[test]
fn unmovable_pages_are_reported() {
    // ESRCH means that the process has ended, which is expected; negative numbers are pages left.
    for (answer, words) in [(1, "run as root"), (-7, "7 pages of process"), (3, "")] {
        let pages = Arc::new(FakePages { answer: Some(answer), ..FakePages::default() });
        let (journals, mut mover) = (Journals::new(), mover(&pages));
        let mut journal = journals.begin();
        let mut said = Vec::new();
        let mut second = 0;
        while pages.moved().is_empty() || (said.is_empty() && !words.is_empty()) {
            said.extend(mover.follow(&mut journal, STEP * second, &[own()], &nodes("1")).unwrap());
            second += 1;
            std::thread::yield_now();
        }
        match words {
            "" => assert!(said.is_empty(), "{said:?}"),
            words => assert!(said[0].contains(words), "{said:?}"),
        }
    }
}

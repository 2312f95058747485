//! A database with a data directory: what sessions commit is there when it is opened again.

use std::sync::Arc;

use atoll_store::TableId;
use atoll_store::database::{CatalogChange, Durability, RelationName, TransactionOptions, Written};
use atoll_store::durable::DurableDatabase;
use atoll_store::open::OpenOptions;
use atoll_store::simulated::SimulatedFiles;
use atoll_store::table::RowCodec;

use crate::small_database::{SmallDatabase, definition, environment};
use crate::stepped::block_on;

pub(crate) fn open(files: &SimulatedFiles) -> (DurableDatabase, SmallDatabase) {
    let options = OpenOptions { segment_bytes: 1 << 16, ..OpenOptions::default() };
    let opened = DurableDatabase::open(Arc::new(files.clone()), environment(), options).unwrap();
    let database = Arc::clone(opened.database());
    let name = RelationName::new("public", "t");
    let found = database.newest().table_named(&name).map(|(id, _)| id);
    let table = found.unwrap_or_else(|| {
        let (table, definition) = (database.new_table_id("public"), Arc::new(definition()));
        let mut transaction = database.begin(TransactionOptions::default());
        transaction.statement(true).unwrap();
        let create = CatalogChange::CreateTable { name, id: table, definition };
        assert_eq!(block_on(transaction.define(create)).unwrap(), Written::Done);
        block_on(transaction.commit()).unwrap();
        table
    });
    let codec = Arc::new(RowCodec::new(&definition().columns).unwrap());
    (opened, SmallDatabase { database, table, codec })
}

pub(crate) fn insert(small: &SmallDatabase, id: u64) {
    let mut transaction = small.database.begin(TransactionOptions::default());
    block_on(small.insert(&mut transaction, id, &format!("value {id}"))).unwrap();
    block_on(transaction.commit()).unwrap();
}

#[test]
fn commits_are_there_after_a_power_cut_with_and_without_a_checkpoint() {
    let mut files = SimulatedFiles::new();
    for round in 0..6 {
        let (opened, small) = open(&files);
        assert_eq!(small.table, TableId::new(1));
        for id in 0..round * 10 {
            assert_eq!(small.committed(id), Some(format!("value {id}")), "round {round}");
        }
        (round * 10..round * 10 + 10).for_each(|id| insert(&small, id));
        assert!(opened.log_bytes() > 0);
        if round % 2 == 1 {
            let report = opened.checkpoint().unwrap();
            assert_eq!((report.tables, opened.log_bytes()), (1, 0));
            let again = opened.checkpoint().unwrap();
            assert_eq!((again.tables, again.chunks), (0, 0), "nothing changed");
        }
        files = files.crash(round);
    }
}

#[test]
fn a_version_goes_when_a_later_commit_is_on_disk_though_no_session_reads() {
    let (_opened, small) = open(&SimulatedFiles::new());
    insert(&small, 1);
    let old = Arc::downgrade(&small.database.newest());
    insert(&small, 2);
    assert!(old.upgrade().is_none());
}

#[test]
fn without_a_log_commits_are_saved_by_the_next_checkpoint_only() {
    let files = SimulatedFiles::new();
    let (opened, small) = open(&files);
    insert(&small, 1);
    block_on(small.database.set_durability(Durability::Off)).unwrap();
    insert(&small, 2);
    opened.checkpoint().unwrap();
    insert(&small, 3);
    let (_opened, found) = open(&files.crash(1));
    let ids: Vec<u64> = (0..9).filter(|id| found.committed(*id).is_some()).collect();
    assert_eq!(ids, [1, 2]);
}

#[test]
fn a_full_disk_lets_a_checkpoint_finish_after_which_commits_go_on() {
    for is_reserved in [true, false] {
        let files = SimulatedFiles::new();
        let (opened, small) = open(&files);
        if is_reserved {
            opened.reserve_space().unwrap();
        }
        files.set_space(Some(files.used() + 1000));
        let mut id = 0;
        let refused = loop {
            let mut transaction = small.database.begin(TransactionOptions::default());
            block_on(small.insert(&mut transaction, id, &format!("value {id}"))).unwrap();
            match block_on(transaction.commit()) {
                Ok(_) => id += 1,
                Err(error) => break error,
            }
            assert!(id < 10_000, "the disk never fills");
        };
        assert_eq!(refused.sqlstate(), "53100");
        if is_reserved {
            opened.reserve_space().expect_err("there is no more space, so a checkpoint is due");
            assert_eq!(opened.checkpoint().unwrap().tables, 1);
            insert(&small, id);
            assert!((0..=id).all(|id| small.committed(id).is_some()));
        } else {
            opened.checkpoint().unwrap_err();
        }
        // What was acknowledged is there in any case.
        drop((opened, small));
        files.set_space(None);
        let (_opened, small) = open(&files.crash(7));
        assert!((0..id).all(|id| small.committed(id).is_some()));
    }
}

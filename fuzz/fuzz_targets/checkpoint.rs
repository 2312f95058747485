//! The payload of the manifest, of a table's file or of a chunk's in a data directory, with right checksums around it:
//! the directory is opened, or salvaged, or refused.
#![no_main]

use std::sync::{Arc, LazyLock};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema};
use atoll_placement::{Arena, Strategy};
use atoll_store::database::{CatalogChange, ChangeStep, DatabaseChange, RelationName, StoreEnvironment};
use atoll_store::files::Files;
use atoll_store::open::{OpenOptions, Opening, RecoveryTask};
use atoll_store::simulated::SimulatedFiles;
use atoll_store::table::{
    AppendedChunk, ChunkWriter, Destination, TableChange, TableDefinition, Unique,
};
use atoll_store::checkpoint::CheckpointState;
use atoll_store::workers::OneThread;
use atoll_store::{DatabaseId, Epoch, RowId, TableId};
use atoll_testkit::kernel::SimulatedKernel;
use atoll_testkit::machines;
use atoll_topology::NodeId;
use libfuzzer_sys::fuzz_target;

static ENVIRONMENT: LazyLock<StoreEnvironment> = LazyLock::new(|| {
    let machine = Arc::new(machines::two_nodes());
    let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
    StoreEnvironment { arena: Arena::new(Arc::clone(&machine), kernel, None), machine }
});

/// A directory with one table of one chunk.
static DIRECTORY: LazyLock<SimulatedFiles> = LazyLock::new(|| {
    let files = SimulatedFiles::new();
    let opening = Opening::begin(Arc::new(files.clone()), ENVIRONMENT.clone(), options(false));
    let opened = opening.and_then(|opening| opening.finish(Vec::new(), &OneThread));
    let opened = opened.expect("a new database");
    let (version, mut log) = (opened.version, opened.log.expect("a log"));
    let change = DatabaseChange { steps: vec![create(), fill()] };
    let next = version.apply(&change, &ENVIRONMENT).expect("it fits");
    log.sync().expect("it is synced");
    let next = Arc::new(next.at(Epoch::new(1), version.position()));
    let mut checkpoint = opened.checkpoints.begin(|| next).expect("a checkpoint");
    while !matches!(checkpoint.step(log.synced()), Ok(CheckpointState::Done(_))) {}
    files
});

fn options(salvage: bool) -> OpenOptions {
    let database = Some(DatabaseId([7; 16]));
    OpenOptions { database, segment_bytes: 8192, salvage, ..OpenOptions::default() }
}

fn definition() -> TableDefinition {
    let key = Field::new("key", DataType::Int64, false);
    let value = Field::new("value", DataType::Utf8View, true);
    let mut definition =
        TableDefinition::new(Arc::new(Schema::new(vec![key, value])), Strategy::Aligned);
    definition.uniques.push(Unique { name: "key".into(), columns: vec![0], is_primary: true });
    definition
}

fn create() -> ChangeStep {
    let (name, id) = (RelationName::new("public", "t"), TableId::new(1));
    let definition = Arc::new(definition());
    ChangeStep::Catalog(CatalogChange::CreateTable { name, id, definition })
}

fn fill() -> ChangeStep {
    let StoreEnvironment { machine, arena } = ENVIRONMENT.clone();
    let to = Destination { machine, arena, strategy: Strategy::Aligned };
    let columns = definition().columns;
    let mut writer = ChunkWriter::new("t".into(), Arc::clone(&columns), to, NodeId(0), 0);
    let values = (0..40).map(|row| (row % 7 > 0).then(|| format!("value {}", row % 5)));
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(0..40)),
        Arc::new(StringViewArray::from_iter(values)),
    ];
    let batch = RecordBatch::try_new(columns, arrays).expect("a batch");
    writer.write(&batch).expect("it is written");
    let chunks = writer.finish().expect("a chunk").into_iter().map(Arc::new);
    let first = RowId::new(0);
    let appended = chunks.map(|chunk| AppendedChunk { first, chunk, file: None }).collect();
    ChangeStep::Table(TableId::new(1), TableChange { appended, ..TableChange::default() })
}

/// The bytes of a file with another payload, as the table in the store's `data_file` specifies them.
fn sealed(before: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut bytes = before[..48].to_vec();
    bytes[40..48].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes.resize(bytes.len().next_multiple_of(64), 0);
    bytes[12..16].fill(0);
    let checksum = crc32fast::hash(&bytes);
    bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The payload with the input written over it from some place on, or instead of it.
fn changed(payload: &[u8], input: &[u8]) -> Vec<u8> {
    match input {
        [place, rest @ ..] if *place < 255 && !payload.is_empty() => {
            let at = usize::from(*place) % payload.len();
            let mut changed = payload.to_vec();
            let end = changed.len().min(at + rest.len());
            changed[at..end].copy_from_slice(&rest[..end - at]);
            changed
        }
        [_, rest @ ..] => rest.to_vec(),
        [] => Vec::new(),
    }
}

fuzz_target!(|input: &[u8]| {
    let [which, input @ ..] = input else { return };
    let files = DIRECTORY.restart();
    let in_directory = |directory: &str| {
        let name = files.list(directory).expect("a list").into_iter().next().expect("a file");
        format!("{directory}/{name}")
    };
    let name = match which % 3 {
        0 => "manifest".to_owned(),
        1 => in_directory("tables"),
        _ => in_directory("chunks"),
    };
    let file = files.open(&name).expect("a file");
    let mut bytes = vec![0; file.bytes().expect("its length") as usize];
    file.read_at(0, &mut bytes).expect("its bytes");
    let length = u64::from_le_bytes(std::array::from_fn(|at| bytes[40 + at])) as usize;
    let end = (48 + length).next_multiple_of(64);
    let mut new = sealed(&bytes, &changed(&bytes[48..48 + length], input));
    new.extend_from_slice(&bytes[end..]);
    file.truncate(0).and_then(|()| file.write_at(0, &new)).expect("it can be written");
    for salvage in [false, true] {
        let files = Arc::new(files.restart());
        let Ok(opening) = Opening::begin(files, ENVIRONMENT.clone(), options(salvage)) else {
            continue;
        };
        let chunks = opening.tasks().into_iter().map(RecoveryTask::run).collect();
        if let Ok(opened) = opening.finish(chunks, &OneThread) {
            // Rows are checked when they are read.
            opened.version.tables().for_each(|(_, table)| drop(table.view()));
        }
    }
});

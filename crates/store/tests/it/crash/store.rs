//! Versions, log and checkpoints over a simulated directory, stepped by one thread.

use std::sync::{Arc, LazyLock};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use atoll_placement::{Arena, Strategy};
use atoll_store::DatabaseId;
use atoll_store::Epoch;
use atoll_store::checkpoint::{Checkpoint, CheckpointError, CheckpointState, Checkpoints};
use atoll_store::database::{DatabaseChange, DatabaseVersion, StoreEnvironment};
use atoll_store::files::DirectoryLock;
use atoll_store::log::{Log, LogError, Position};
use atoll_store::open::{OpenError, OpenOptions, Opening};
use atoll_store::record::encode_record;
use atoll_store::simulated::SimulatedFiles;
use atoll_store::table::{
    Chunk, ChunkWriter, Destination, Index, IndexKey, TableDefinition, Unique,
};
use atoll_store::workers::OneThread;
use atoll_testkit::kernel::SimulatedKernel;
use atoll_testkit::machines;
use atoll_topology::NodeId;

/// Rows of a bulk load's chunks.
const CHUNK_ROWS: usize = 24;

/// An open database.
pub(super) struct TestStore {
    pub(super) version: Arc<DatabaseVersion>,
    pub(super) log: Log,
    pub(super) checkpoints: Arc<Checkpoints>,
    _lock: DirectoryLock,
}

pub(super) fn environment() -> &'static StoreEnvironment {
    static ENVIRONMENT: LazyLock<StoreEnvironment> = LazyLock::new(|| {
        let machine = Arc::new(machines::two_nodes());
        let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
        StoreEnvironment { arena: Arena::new(Arc::clone(&machine), kernel, None), machine }
    });
    &ENVIRONMENT
}

pub(super) fn options() -> OpenOptions {
    OpenOptions {
        database: Some(DatabaseId([7; 16])),
        segment_bytes: 8192,
        ..OpenOptions::default()
    }
}

pub(super) fn columns() -> SchemaRef {
    static COLUMNS: LazyLock<SchemaRef> = LazyLock::new(|| {
        let key = Field::new("key", DataType::Int64, false);
        Arc::new(Schema::new(vec![key, Field::new("value", DataType::Utf8View, true)]))
    });
    Arc::clone(&COLUMNS)
}

pub(super) fn definition() -> Arc<TableDefinition> {
    let mut definition = TableDefinition::new(columns(), Strategy::Aligned);
    let key =
        Unique { name: "key".into(), columns: vec![0], is_primary: true, ..Unique::default() };
    definition.uniques.push(key);
    definition.indexes = indexes().into();
    Arc::new(definition)
}

/// An index over the values, and one over values and keys.
pub(super) fn indexes() -> [Index; 2] {
    [("by_value", &[1][..]), ("by_both", &[1, 0])].map(|(name, columns)| {
        let key =
            |column: &usize| IndexKey { column: *column, descending: false, nulls_first: false };
        let keys = columns.iter().map(key).collect();
        Index { name: name.into(), keys, ..Index::default() }
    })
}

pub(super) fn batch<'a>(rows: impl Iterator<Item = (i64, &'a Option<String>)>) -> RecordBatch {
    let (keys, values): (Vec<i64>, Vec<&Option<String>>) = rows.unzip();
    let values = StringViewArray::from_iter(values.into_iter().map(|value| value.as_deref()));
    let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(keys)), Arc::new(values)];
    RecordBatch::try_new(self::columns(), columns).unwrap()
}

/// A batch as the chunks of a bulk load.
pub(super) fn chunks(batch: &RecordBatch, node: u32) -> Vec<Arc<Chunk>> {
    let StoreEnvironment { machine, arena } = environment().clone();
    let to = Destination { machine, arena, strategy: Strategy::Aligned };
    let writer = ChunkWriter::new("t".into(), columns(), to, NodeId(node), 0);
    let mut writer = writer.with_chunk_rows(CHUNK_ROWS);
    writer.write(batch).unwrap();
    writer.finish().unwrap().into_iter().map(Arc::new).collect()
}

impl TestStore {
    pub(super) fn open(files: &SimulatedFiles) -> Result<Self, OpenError> {
        let opening = Opening::begin(Arc::new(files.clone()), environment().clone(), options())?;
        let chunks = opening.tasks().into_iter().map(|task| task.run()).collect();
        let opened = opening.finish(chunks, &OneThread)?;
        Ok(Self {
            version: Arc::new(opened.version),
            log: opened.log.unwrap(),
            checkpoints: opened.checkpoints,
            _lock: opened.lock,
        })
    }

    /// Orders a change that is known to fit.
    pub(super) fn submit(&mut self, change: &DatabaseChange) -> Result<Position, LogError> {
        let epoch = Epoch::new(self.version.epoch().get() + 1);
        let record = encode_record(change).unwrap();
        let next = self.version.apply(change, environment()).unwrap();
        let position = self.log.append(&record)?;
        self.version = Arc::new(next.at(epoch, position));
        Ok(position)
    }

    pub(super) fn sync(&mut self) -> Result<Position, LogError> {
        self.log.write()?;
        self.log.sync()
    }

    pub(super) fn begin_checkpoint(&self) -> Result<Checkpoint, CheckpointError> {
        self.checkpoints.begin(|| Arc::clone(&self.version))
    }

    /// Makes a checkpoint from its beginning to its end.
    pub(super) fn checkpoint(&mut self) -> Result<(), CheckpointError> {
        let mut checkpoint = self.begin_checkpoint()?;
        loop {
            match checkpoint.step(self.log.synced())? {
                CheckpointState::Working => {}
                CheckpointState::NeedsLog(_) => drop(self.sync()?),
                CheckpointState::Done(_) => return Ok(()),
            }
        }
    }
}

/// Whether an error says that a call failed, and not that something is damaged.
pub(super) fn is_failed_call(error: &OpenError) -> bool {
    use atoll_store::data_file::DataFileError;
    match error {
        OpenError::File(DataFileError::File(_)) => !error.is_damage(),
        OpenError::Chunk(reason) | OpenError::TableChunk { reason, .. } => {
            matches!(&**reason, DataFileError::File(_)) && !reason.is_damage()
        }
        OpenError::Log(LogError::File(_) | LogError::NoSpace(_)) => true,
        _ => false,
    }
}

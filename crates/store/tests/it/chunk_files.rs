//! Chunks come back from their files as they were, in memory at their home, and a damaged file is an error that
//! names it: never a panic, never other rows.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray,
    Float32Array, Float64Array, Int8Array, Int64Array, ListArray, NullArray, RecordBatch,
    StringArray, StructArray, TimestampMicrosecondArray, UInt16Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use atoll_placement::{Arena, FixedBudget, Strategy};
use atoll_store::chunk_file::{ChunkFiles, HomeChange, LoadedChunk, WrittenChunk};
use atoll_store::data_file::DataFileError;
use atoll_store::files::Files;
use atoll_store::simulated::{Fault, SimulatedFiles};
use atoll_store::table::{
    BLOCK_ROWS, Chunk, ChunkWriter, Destination, Selection, StoredColumn, stored_schema,
};
use atoll_store::{ChunkFileId, DatabaseId};
use atoll_sys::SplitMix64;
use atoll_testkit::kernel::SimulatedKernel;
use atoll_testkit::machines;
use atoll_topology::{Bytes, Machine, NodeId};

const DATABASE: DatabaseId = DatabaseId([7; 16]);
const NAME: &str = "chunks/00000000000000000001.chunk";

fn arena(machine: Machine) -> Arena {
    let machine = Arc::new(machine);
    let kernel = Arc::new(SimulatedKernel::new(Arc::clone(&machine)));
    Arena::new(machine, kernel, None)
}

fn chunk_files(files: &SimulatedFiles) -> ChunkFiles {
    ChunkFiles::open(Arc::new(files.clone()), DATABASE, ChunkFileId::new(0)).unwrap()
}

/// A batch with a column of every kind of type; the greater `span`, the wider the stored forms.
fn batch(rows: usize, span: i64, random: &mut SplitMix64) -> RecordBatch {
    let numbers: Vec<Option<i64>> = (0..rows)
        .map(|_| (random.below(6) != 0).then(|| (random.next() as i64 % span).abs()))
        .collect();
    let each = || numbers.iter().copied();
    let text = each().map(|n| n.map(|n| format!("text of more than twelve bytes {n}")));
    let lists = each().map(|n| n.map(|n| vec![Some(n as i32), None, Some(3)]));
    let parts: ArrayRef = Arc::new(Float32Array::from_iter(each().map(|n| n.map(|n| n as f32))));
    let flags: ArrayRef = Arc::new(BooleanArray::from_iter(each().map(|n| n.map(|n| n % 2 == 0))));
    let fields =
        vec![Field::new("x", DataType::Float32, true), Field::new("y", DataType::Boolean, true)];
    let decimals = Decimal128Array::from_iter(each().map(|n| n.map(i128::from)));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter(each())),
        Arc::new(Int64Array::from_iter_values((0..rows).map(|row| row as i64))),
        Arc::new(UInt64Array::from_iter(each().map(|n| n.map(|n| n as u64)))),
        Arc::new(UInt16Array::from_iter(each().map(|n| n.map(|n| n as u16)))),
        Arc::new(Int8Array::from_iter(each().map(|n| n.map(|n| n as i8)))),
        Arc::new(Date32Array::from_iter(each().map(|n| n.map(|n| n as i32)))),
        Arc::new(TimestampMicrosecondArray::from_iter(each())),
        Arc::new(decimals.with_precision_and_scale(38, 4).unwrap()),
        Arc::new(Float64Array::from_iter(each().map(|n| n.map(|n| n as f64 / 3.0)))),
        Arc::new(StringArray::from_iter(text)),
        Arc::new(BinaryArray::from_iter(each().map(|n| n.map(i64::to_le_bytes)))),
        Arc::new(FixedSizeBinaryArray::try_from_iter((0..rows).map(|row| [row as u8; 3])).unwrap()),
        Arc::clone(&flags),
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)),
        Arc::new(StructArray::new(fields.into(), vec![parts, flags], None)),
        Arc::new(NullArray::new(rows)),
    ];
    let fields = columns.iter().enumerate();
    let fields =
        fields.map(|(i, column)| Field::new(format!("c{i}"), column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    RecordBatch::try_new(schema, columns).unwrap()
}

fn made(batch: &RecordBatch, arena: &Arena, strategy: Strategy) -> (Arc<Chunk>, SchemaRef) {
    let schema = stored_schema(&batch.schema());
    let machine = Arc::clone(arena.machine());
    let to = Destination { machine, arena: arena.clone(), strategy };
    let mut writer = ChunkWriter::new("t".into(), Arc::clone(&schema), to, NodeId(1), 0);
    writer.write(batch).unwrap();
    (Arc::new(writer.finish().unwrap().remove(0)), schema)
}

/// The columns as they are stored: values, encodings and all that is known of them.
fn assert_same(found: &Chunk, wanted: &Chunk) {
    assert_eq!((found.rows, found.owner), (wanted.rows, wanted.owner));
    assert_eq!(found.copies.len(), wanted.copies.len());
    for (found, wanted) in found.copies.iter().zip(&wanted.copies) {
        assert_eq!((found.wanted, found.found), (wanted.wanted, wanted.found));
        assert_eq!(found.blocks.len(), wanted.blocks.len());
        for (found, wanted) in found.blocks.iter().flatten().zip(wanted.blocks.iter().flatten()) {
            assert_eq!(found.rows(), wanted.rows());
            match (found, wanted) {
                (
                    StoredColumn::Dictionary { values: found, .. },
                    StoredColumn::Dictionary { values: wanted, .. },
                ) => assert_eq!(found, wanted),
                (StoredColumn::Plain(_), StoredColumn::Plain(_))
                | (StoredColumn::Narrow(_), StoredColumn::Narrow(_)) => {}
                _ => panic!("{found:?} instead of {wanted:?}"),
            }
        }
    }
    assert_eq!(format!("{:?}", found.stats), format!("{:?}", wanted.stats));
    assert_eq!((&found.zones, &found.block_bytes), (&wanted.zones, &wanted.block_bytes));
}

#[test]
fn chunks_come_back_as_they_were_whatever_form_they_are_stored_in() {
    for (seed, span) in [(1, 2), (2, 100), (3, 1 << 12), (4, 1 << 30), (5, i64::MAX)] {
        for rows in [1, 7, BLOCK_ROWS, 2 * BLOCK_ROWS + 5] {
            let batch = batch(rows, span, &mut SplitMix64::new(seed));
            let arena = arena(machines::four_nodes());
            let (chunk, schema) = made(&batch, &arena, Strategy::Ahead(1));
            let files = SimulatedFiles::new();
            let chunks = chunk_files(&files);
            let written = chunks.write(&chunk, &schema).unwrap();
            assert_eq!(written.bytes, files.open(NAME).unwrap().bytes().unwrap());
            chunks.sync(written.id).unwrap();
            chunks.sync_names().unwrap();
            let found = chunk_files(&files.crash(seed)).read(written.id, &arena).unwrap();
            assert_same(&found.chunk, &chunk);
            assert_eq!((found.schema, found.home), (schema, HomeChange::Kept));
            assert_eq!(chunks.check(written.id).unwrap(), rows);
        }
    }
}

#[test]
fn a_block_takes_no_more_than_its_own_part_of_lists_and_flags() {
    let batch = batch(8 * BLOCK_ROWS, i64::MAX, &mut SplitMix64::new(1));
    let arena = arena(machines::two_nodes());
    for column in [12, 13, 14] {
        let batch = batch.project(&[column]).unwrap();
        let (chunk, _) = made(&batch, &arena, Strategy::Default);
        let bytes = batch.get_array_memory_size();
        assert!(chunk.copies[0].memory.len() < 2 * bytes, "column {column}");
    }
}

#[test]
fn a_chunk_has_one_file_as_long_as_it_lives() {
    let files = SimulatedFiles::new();
    let chunks = chunk_files(&files);
    let arena = arena(machines::four_nodes());
    let (chunk, schema) = made(&batch(9, 9, &mut SplitMix64::new(1)), &arena, Strategy::Default);
    assert_eq!(chunks.id_of(&chunk), None);
    let WrittenChunk { id, bytes } = chunks.write(&chunk, &schema).unwrap();
    assert_eq!(chunks.write(&chunk, &schema).unwrap().bytes, 0);
    assert_eq!((chunks.id_of(&chunk), chunks.unused().unwrap()), (Some(id), vec![]));
    assert_eq!(chunks.unused_bytes(), 0);
    let (other, _) = made(&batch(9, 9, &mut SplitMix64::new(2)), &arena, Strategy::Default);
    let second = chunks.write(&other, &schema).unwrap().id;
    drop(chunk);
    assert_eq!(chunks.unused_bytes(), bytes);
    assert_eq!((chunks.unused().unwrap(), chunks.unused_bytes()), (vec![id], 0));
    chunks.remove(id).unwrap();
    // The next process begins behind all numbers that were given.
    let chunks = chunk_files(&files.restart());
    assert_eq!((chunks.last(), chunks.unused().unwrap()), (second, vec![second]));
}

#[test]
fn many_chunks_are_synced_together_and_one_that_is_not_gives_its_file_up() {
    let arena = arena(machines::four_nodes());
    let files = SimulatedFiles::new();
    let chunks = chunk_files(&files);
    let mut kept = Vec::new();
    for seed in 0..100 {
        let batch = batch(3, 9, &mut SplitMix64::new(seed));
        let (chunk, schema) = made(&batch, &arena, Strategy::Default);
        kept.push((chunks.write(&chunk, &schema).unwrap().id, chunk));
    }
    let (failing, chunk) = kept.pop().unwrap();
    files.fail_at(files.calls(), Fault::Device);
    chunks.sync(failing).unwrap_err();
    chunks.sync(failing).unwrap_err();
    assert_eq!(chunks.id_of(&chunk), None);
    kept.iter().for_each(|(id, _)| chunks.sync(*id).unwrap());
    chunks.sync_names().unwrap();
    let found = chunk_files(&files.crash(1));
    kept.iter().for_each(|(id, chunk)| {
        assert_same(&found.read(*id, &arena).unwrap().chunk, chunk);
    });
}

#[test]
fn nodes_that_the_machine_lacks_are_replaced_and_the_change_is_reported() {
    let batch = batch(20, 100, &mut SplitMix64::new(1));
    let files = SimulatedFiles::new();
    let chunks = chunk_files(&files);
    let four = arena(machines::four_nodes());
    let one = arena(machines::one_node());
    let write = |strategy| {
        let (chunk, schema) = made(&batch, &four, strategy);
        chunks.write(&chunk, &schema).unwrap().id
    };
    let homes = |loaded: &LoadedChunk| {
        let copies = loaded.chunk.copies.iter().map(|copy| copy.wanted).collect::<Vec<_>>();
        (loaded.chunk.owner, copies, loaded.home)
    };
    let aligned = chunks.read(write(Strategy::Aligned), &one).unwrap();
    let node = Some(NodeId(0));
    assert_eq!(homes(&aligned), (node, vec![node], HomeChange::ChosenAnew));
    let default = chunks.read(write(Strategy::Default), &one).unwrap();
    assert_eq!(homes(&default), (None, vec![None], HomeChange::Kept));
    let replicated = write(Strategy::Replicate);
    assert_eq!(homes(&chunks.read(replicated, &one).unwrap()).1, [node]);
    let copies = homes(&chunks.read(replicated, &four).unwrap()).1;
    assert_eq!(copies, (0..4).map(|node| Some(NodeId(node))).collect::<Vec<_>>());
}

#[test]
fn memory_beyond_the_limit_is_refused_by_name() {
    let files = SimulatedFiles::new();
    let chunks = chunk_files(&files);
    let free = arena(machines::two_nodes());
    let (chunk, schema) = made(&batch(20, 9, &mut SplitMix64::new(1)), &free, Strategy::Default);
    let id = chunks.write(&chunk, &schema).unwrap().id;
    let budget = Arc::new(FixedBudget::new(Bytes(100)));
    let limited = Arena::new(Arc::clone(free.machine()), Arc::clone(free.kernel()), Some(budget));
    let error = chunks.read(id, &limited).unwrap_err();
    assert!(matches!(&error, DataFileError::Memory { file, .. } if file == NAME), "{error}");
}

/// A small file of every encoding, and what it is called.
fn small_file() -> (Vec<u8>, Arena, Arc<Chunk>) {
    let arena = arena(machines::two_nodes());
    let batch = batch(20, 2, &mut SplitMix64::new(3));
    let (chunk, schema) = made(&batch, &arena, Strategy::Default);
    let files = SimulatedFiles::new();
    chunk_files(&files).write(&chunk, &schema).unwrap();
    (content(&files), arena, chunk)
}

fn content(files: &SimulatedFiles) -> Vec<u8> {
    let file = files.open(NAME).unwrap();
    let mut bytes = vec![0; file.bytes().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

fn read(bytes: &[u8], arena: &Arena) -> Result<LoadedChunk, DataFileError> {
    let files = SimulatedFiles::new();
    let chunks = chunk_files(&files);
    files.create(NAME, 0).unwrap().write_at(0, bytes).unwrap();
    let read = chunks.read(ChunkFileId::new(1), arena);
    // A check compares checksums only.
    let checked = chunks.check(ChunkFileId::new(1));
    assert!(checked.is_ok() || read.is_err(), "{checked:?}");
    read
}

fn expect_damaged(bytes: &[u8], arena: &Arena, context: &str) {
    match read(bytes, arena) {
        Err(DataFileError::Damaged { file, place, reason }) => {
            assert!(file == NAME && !place.is_empty() && !reason.is_empty(), "{context}");
        }
        other => panic!("{context}: {other:?}"),
    }
}

#[test]
fn every_flipped_bit_is_an_error_that_names_file_and_place() {
    let (bytes, arena, chunk) = small_file();
    assert_same(&read(&bytes, &arena).unwrap().chunk, &chunk);
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        expect_damaged(&flipped, &arena, &format!("bit {bit}"));
    }
}

#[test]
fn files_that_are_cut_or_longer_or_hold_zeros_are_errors() {
    let (bytes, arena, _) = small_file();
    let mut random = SplitMix64::new(5);
    for _ in 0..300 {
        let length = random.below(bytes.len() as u64) as usize;
        expect_damaged(&bytes[..length], &arena, &format!("cut to {length}"));
        let mut zeroed = bytes.clone();
        let start = random.below(bytes.len() as u64) as usize;
        let end = (start + random.below(700) as usize).min(bytes.len());
        zeroed[start..end].fill(0);
        if zeroed != bytes {
            expect_damaged(&zeroed, &arena, &format!("zeros from {start} to {end}"));
        }
    }
    expect_damaged(&[&bytes[..], &[0]].concat(), &arena, "longer");
}

/// Gives the header of a changed file its right checksum.
fn sealed_again(mut bytes: Vec<u8>) -> Vec<u8> {
    let payload = u64::from_le_bytes(bytes[40..48].try_into().unwrap());
    let end = (48 + payload).next_multiple_of(64).min(bytes.len() as u64) as usize;
    bytes[12..16].fill(0);
    let checksum = crc32fast::hash(&bytes[..end]);
    bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn a_directory_that_lies_under_a_right_checksum_never_panics() {
    let (bytes, arena, _) = small_file();
    let payload = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    let mut random = SplitMix64::new(6);
    for at in 48..48 + payload {
        for _ in 0..6 {
            let mut changed = bytes.clone();
            changed[at] = random.next() as u8;
            if random.below(3) == 0 {
                changed[48 + random.below(payload as u64) as usize] = random.next() as u8;
            }
            let Ok(loaded) = read(&sealed_again(changed), &arena) else { continue };
            for block in &loaded.chunk.copies[0].blocks {
                for (column, field) in block.iter().zip(loaded.schema.fields()) {
                    let all = Selection::Range { offset: 0, len: column.rows().len() };
                    let _ = column.decode(field.data_type(), &all);
                }
            }
        }
    }
}

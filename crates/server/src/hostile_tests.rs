//! Feeds the parsers of untrusted input with damaged and random bytes, the same in each run: none panics, and input in
//! pieces parses like the whole. `tests/it/hostile` tests whole conversations.

use atoll_sql::arrow::array::{ArrayRef, RecordBatch};
use atoll_sql::arrow::compute::concat_batches;
use atoll_sql::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use atoll_sql::temporal::StatementClock;
use atoll_sys::SplitMix64;
use bytes::{BufMut, BytesMut};

use crate::copy::{CopyDirection, CopyReader, CopyStatement, CopyWriter};
use crate::value::{Format, PgType, arrow_type, binary_column, parameter, write_sized};
use crate::wire::{
    FirstMessage, FrontendMessage, Output, ProtocolError, Target, sasl_initial, take_first,
    take_message,
};
use atoll_sql::TextEncoding;

/// Rounds of each test.
const ROUNDS: usize = 3000;

/// A random number below a bound.
fn below(random: &mut SplitMix64, end: usize) -> usize {
    (random.next() % end.max(1) as u64) as usize
}

/// These bytes with some damage; now and then entirely random ones.
fn damaged(bytes: &[u8], random: &mut SplitMix64) -> Vec<u8> {
    if below(random, 20) == 0 {
        let length = below(random, 300);
        return (0..length).map(|_| random.next() as u8).collect();
    }
    let mut bytes = bytes.to_vec();
    for _ in 0..below(random, 4) {
        let at = below(random, bytes.len());
        match below(random, 6) {
            _ if bytes.is_empty() => bytes.push(0),
            0 => bytes[at] = random.next() as u8,
            1 => bytes[at] ^= 1 << below(random, 8),
            2 => bytes.truncate(at),
            3 => drop(bytes.remove(at)),
            4 => bytes.insert(at, [0, 0xff, 0x7f, b'"', b'\\', b'\n'][below(random, 6)]),
            _ => bytes.extend_from_within(at..),
        }
    }
    bytes
}

/// Extreme values for lengths and counts.
const EXTREMES: [i32; 7] = [0, 1, -1, 9999, 1 << 16, i32::MIN, i32::MAX];

/// Variants of these bytes, each with an extreme number of two or four bytes at one position.
fn overwritten(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let numbers = EXTREMES
        .into_iter()
        .flat_map(|number| [(number as i16).to_be_bytes().to_vec(), number.to_be_bytes().to_vec()]);
    numbers.flat_map(move |number| {
        (0..=bytes.len().saturating_sub(number.len())).map(move |at| {
            let mut bytes = bytes.to_vec();
            let end = bytes.len().min(at + number.len());
            bytes.splice(at..end, number.iter().copied());
            bytes
        })
    })
}

/// Cuts bytes into pieces.
fn pieces<'b>(mut bytes: &'b [u8], random: &mut SplitMix64) -> Vec<&'b [u8]> {
    let mut pieces = Vec::new();
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at(1 + below(random, bytes.len().min(40)));
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

/// The next message of a client with UTF-8.
fn take(input: &mut BytesMut) -> Result<Option<FrontendMessage>, ProtocolError> {
    take_message(input, TextEncoding::default())
}

/// Everything that a parser reads from the pieces, up to its first error.
fn taken<T>(
    pieces: &[&[u8]],
    mut take: impl FnMut(&mut BytesMut) -> Result<Option<T>, ProtocolError>,
) -> (Vec<T>, Option<ProtocolError>) {
    let (mut input, mut all) = (BytesMut::new(), Vec::new());
    for piece in pieces {
        input.extend_from_slice(piece);
        loop {
            match take(&mut input) {
                Ok(Some(message)) => all.push(message),
                Ok(None) => break,
                Err(error) => return (all, Some(error)),
            }
        }
    }
    (all, None)
}

fn framed(kind: &[u8], body: &[u8]) -> Vec<u8> {
    [kind, &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

/// One message of each kind, with its parsed form.
fn messages() -> Vec<(Vec<u8>, Option<FrontendMessage>)> {
    let mut bind = b"p\0s\0\0\x01\0\x01\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0".to_vec();
    bind.put_slice(b"\0\x02\0\0\0\x01");
    let of = |kind: &[u8], body: &[u8], message| (framed(kind, body), message);
    vec![
        of(b"Q", b"SELECT 1\0", Some(FrontendMessage::Query("SELECT 1".to_owned()))),
        of(
            b"P",
            b"s\0SELECT $1\0\0\x02\0\0\0\x14\0\0\0\0",
            Some(FrontendMessage::Parse {
                name: "s".to_owned(),
                sql: "SELECT $1".to_owned(),
                types: vec![20, 0],
            }),
        ),
        of(b"B", &bind, None),
        of(b"D", b"Sx\0", Some(FrontendMessage::Describe(Target::Statement("x".to_owned())))),
        of(
            b"E",
            b"p\0\0\0\0\x07",
            Some(FrontendMessage::Execute { portal: "p".to_owned(), rows_max: 7 }),
        ),
        of(b"C", b"P\0", Some(FrontendMessage::Close(Target::Portal(String::new())))),
        of(b"H", b"", Some(FrontendMessage::Flush)),
        of(b"d", b"1\t2\n", Some(FrontendMessage::CopyData(b"1\t2\n".as_slice().into()))),
        of(b"c", b"", Some(FrontendMessage::CopyDone)),
        of(b"f", b"why\0", Some(FrontendMessage::CopyFail("why".to_owned()))),
        of(b"p", b"SCRAM-SHA-256\0\0\0\0\x03n,,", None),
        of(b"S", b"", Some(FrontendMessage::Sync)),
        of(b"X", b"", Some(FrontendMessage::Terminate)),
    ]
}

#[test]
fn messages_in_pieces_parse_like_whole_ones() {
    let mut random = SplitMix64::new(0x5eed_0001);
    let messages = messages();
    let whole: Vec<u8> = messages.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
    let (read, error) = taken(&[&whole], take);
    assert_eq!((read.len(), error), (messages.len(), None));
    for (read, (_, wanted)) in read.iter().zip(&messages) {
        assert!(wanted.as_ref().is_none_or(|wanted| wanted == read), "{read:?}");
    }
    for _ in 0..ROUNDS {
        let bytes = damaged(&whole, &mut random);
        let at_once = taken(&[&bytes], take);
        assert_eq!(taken(&pieces(&bytes, &mut random), take), at_once);
        for message in at_once.0 {
            if let FrontendMessage::Password(body) = message {
                let _ = sasl_initial(&body);
            }
        }
    }
}

#[test]
fn messages_of_every_kind_and_length_are_taken_whole_refused_or_waited_for() {
    for kind in 0..=u8::MAX {
        for (message, _) in messages() {
            let body = &message[5..];
            for end in 0..=body.len() {
                let message = framed(&[kind], &body[..end]);
                let mut input = BytesMut::from(&message[..]);
                if let Ok(taken) = take(&mut input) {
                    assert!(taken.is_some() && input.is_empty(), "{message:?}");
                }
                let short = message.len() - 1;
                let mut input = BytesMut::from(&message[..short]);
                if let Ok(taken) = take(&mut input) {
                    assert!(taken.is_none() && input.len() == short, "{message:?}");
                }
            }
        }
        for length in [0, 1, 2, 3, (256 << 20) + 1, i32::MAX as u32, u32::MAX] {
            let bytes = [&[kind][..], &length.to_be_bytes(), &[0; 8]].concat();
            assert!(take(&mut BytesMut::from(&bytes[..])).is_err(), "{bytes:?}");
        }
    }
    for (message, _) in messages() {
        for bytes in overwritten(&message) {
            let at_once = taken(&[&bytes], take);
            let singly: Vec<_> = bytes.chunks(1).collect();
            assert_eq!(taken(&singly, take), at_once, "{bytes:?}");
        }
    }
}

#[test]
fn first_messages_in_pieces_parse_like_whole_ones() {
    let mut random = SplitMix64::new(0x5eed_0002);
    let startup =
        framed(b"", b"\0\x03\0\0user\0ann\0database\0atoll\0options\0-c a=b --c-d=e\\ f\0\0");
    let cancel = framed(b"", b"\x04\xd2\x16\x2e\0\0\0\x07\0\0\0\x08");
    let tls = framed(b"", b"\x04\xd2\x16\x2f");
    let (read, error) = taken(&[&tls, &cancel, &startup], take_first);
    assert_eq!(error, None);
    let [
        FirstMessage::Tls,
        FirstMessage::Cancel { session: 7, secret: 8 },
        FirstMessage::Startup(of),
    ] = &read[..]
    else {
        panic!("{read:?}");
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(of.options(), Ok(vec![pair("a", "b"), pair("c_d", "e f")]));
    for whole in [startup, cancel, tls] {
        for _ in 0..ROUNDS / 3 {
            let bytes = damaged(&whole, &mut random);
            let at_once = taken(&[&bytes], take_first);
            assert_eq!(taken(&pieces(&bytes, &mut random), take_first), at_once);
            for message in at_once.0 {
                if let FirstMessage::Startup(of) = message {
                    let _ = (of.options(), of.parameter("user").is_some());
                }
            }
        }
    }
}

/// The columns of the table that COPY fills.
fn table() -> Schema {
    let time = DataType::Timestamp(TimeUnit::Microsecond, None);
    let types = [DataType::Int64, DataType::Utf8View, DataType::Decimal128(10, 2), time];
    let fields = types.into_iter().enumerate();
    Schema::new(fields.map(|(at, of)| Field::new(format!("c{at}"), of, true)).collect::<Vec<_>>())
}

/// What a COPY reads from the pieces, or the message of its error.
fn copied(sql: &str, pieces: &[&[u8]]) -> Result<RecordBatch, String> {
    let mut reader = CopyReader::new(&copy(sql).format, &table(), TextEncoding::default());
    let mut batches = Vec::new();
    for piece in pieces {
        batches.extend(reader.push(piece).map_err(|error| error.message)?);
    }
    batches.extend(reader.finish().map_err(|error| error.message)?);
    Ok(concat_batches(reader.schema(), &batches).expect("one schema"))
}

fn copy(sql: &str) -> CopyStatement {
    CopyStatement::parse(sql).expect(sql).expect("it is one")
}

#[test]
fn copy_data_in_pieces_parses_like_the_whole_and_round_trips() {
    let mut random = SplitMix64::new(0x5eed_0003);
    let text = b"1\tx\\ty\\\\\t1.50\t2024-02-29 01:02:03\n2\t\\N\t\\N\t\\N\n-3\t\\x41\\101\\u\t0\t\\N\n\\.\n";
    let csv = b"c0,c1,c2,c3\r\n1,\"x,\"\"y\"\"\n\",1.50,2024-02-29 01:02:03\n2,,,\n\"3\",\"\",0,\n";
    let mut read = 0;
    for (options, data) in [
        ("", &text[..]),
        ("(DELIMITER '|', NULL 'x', HEADER match)", &text[..]),
        ("(FORMAT csv, HEADER)", &csv[..]),
        ("(FORMAT csv, HEADER match, NULL '2', QUOTE '\"', ESCAPE '\\')", &csv[..]),
    ] {
        let sql = format!("COPY t FROM STDIN {options}");
        for round in 0..ROUNDS / 2 {
            let bytes = if round == 0 { data.to_vec() } else { damaged(data, &mut random) };
            let at_once = copied(&sql, &[&bytes]);
            assert_eq!(copied(&sql, &pieces(&bytes, &mut random)), at_once, "{options}: {bytes:?}");
            let Ok(rows) = at_once else { continue };
            read += 1;
            // Writing and reading the rows again gives the same rows.
            for options in ["", "(FORMAT csv)"] {
                let out = copy(&format!("COPY t TO STDOUT {options}"));
                assert!(matches!(out.direction, CopyDirection::Out { .. }));
                let again = written(&out, &rows);
                let again = copied(&format!("COPY t FROM STDIN {options}"), &[&again]);
                assert_eq!(again.as_ref(), Ok(&rows), "{options}: {bytes:?}");
            }
        }
    }
    assert!(read > ROUNDS / 10, "{read} of all could be read");
}

/// The data of rows.
fn written(copy: &CopyStatement, rows: &RecordBatch) -> Vec<u8> {
    let (mut writer, mut output) = (CopyWriter::new(&copy.format), Output::default());
    writer.begin(&rows.schema(), &mut output).expect("written");
    writer.rows(rows, &mut output).expect("written");
    writer.end(&mut output);
    // In each message, a kind and a length precede the data.
    let (mut messages, mut data) = (output.unsent(), Vec::new());
    while let [b'd', rest @ ..] = messages {
        let length = u32::from_be_bytes(rest[..4].try_into().expect("four bytes")) as usize;
        data.extend_from_slice(&rest[4..length]);
        messages = &rest[length..];
    }
    data
}

#[test]
fn binary_copy_data_in_pieces_parses_like_the_whole() {
    let mut random = SplitMix64::new(0x5eed_0004);
    let sql = "COPY t FROM STDIN (FORMAT binary)";
    let mut data = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
    for row in 0..3_i64 {
        data.put_slice(b"\0\x04\0\0\0\x08");
        data.put_slice(&row.to_be_bytes());
        data.put_slice(b"\0\0\0\x03a\xc3\xa4\0\0\0\x0a\0\x01\0\0\0\0\0\x02\0\x07");
        data.put_slice(b"\0\0\0\x08\0\x02\xa4\xfb\x30\x90\0\0");
    }
    data.put_slice(b"\xff\xff");
    let whole = copied(sql, &[&data]).expect("it is sound");
    assert_eq!((whole.num_rows(), whole.num_columns()), (3, 4));
    for bytes in overwritten(&data) {
        let at_once = copied(sql, &[&bytes]);
        assert_eq!(copied(sql, &pieces(&bytes, &mut random)), at_once, "{bytes:?}");
    }
    for _ in 0..ROUNDS {
        let bytes = damaged(&data, &mut random);
        let at_once = copied(sql, &[&bytes]);
        assert_eq!(copied(sql, &pieces(&bytes, &mut random)), at_once, "{bytes:?}");
    }
}

/// Values in binary form, with the OIDs of their types.
const VALUES: [(u32, &[u8]); 15] = [
    (16, &[1]),
    (21, &[0xff, 0xf9]),
    (23, &[0, 0, 0, 7]),
    (20, &[0, 0, 0, 0, 0, 0, 0, 7]),
    (700, &[0x3f, 0xc0, 0, 0]),
    (701, &[0x3f, 0xf8, 0, 0, 0, 0, 0, 0]),
    (1700, &[0, 2, 0, 0, 0x40, 0, 0, 2, 0, 1, 0x13, 0x88]),
    (1082, &[0, 0, 0x22, 0x3d]),
    (1083, &[0, 0, 0, 0, 0, 0, 0, 9]),
    (1114, &[0, 2, 0xa4, 0xfb, 0x30, 0x90, 0, 0]),
    (1184, &[0xff, 2, 0xa4, 0xfb, 0x30, 0x90, 0, 0]),
    (1186, &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3]),
    (25, b"t\xc3\xa4xt"),
    (17, &[0, 255]),
    (
        1007,
        b"\0\0\0\x01\0\0\0\x01\0\0\0\x17\0\0\0\x02\0\0\0\x01\0\0\0\x04\0\0\0\x09\xff\xff\xff\xff",
    ),
];

/// Binary values of types that are stored as text or numbers.
const OTHER_VALUES: [(u32, &[u8]); 9] = [
    (18, b"a"),
    (26, &[0, 0, 0, 7]),
    (114, b"{\"a\": [1]}"),
    (1042, b"abc"),
    (1043, b"abc"),
    (2205, &[0, 0, 0, 7]),
    (2950, &[7; 16]),
    (3802, b"\x01{\"a\": [1]}"),
    (1009, b"\0\0\0\x01\0\0\0\0\0\0\0\x19\0\0\0\x01\0\0\0\x01\0\0\0\x01a"),
];

#[test]
fn parameters_with_extreme_numbers_are_values_or_errors() {
    let clock = StatementClock::default();
    for (oid, value) in VALUES.into_iter().chain(OTHER_VALUES) {
        let of = arrow_type(oid).expect("a type");
        assert!(parameter(Some(value), Format::Binary, oid, &of, clock).is_ok(), "{oid}");
        for bytes in overwritten(value) {
            for (oid, _) in VALUES.into_iter().chain(OTHER_VALUES) {
                let _ = parameter(Some(&bytes), Format::Binary, oid, &of, clock);
            }
            let _ = parameter(Some(&bytes), Format::Text, oid, &of, clock);
        }
        for end in 0..value.len() {
            let _ = parameter(Some(&value[..end]), Format::Binary, oid, &of, clock);
        }
    }
}

/// The binary form of a value.
fn binary(of: &DataType, array: &ArrayRef) -> Vec<u8> {
    let field = Field::new("a", of.clone(), true);
    let cells = binary_column(&field, array).expect("written");
    let mut sized = Vec::new();
    write_sized(&cells, 0, &mut sized);
    sized.split_off(4)
}

#[test]
fn parameters_round_trip_or_are_errors() {
    let clock = StatementClock::default();
    let mut random = SplitMix64::new(0x5eed_0005);
    let mut read = 0;
    for (oid, value) in VALUES {
        let of = arrow_type(oid).expect("a type");
        assert_eq!(PgType::from_data_type(&of).oid, oid);
        for round in 0..ROUNDS / 5 {
            let bytes = if round == 0 { value.to_vec() } else { damaged(value, &mut random) };
            let _ = parameter(Some(&bytes), Format::Text, oid, &of, clock);
            // Also read as another type than the declared one.
            let (other, _) = VALUES[below(&mut random, VALUES.len())];
            let _ = parameter(Some(&bytes), Format::Binary, other, &of, clock);
            let Ok(first) = parameter(Some(&bytes), Format::Binary, oid, &of, clock) else {
                assert_ne!(round, 0, "{oid}");
                continue;
            };
            if first.is_null() {
                continue;
            }
            read += 1;
            let array = first.to_array().expect("an array");
            let again = parameter(Some(&binary(&of, &array)), Format::Binary, oid, &of, clock);
            assert_eq!(again.expect("what was written"), first, "{oid}: {bytes:?}");
        }
    }
    assert!(read > ROUNDS / 2, "{read} of all were values");
}

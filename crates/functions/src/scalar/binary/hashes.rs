//! md5, sha1, sha256 and similar functions, as hexadecimal text; `hash`, a number.

use std::fmt::Write;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, UInt64Array};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::hash_utils::create_hashes;
use datafusion::common::{Result, exec_datafusion_err};
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};

use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, text};

fn hexadecimal<D: Digest>(call: &Call) -> Result<ArrayRef> {
    let bytes = call.bytes(0);
    call.texts(|row, out| {
        for byte in D::digest(bytes.value(row)).iter() {
            write!(out, "{byte:02x}").map_err(|error| exec_datafusion_err!("{error}"))?;
        }
        Ok(true)
    })
}

/// Returns a number for each row, also for NULL.
fn hash(call: &Call) -> Result<ArrayRef> {
    let mut hashes = vec![0; call.rows];
    create_hashes(&call.arrays, &SEED, &mut hashes)?;
    Ok(Arc::new(UInt64Array::from(hashes)))
}

/// The same in every session and process.
const SEED: datafusion::common::hash_utils::RandomState =
    datafusion::common::hash_utils::RandomState::with_seed(0);

macro_rules! digests {
    ($($name:literal $digest:ty: $example:literal;)*) => {
        const DIGESTS: &[Entry] = &[$(Entry {
            name: $name,
            aliases: &[],
            arguments: "text or bytes",
            about: concat!("The ", $name, " digest, as hexadecimal digits."),
            example: $example,
            takes: &[Arguments::Are(&[Takes::Bytes])],
            gives: text,
            volatile: false,
            run: hexadecimal::<$digest>,
        }),*];
    };
}

digests! {
    "md5" Md5: "md5('abc') = '900150983cd24fb0d6963f7d28e17f72'";
    "sha1" Sha1: "sha1('abc') = 'a9993e364706816aba3e25717850c26c9cd0d89d'";
    "sha224" Sha224: "sha224('abc')";
    "sha256" Sha256: "sha256('abc')";
    "sha384" Sha384: "sha384('abc')";
    "sha512" Sha512: "sha512('abc')";
}

const HASH: &[Entry] = &[Entry {
    name: "hash",
    aliases: &[],
    arguments: "values…",
    about: "A number that equal values have in common. It is not DuckDB's, and may change with the next version.",
    example: "hash('a') = hash('a')",
    takes: &[Arguments::More(&[Takes::Any], Takes::Any)],
    gives: |_, _| Ok(DataType::UInt64),
    volatile: false,
    run: hash,
}];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[DIGESTS, HASH];

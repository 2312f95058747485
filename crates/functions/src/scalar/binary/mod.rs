//! Bytes, bits, hashes, encodings and UUIDs.

pub(super) mod bits;
pub(super) mod bytes;
pub(super) mod encode;
pub(super) mod encodings;
pub(super) mod hashes;
pub(super) mod uuids;

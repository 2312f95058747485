//! OIDs: numbers of a database's objects, stable for their lifetime.
//!
//! Objects that PostgreSQL has too use its OIDs. Tables and sequences have numbers in the store; everything else is
//! numbered by a hash of its name, or the next free number on a collision.
//!
//! ```text
//! 0x0…        what PostgreSQL has too
//! 0x1… 0x2…   tables, sequences, by their numbers in the store
//! 0x3… 0x4…   other relations, schemas and roles, by their names
//! 0x5… 0x6…   indexes, constraints, by their tables and names
//! 0x7…        functions, by their names
//! ```

use std::collections::HashSet;

/// The OID of a schema, a table, …: positive even if a client reads it as `int4`.
pub(super) type Oid = i64;

/// The role that owns everything.
pub(super) const OWNER: Oid = 10;

/// The database.
pub(super) const DATABASE: Oid = 16_384;

/// The OIDs of the schemas `pg_catalog` and `public`.
pub(super) const PG_CATALOG: Oid = 11;
pub(super) const PUBLIC: Oid = 2200;

/// The first number of each kind.
#[derive(Clone, Copy, Debug)]
pub(super) enum OidSpace {
    Table = 1,
    Sequence = 2,
    Relation = 3,
    Name = 4,
    Index = 5,
    Constraint = 6,
    Function = 7,
}

/// Bits of a number within its space.
const BITS: u32 = 28;
const WITHIN: u64 = (1 << BITS) - 1;

impl OidSpace {
    /// The OID of a numbered object.
    pub(super) fn numbered(self, number: u64) -> Oid {
        (self as Oid) << BITS | (number & WITHIN).cast_signed()
    }

    /// The OID of a named object; `within` is the OID of its parent.
    pub(super) fn named(self, within: Oid, name: &str) -> Oid {
        // FNV-1a: the same in every version of the program.
        let start = 0xcbf2_9ce4_8422_2325_u64;
        let bytes = within.to_le_bytes().into_iter().chain(name.bytes());
        let hash = bytes
            .fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        self.numbered(hash ^ hash >> BITS)
    }
}

/// Used OIDs.
#[derive(Debug, Default)]
pub(super) struct TakenOids(HashSet<Oid>);

impl TakenOids {
    /// The OID, or the next free one.
    pub(super) fn take(&mut self, wanted: Oid) -> Oid {
        let mut oid = wanted;
        while !self.0.insert(oid) {
            oid += 1;
        }
        oid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_in_their_space_and_are_given_once() {
        let oid = OidSpace::Function.named(1, "f");
        assert_eq!(oid, OidSpace::Function.named(1, "f"));
        assert_ne!(oid, OidSpace::Function.named(2, "f"));
        assert_eq!(oid >> BITS, 7);
        assert!(oid <= i64::from(i32::MAX));
        let mut taken = TakenOids::default();
        assert_eq!((taken.take(5), taken.take(5), taken.take(5)), (5, 6, 7));
    }
}

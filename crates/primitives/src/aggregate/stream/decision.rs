//! The decision that the first rows make for all inputs: the variant, and how to collect rows.

use atoll_topology::NodeId;

use crate::aggregate::choose::{Choice, DIRECTORY, WorkerNodes, Workload, choose};
use crate::aggregate::estimate::KeySample;
use crate::aggregate::keys::KeyBlock;
use crate::aggregate::packing::{self, Packing};
use crate::aggregate::records::RecordLayout;
use crate::aggregate::rows::BatchRows;
use crate::aggregate::table::TableShape;
use crate::aggregate::{Variant, stream::Stage};
use crate::partition::FanOut;
use crate::{PrimitiveError, hash};

/// Words of a piece by range, log2: its table stays in the second-level cache.
const RANGE_PIECE_BITS: u32 = 15;
/// Approximate groups of a piece by hash, log2.
const HASH_PIECE_BITS: u32 = 13;
/// Minimum of pieces for many rows by hash, log2: partitioning into this many costs little more than into few.
const SKEWED_BITS: u32 = 9;
/// Minimum of pieces for each output, so that outputs end together although pieces differ.
const PIECES_PER_OUTPUT: usize = 4;
/// Maximum range of words for an array, log2.
const RANGE_BITS_MAX: u32 = 29;
/// The same for an array of each input, log2.
const LOCAL_RANGE_BITS_MAX: u32 = 22;
/// Maximum of groups for which an input's table initially has room.
const LOCAL_GROUPS_MAX: usize = 1 << 15;
/// Ranges up to this size are always worth an array, words.
const SMALL_RANGE: u64 = 1 << 12;
/// Maximum of words of a range for each group.
const WORDS_PER_GROUP: u64 = 4;

/// With at least this many groups of encoded keys, rows are partitioned as they come if the groups average no more rows
/// than this: a table for each input would exceed the caches. 8 million rows of 2.4 million strings take 0.8 s of CPU
/// time this way, 1.7 s in DataFusion's operator. With more rows per group, the rows would take far more memory than a
/// table.
pub(super) const DEALT_GROUPS_MIN: usize = 1 << 18;
const DEALT_ROWS_MAX: usize = 16;
/// Maximum share of the most frequent key in that case: all rows of a key go to one output.
const DEALT_SHARE_MAX: f64 = 0.05;

/// Rows of a batch: start and count.
pub(super) type Held<'a> = (&'a BatchRows, (usize, usize));

/// How to collect rows.
#[derive(Clone, Debug)]
pub(super) struct Decision {
    /// Never [`Variant::Auto`].
    pub(super) variant: Variant,
    /// The reason, for people.
    pub(super) reason: String,
    pub(super) collecting: Collecting,
    /// Expected groups.
    pub(super) groups: usize,
    /// Pieces for the groups of tables, if there are many groups.
    pub(super) fan_out: FanOut,
}

/// Sink for an input's rows.
#[derive(Clone, Debug)]
pub(super) enum Collecting {
    /// A table of words.
    Table(TableShape),
    /// Records by piece.
    Records(Dealing),
    /// Encoded keys: tables, or rows as they come.
    Encoded { is_dealt: bool },
}

/// How keys are partitioned into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dealing {
    /// By the high bits of their hash.
    Hash(FanOut),
    /// By range: `pieces` pieces of `2^shift` words each, from `min` on. They are followed by as many pieces by hash,
    /// for words that are unexpectedly outside.
    Range { min: u64, shift: u32, pieces: FanOut },
}

impl Dealing {
    /// Number of pieces.
    pub(super) fn fan_out(self) -> FanOut {
        match self {
            Self::Hash(pieces) => pieces,
            Self::Range { pieces, .. } => FanOut::of_bits(pieces.bits() + 1),
        }
    }

    /// The pieces of a block's words.
    pub(super) fn digits(self, words: &[u64], digits: &mut Vec<u32>) {
        digits.clear();
        match self {
            Self::Hash(pieces) => {
                digits.extend(words.iter().map(|key| pieces.digit(hash::word(*key)) as u32));
            }
            Self::Range { min, shift, pieces } => {
                let mut all = 0;
                digits.extend(words.iter().map(|key| {
                    let digit = key.wrapping_sub(min) >> shift;
                    all |= digit;
                    digit as u32
                }));
                if all >> pieces.bits() > 0 {
                    Self::outside(min, shift, pieces, words, digits);
                }
            }
        }
    }

    #[cold]
    fn outside(min: u64, shift: u32, pieces: FanOut, words: &[u64], digits: &mut [u32]) {
        for (digit, key) in digits.iter_mut().zip(words) {
            if key.wrapping_sub(min) >> shift >> pieces.bits() > 0 {
                *digit = (pieces.partitions() + pieces.digit(hash::word(*key))) as u32;
            }
        }
    }

    /// The table for a piece of about this many groups.
    pub(super) fn shape(self, piece: usize, expected: usize) -> TableShape {
        match self {
            Self::Range { min, shift, pieces } if piece < pieces.partitions() => {
                TableShape::Dense { min: min.wrapping_add((piece as u64) << shift), bits: shift }
            }
            _ => TableShape::Hashed { expected },
        }
    }
}

impl Stage {
    /// Decides by the first rows of each batch; with `all` they are the whole input.
    pub(super) fn decide(&self, held: &[Held<'_>], all: bool) -> Result<Decision, PrimitiveError> {
        let rows: usize = held.iter().map(|(_, (_, len))| *len).sum();
        let likely = self.rows.unwrap_or(rows.saturating_mul(self.outputs));
        let total = if all { rows } else { likely.max(rows) };
        match self.packed(held) {
            Some((packing, words)) => {
                Ok(self.choose(&KeySample::of_first(&words, total), packing, total))
            }
            None => self.wide(held, total),
        }
    }

    /// The words of the first rows, if all keys fit words.
    fn packed(&self, held: &[Held<'_>]) -> Option<(&Packing, Vec<u64>)> {
        let packing = self.packing.as_ref()?;
        let mut scratch = packing::PackScratch::default();
        let mut words: Vec<u64> = Vec::new();
        for (rows, (start, len)) in held {
            let packed = packing.pack(rows.key_lanes(), *start, *len, &mut scratch).ok()?;
            words.extend_from_slice(packed);
        }
        Some((packing, words))
    }

    /// Keys that fit no word have tables of their own kind.
    fn wide(&self, held: &[Held<'_>], total: usize) -> Result<Decision, PrimitiveError> {
        let mut block = KeyBlock::default();
        let mut hashes = Vec::new();
        for (rows, range) in held {
            let columns = rows.key_columns(&self.encoder)?;
            let keys = self.encoder.encode(columns, *range, &mut block);
            hashes.extend_from_slice(keys.hashes());
        }
        let KeySample { groups, hot_share, .. } = KeySample::of_first(&hashes, total);
        let why = format!("{groups} groups of keys longer than 64 bits expected");
        let Choice { variant, reason } = forced(Variant::Local, self.variant, &why);
        let fan_out = self.hashed_pieces(total, groups);
        let is_dealt = groups >= DEALT_GROUPS_MIN
            && groups.saturating_mul(DEALT_ROWS_MAX) >= total
            && hot_share < DEALT_SHARE_MAX;
        let collecting = Collecting::Encoded { is_dealt };
        Ok(Decision { variant, reason, collecting, groups, fan_out })
    }

    /// Chooses for keys that fit words.
    pub(super) fn choose(&self, keys: &KeySample, packing: &Packing, total: usize) -> Decision {
        let groups = keys.groups;
        let fan_out = self.hashed_pieces(total, groups);
        let range = range(keys, packing);
        let Choice { variant, reason } = match (self.variant, &self.layout) {
            _ if self.plan.key_types.is_empty() => forced(Variant::Local, self.variant, "no keys"),
            (asked, None) => forced(Variant::Local, asked, "rows are too long to be dealt"),
            (Variant::Auto, Some(layout)) => {
                let workers = self.context.runtime().workers();
                let workers: Vec<NodeId> = workers.iter().map(|worker| worker.node).collect();
                let knowledge = self.context.knowledge();
                let work = self.workload(keys, range, layout, total);
                choose(&work, &WorkerNodes { knowledge, workers, protocol: DIRECTORY })
            }
            (asked, Some(_)) => forced(asked, asked, "asked for"),
        };
        let collecting = match (variant, range) {
            _ if self.plan.key_types.is_empty() => Collecting::Table(TableShape::One),
            (Variant::Local, Some((min, bits))) if bits <= LOCAL_RANGE_BITS_MAX => {
                Collecting::Table(TableShape::Dense { min, bits })
            }
            (Variant::Local, _) => {
                Collecting::Table(TableShape::Hashed { expected: groups.min(LOCAL_GROUPS_MAX) })
            }
            (_, Some((min, bits))) => {
                let pieces = self.ranged_pieces(bits);
                let shift = bits - pieces.bits();
                Collecting::Records(Dealing::Range { min, shift, pieces })
            }
            (_, None) => Collecting::Records(Dealing::Hash(fan_out)),
        };
        Decision { variant, reason, collecting, groups, fan_out }
    }

    fn workload(
        &self,
        keys: &KeySample,
        range: Option<(u64, u32)>,
        layout: &RecordLayout,
        rows: usize,
    ) -> Workload {
        let piece_bits = if range.is_some() { RANGE_PIECE_BITS } else { HASH_PIECE_BITS };
        Workload {
            rows,
            groups: keys.groups,
            range: range.map(|(_, bits)| 1 << bits),
            row_bytes: layout.words() * 8,
            group_bytes: 8 * (self.plan.states.len() + usize::from(range.is_none())),
            piece_groups: 1 << piece_bits,
            hot_share: keys.hot_share,
        }
    }

    /// Pieces of keys partitioned by hash.
    fn hashed_pieces(&self, rows: usize, groups: usize) -> FanOut {
        let most = self.context.tuning().fan_out_bits_max.min(FanOut::BITS_MAX);
        let wanted = FanOut::at_least(groups >> HASH_PIECE_BITS).bits();
        // The estimate is a lower bound, and far too low for skewed keys.
        let skewed = rows.max(1).ilog2().saturating_sub(HASH_PIECE_BITS).min(SKEWED_BITS);
        let least = self.few_bits().max(skewed).min(FanOut::BITS_MAX);
        FanOut::of_bits(wanted.clamp(least, most.max(least)))
    }

    /// Pieces of a range of words: enough for outputs to end together, if the range has that many words.
    fn ranged_pieces(&self, bits: u32) -> FanOut {
        let most = self.context.tuning().fan_out_bits_max.min(FanOut::BITS_MAX - 1);
        let few = self.few_bits().min(bits).min(FanOut::BITS_MAX - 1);
        let wanted = bits.saturating_sub(RANGE_PIECE_BITS).clamp(few, most.max(few));
        FanOut::of_bits(wanted.min(bits))
    }

    /// Log2 of a number of pieces with which all outputs end together.
    fn few_bits(&self) -> u32 {
        FanOut::at_least(self.outputs * PIECES_PER_OUTPUT).bits()
    }
}

/// The decision for a variant that does not depend on estimates.
fn forced(variant: Variant, asked: Variant, why: &str) -> Choice {
    let reason = match asked {
        Variant::Auto => format!("{variant}: {why}"),
        asked if asked == variant => format!("{variant}: asked for"),
        asked => format!("{variant}, although {asked} was asked for: {why}"),
    };
    Choice { variant, reason }
}

/// The range of words that holds the keys, if it is small enough for an array: least word and bits. It comes from known
/// ranges, or from the words seen so far, with room on both sides because these are a sample.
fn range(keys: &KeySample, packing: &Packing) -> Option<(u64, u32)> {
    let worth = (keys.groups as u64).saturating_mul(WORDS_PER_GROUP).max(SMALL_RANGE);
    let worth = worth.min(1 << RANGE_BITS_MAX);
    if packing.bits() <= RANGE_BITS_MAX && 1 << packing.bits() <= worth {
        return Some((0, packing.bits()));
    }
    let (low, high) = keys.span?;
    let words = high.wrapping_sub(low).checked_add(1).filter(|words| *words <= worth)?;
    let room = u32::from(words > SMALL_RANGE);
    let bits = words.next_power_of_two().ilog2() + room;
    let slack = (1_u64 << bits) - words;
    Some((low.wrapping_sub(slack / 2), bits))
}

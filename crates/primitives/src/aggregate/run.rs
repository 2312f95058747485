//! Finds out what the input is like, chooses, and runs.

use std::sync::Arc;

use atoll_topology::{Knowledge, NodeId};

use super::choose::{Choice, DIRECTORY, Place, Workload, choose};
use super::estimate::Keys;
use super::feed::KeyForm;
use super::input::Input;
use super::keys::Encoder;
use super::local::{self, Local};
use super::partitioned::{self, Dealing, Partitioned};
use super::plan::Plan;
use super::records::Layout;
use super::report::Phase;
use super::table::Shape;
use super::{Outcome, Variant, ranges};
use crate::partition::FanOut;
use crate::{Context, PrimitiveError};

/// Words of a piece that is dealt by range, binary digits: its table stays in the second-level cache.
const RANGE_PIECE_BITS: u32 = 15;
/// Groups of a piece that is dealt by hash, binary digits, about.
const HASH_PIECE_BITS: u32 = 13;
/// Pieces of many rows that are dealt by hash, at least, binary digits: as many cost little more to
/// deal than few.
const SKEWED_BITS: u32 = 9;
/// Most words of a range that are worth an array, binary digits.
const RANGE_BITS_MAX: u32 = 29;
/// Ranges up to this size are always worth an array, words.
const SMALL_RANGE: u64 = 1 << 12;
/// Words of a range for each group, at most.
const WORDS_PER_GROUP: u64 = 4;

/// Runs a query over input made ready for it.
pub(super) async fn run(
    context: &Context,
    plan: Plan,
    input: Input,
    asked: Variant,
) -> Result<Outcome, PrimitiveError> {
    let schema = plan.schema().clone();
    let mut phases = Vec::new();
    let input = Arc::new(input);
    let form = form(context, &plan, &input, &mut phases).await?;
    let packing = match &form {
        KeyForm::Packed(packing) if input.rows > 0 => packing.clone(),
        _ => {
            let why = match &form {
                _ if input.rows == 0 => "no rows",
                KeyForm::None => "no keys",
                _ => "keys that no 64-bit word holds are hashed byte by byte",
            };
            let choice = forced(Variant::Local, asked, why);
            let shape = match &form {
                KeyForm::Encoded(encoder) => Shape::Encoded(encoder.clone()),
                _ => Shape::One,
            };
            let local = Local { plan, input, form, shape };
            let (batches, more) = local::run(context, Arc::new(local)).await?;
            phases.extend(more);
            let Choice { variant, reason } = choice;
            return Ok(Outcome { batches, schema, variant, reason, phases });
        }
    };
    let keys = Keys::sample(&input, &packing);
    let range = range(&keys);
    let layout = Layout::new(&plan);
    let Choice { variant, reason } = match (asked, &layout) {
        (_, None) => forced(Variant::Local, asked, "rows are too long to be dealt"),
        (Variant::Auto, Some(layout)) => {
            let work = workload(&plan, &input, &keys, range, layout);
            let runtime = context.runtime();
            let workers: Vec<NodeId> = runtime.workers().iter().map(|worker| worker.node).collect();
            let knowledge = Knowledge::of(runtime.machine().as_ref().clone());
            choose(&work, &Place { knowledge: &knowledge, workers, protocol: DIRECTORY })
        }
        (asked, Some(_)) => forced(asked, asked, "asked for"),
    };
    let groups = keys.groups;
    let (batches, more) = match layout.filter(|_| variant != Variant::Local) {
        None => {
            let shape = match range {
                Some((min, bits)) => Shape::Dense { min, bits },
                None => Shape::Hashed { expected: groups },
            };
            let local = Local { plan, input, form: KeyForm::Packed(packing), shape };
            local::run(context, Arc::new(local)).await?
        }
        Some(layout) => {
            let dealing = dealing(context, range, (input.rows, groups));
            let partitioned = Partitioned { plan, input, packing, layout, groups };
            partitioned::run(context, &Arc::new(partitioned), variant, dealing).await?
        }
    };
    phases.extend(more);
    Ok(Outcome { batches, schema, variant, reason, phases })
}

/// What runs whatever is expected.
fn forced(variant: Variant, asked: Variant, why: &str) -> Choice {
    let reason = match asked {
        Variant::Auto => format!("{variant}: {why}"),
        asked if asked == variant => format!("{variant}: asked for"),
        asked => format!("{variant}, although {asked} was asked for: {why}"),
    };
    Choice { variant, reason }
}

/// How keys come to tables: as words where they fit, whatever their types say.
async fn form(
    context: &Context,
    plan: &Plan,
    input: &Arc<Input>,
    phases: &mut Vec<Phase>,
) -> Result<KeyForm, PrimitiveError> {
    if plan.key_types.is_empty() {
        return Ok(KeyForm::None);
    }
    if let Some(packing) = input.packing(plan, None) {
        return Ok(KeyForm::Packed(packing));
    }
    if input.has_key_lanes() {
        let (ranges, phase) = ranges::find(context, input, plan.key_types.len()).await?;
        phases.push(phase);
        if let Some(packing) = input.packing(plan, Some(&ranges)) {
            return Ok(KeyForm::Packed(packing));
        }
    }
    Ok(KeyForm::Encoded(Encoder::new(&plan.key_types)?))
}

fn workload(
    plan: &Plan,
    input: &Input,
    keys: &Keys,
    range: Option<(u64, u32)>,
    layout: &Layout,
) -> Workload {
    let piece_bits = if range.is_some() { RANGE_PIECE_BITS } else { HASH_PIECE_BITS };
    Workload {
        rows: input.rows,
        groups: keys.groups,
        range: range.map(|(_, bits)| 1 << bits),
        row_bytes: layout.words() * 8,
        group_bytes: 8 * (plan.states.len() + usize::from(range.is_none())),
        piece_groups: 1 << piece_bits,
        hot_share: keys.hot_share,
    }
}

/// How rows are dealt, and to how many pieces.
fn dealing(
    context: &Context,
    range: Option<(u64, u32)>,
    (rows, groups): (usize, usize),
) -> (Dealing, FanOut) {
    let most = context.tuning().fan_out_bits_max.min(FanOut::BITS_MAX);
    match range {
        Some((min, bits)) => {
            // Pieces at least as many as workers, where the range has so many words.
            let wanted = bits
                .saturating_sub(RANGE_PIECE_BITS)
                .clamp(few(context).min(bits), most.max(few(context)));
            let fan_out = FanOut::of_bits(wanted.min(bits));
            (Dealing::Range { min, shift: bits - fan_out.bits() }, fan_out)
        }
        None => {
            let wanted = FanOut::at_least(groups >> HASH_PIECE_BITS).bits();
            // The estimate is a lower bound, by far where keys are skewed.
            let skewed = rows.max(1).ilog2().saturating_sub(HASH_PIECE_BITS).min(SKEWED_BITS);
            let least = few(context).max(skewed).min(FanOut::BITS_MAX);
            (Dealing::Hash, FanOut::of_bits(wanted.clamp(least, most.max(least))))
        }
    }
}

/// Binary digits of a number of pieces with which all workers end together.
fn few(context: &Context) -> u32 {
    FanOut::at_least(context.runtime().worker_count() * 4).bits()
}

/// The range of words that holds the keys, where it is small enough for an array: least word and
/// bits. The sample does not see all, so there is room on both sides.
fn range(keys: &Keys) -> Option<(u64, u32)> {
    let (low, high) = keys.span?;
    let words = high.wrapping_sub(low).checked_add(1)?;
    let worth = (keys.groups as u64).saturating_mul(WORDS_PER_GROUP).max(SMALL_RANGE);
    if words > worth.min(1 << RANGE_BITS_MAX) {
        return None;
    }
    let room = u32::from(words > SMALL_RANGE);
    let bits = words.next_power_of_two().ilog2() + room;
    let slack = (1_u64 << bits) - words;
    Some((low.wrapping_sub(slack / 2), bits))
}

//! Limits the depth of syntax trees.
//!
//! Planning, optimising, running and dropping a tree of expressions recurse, in code that is not all
//! ours. A limit keeps that within the available stacks: those of the workers, and the one that
//! [`on_deep_stack`] makes for planning.

use std::future::{Future, poll_fn};
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::{DataFusionError, Result, plan_datafusion_err, plan_err};
use datafusion::sql::sqlparser::ast::{Expr, Visit, Visitor};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::Location;

use crate::syntax::{Tokens, walk};

/// The most nested expressions, chains such as `a + b + c` included.
pub(super) const DEPTH_MAX: usize = 1000;

/// Most set operations in one statement: UNION chains are as deep as they are long.
const SET_OPERATIONS_MAX: usize = 1000;

/// Stack for parsing, planning and optimising. Only the pages that are touched cost memory.
const STACK: usize = 256 << 20;

/// The remaining stack that suffices to continue without another: for statements that cannot be deep, and
/// for all others, which is more than the threads of a process have.
pub const STACK_SHORT: usize = 1 << 20;
const STACK_LONG: usize = 16 << 20;

/// The error for more than [`DEPTH_MAX`] levels.
pub(super) fn too_deep(location: Option<Location>) -> DataFusionError {
    let place = location.map(|location| location.to_string()).unwrap_or_default();
    plan_datafusion_err!(
        "expression nested too deeply: more than {DEPTH_MAX} operators in one chain or inside one \
         another; AND and OR chains have no limit, others have to be split{place}"
    )
}

/// Fails if a statement has too many set operations for planning.
pub(super) fn check_set_operations(tokens: &Tokens) -> Result<()> {
    let mut count = 0;
    for at in 0..tokens.len() {
        let Some(word) = tokens.word(at) else { continue };
        count += usize::from(matches!(
            word.keyword,
            Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS
        ));
        if count > SET_OPERATIONS_MAX {
            let location = tokens.location(at);
            return plan_err!(
                "statement nested too deeply: more than {SET_OPERATIONS_MAX} set operations; VALUES \
                 with many rows, or several INSERTs, have no such limit{location}"
            );
        }
    }
    Ok(())
}

/// The number of nested operators on the left side, at most `most`.
pub(super) fn left_depth(expr: &Expr, most: usize) -> usize {
    let mut depth = 0;
    let mut next = Some(expr);
    while let Some(expr) = next.filter(|_| depth < most) {
        next = left_of(expr);
        depth += usize::from(next.is_some());
    }
    depth
}

fn left_of(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::BinaryOp { left, .. } | Expr::AnyOp { left, .. } | Expr::AllOp { left, .. } => {
            Some(left)
        }
        Expr::IsDistinctFrom(left, _)
        | Expr::IsNotDistinctFrom(left, _)
        | Expr::IsNull(left)
        | Expr::IsNotNull(left)
        | Expr::IsTrue(left)
        | Expr::IsNotTrue(left)
        | Expr::IsFalse(left)
        | Expr::IsNotFalse(left)
        | Expr::IsUnknown(left)
        | Expr::IsNotUnknown(left) => Some(left),
        Expr::Like { expr, .. }
        | Expr::ILike { expr, .. }
        | Expr::SimilarTo { expr, .. }
        | Expr::RLike { expr, .. }
        | Expr::Between { expr, .. }
        | Expr::InList { expr, .. }
        | Expr::InSubquery { expr, .. }
        | Expr::InUnnest { expr, .. }
        | Expr::Cast { expr, .. }
        | Expr::UnaryOp { expr, .. }
        | Expr::Collate { expr, .. }
        | Expr::IsNormalized { expr, .. } => Some(expr),
        Expr::AtTimeZone { timestamp, .. } => Some(timestamp),
        Expr::JsonAccess { value, .. } => Some(value),
        Expr::CompoundFieldAccess { root, .. } => Some(root),
        Expr::MemberOf(member) => Some(&member.value),
        _ => None,
    }
}

/// Whether a database of this process has, or had, a macro or a function: calls then stand for their bodies.
static HAS_BODIES: AtomicBool = AtomicBool::new(false);

/// Says that statements may call macros or functions, whose bodies stand in one another: from then on the length of a
/// text says nothing about its depth.
pub fn expect_bodies() {
    HAS_BODIES.store(true, Ordering::Relaxed);
}

/// The stack that a statement of this text may need: an operator has at least two bytes.
pub fn stack_for(sql: &str) -> usize {
    match sql.len() < 512 && !HAS_BODIES.load(Ordering::Relaxed) {
        true => STACK_SHORT,
        false => STACK_LONG,
    }
}

/// Fails if expressions are nested too deeply in a statement in which bodies stand for calls.
pub fn check_depth(statement: &impl Visit) -> Result<()> {
    let mut depth = Depth(0);
    match walk(statement, &mut depth) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(too_deep(None)),
    }
}

struct Depth(usize);

impl Visitor for Depth {
    type Break = ();

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.0 += 1;
        if self.0 > DEPTH_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.0 -= 1;
        ControlFlow::Continue(())
    }
}

/// Runs a future; if less than `needed` of the stack is left, its polls get a new stack.
pub async fn on_deep_stack<T>(needed: usize, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    poll_fn(move |context| stacker::maybe_grow(needed, STACK, || work.as_mut().poll(context))).await
}

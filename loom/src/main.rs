//! The concurrent pieces of Atoll that are small enough to be run in every order that their threads may
//! take: the gate of an exchange and the queues of a step. Their files are compiled here as they stand,
//! with loom's lock in the place of parking_lot's. `cargo xtask loom` runs this; it ends with an error,
//! and the order that led there, when a model fails, waits for ever or loses a wake-up.

use std::time::Instant;

#[path = "../../crates/sql-exec/src/exchange/gate.rs"]
mod gate;
mod gate_models;
#[path = "../../crates/runtime/src/step/queues.rs"]
mod queues;
mod queues_models;

/// A name that says what holds, and the code that checks it.
type Model = (&'static str, fn());

/// Preemptions in an order: with three, loom's authors say, nearly all faults are found.
const PREEMPTIONS_MAX: usize = 3;

fn main() {
    for (name, model) in gate_models::MODELS.into_iter().chain(queues_models::MODELS) {
        let start = Instant::now();
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(PREEMPTIONS_MAX);
        builder.check(model);
        println!("loom: {name}: holds ({:.1} s)", start.elapsed().as_secs_f64());
    }
}

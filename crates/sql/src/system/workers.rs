//! `atoll.workers`: the threads of the pools and what became of their binding.

use std::sync::Arc;

use atoll_runtime::{Binding, Runtime};
use datafusion::arrow::array::{ArrayRef, BooleanArray, StringArray, UInt32Array};
use datafusion::arrow::datatypes::DataType::{Boolean, UInt32, Utf8};

use super::{SystemTable, table};

/// One row a worker; the binding as the kernel told when the thread started.
pub(super) fn workers(runtime: Runtime) -> SystemTable {
    table(
        "workers",
        &[
            ("worker", UInt32, false),
            ("node", UInt32, false),
            ("domain", UInt32, false),
            ("thread", UInt32, true),
            ("cpus_wanted", Utf8, false),
            ("cpus_found", Utf8, true),
            ("cpu_seen", UInt32, true),
            ("bound", Boolean, false),
            ("binding", Utf8, false),
        ],
        Box::new(move |_| {
            let values = worker_values(&runtime);
            Box::pin(async move { Ok(values) })
        }),
    )
}

fn worker_values(runtime: &Runtime) -> Vec<ArrayRef> {
    let workers = runtime.workers();
    let all = || workers.iter();
    let found = |binding: &Binding| match binding {
        Binding::Bound { cpus, cpu } | Binding::Elsewhere { cpus, cpu } => {
            Some((cpus.to_string(), cpu.0))
        }
        Binding::Refused(_) | Binding::Unverified(_) => None,
    };
    vec![
        Arc::new(UInt32Array::from_iter_values(all().map(|worker| worker.id.0))),
        Arc::new(UInt32Array::from_iter_values(all().map(|worker| worker.node.0))),
        Arc::new(UInt32Array::from_iter_values(all().map(|worker| worker.domain.0))),
        Arc::new(all().map(|worker| worker.thread).collect::<UInt32Array>()),
        Arc::new(StringArray::from_iter_values(all().map(|worker| worker.cpus.to_string()))),
        Arc::new(all().map(|w| found(&w.binding).map(|f| f.0)).collect::<StringArray>()),
        Arc::new(all().map(|w| found(&w.binding).map(|f| f.1)).collect::<UInt32Array>()),
        Arc::new(all().map(|worker| Some(worker.binding.is_bound())).collect::<BooleanArray>()),
        Arc::new(StringArray::from_iter_values(all().map(|worker| worker.binding.to_string()))),
    ]
}

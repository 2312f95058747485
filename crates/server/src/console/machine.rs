//! `/api/machine` and `/console/machine.svg`: the machine's picture and load.

use std::collections::BTreeSet;
use std::sync::Arc;

use atoll_formats::render::svg;
use atoll_sys::Root;
use atoll_topology::Node;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::IntoResponse;
use serde_json::{Value, json};

use super::answer::{Answer, ApiError};
use super::load::MachineLoad;
use super::login::Caller;
use super::watch::{MACHINE, rows_of};
use crate::shared::Shared;

/// The machine as a picture.
pub(super) async fn picture(State(server): State<Arc<Shared>>, _: Caller) -> impl IntoResponse {
    let headers = [(CONTENT_TYPE, "image/svg+xml"), (CACHE_CONTROL, "no-store")];
    (headers, svg(server.database.knowledge()))
}

/// Nodes and links with their load.
pub(super) async fn machine(
    State(server): State<Arc<Shared>>,
    caller: Caller,
) -> Result<Answer, ApiError> {
    let mut all = rows_of(&server, &caller, MACHINE).await?;
    let root = Root::live();
    let load = server.console().load.look(&root);
    let machine = server.database.runtime().machine();
    let nodes = machine.nodes.iter().map(|node| of_node(node, &load, &root));
    all.insert("name".to_owned(), machine.name.clone().into());
    all.insert("load".to_owned(), nodes.collect());
    Ok(Answer(all.into()))
}

/// A node's cpus with their load, and its caches' memory traffic if it is counted.
fn of_node(node: &Node, load: &MachineLoad, root: &Root) -> Value {
    let cpus = node.cpus.iter().map(|cpu| json!([cpu.0, load.cpus.get(&cpu.0)]));
    let cpus: Value = cpus.collect();
    let of_cpu = |cpu: u32| {
        let file = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index3/id");
        root.read_text(&file).ok()?.trim().parse().ok()
    };
    let is_counted = !load.caches.is_empty();
    let caches = node.cpus.iter().filter(|_| is_counted).filter_map(|cpu| of_cpu(cpu.0));
    let caches: BTreeSet<u32> = caches.collect();
    let rates = caches.iter().filter_map(|cache| load.caches.get(cache));
    let sum = rates.fold((0.0, 0.0), |sum, rate| (sum.0 + rate.0, sum.1 + rate.1));
    let traffic = (!caches.is_empty()).then(|| json!({ "bytes_s": sum.0, "local_bytes_s": sum.1 }));
    json!({ "node": node.id.0, "cpus": cpus, "traffic": traffic })
}

//! Prometheus metrics of a run, on loopback.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::mpsc::Receiver;

use anyhow::Context;
use atoll_sys::process_cpu_time;
use atoll_topology::Machine;

use super::followed::Followed;
use crate::exit::CommandError;
use crate::terminal;
use crate::whereabouts::http::{self, Request};
use crate::whereabouts::metrics::{Metric, escaped};

/// Answers requests between looks.
pub(super) struct MetricsServer {
    requests: Receiver<Request>,
}

impl MetricsServer {
    pub(super) fn open(port: u16) -> Result<Self, CommandError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .with_context(|| format!("cannot listen on 127.0.0.1:{port}; choose another port"))?;
        let address = listener.local_addr()?;
        terminal::say(format_args!("metrics on http://{address}/metrics"));
        Ok(Self { requests: http::listen(listener) })
    }

    /// Answers those that wait.
    pub(super) fn answer(&mut self, targets: &[Followed], machine: &Machine) {
        while let Ok(request) = self.requests.try_recv() {
            request.answer(page(targets, machine));
        }
    }
}

fn page(targets: &[Followed], machine: &Machine) -> String {
    let gauge = |name, help| Metric::new(name, "gauge", help);
    let mut cores = gauge("atoll_elastic_cores", "Cores that the target has.");
    let mut free = gauge("atoll_elastic_cores_free", "Cores that it may be given.");
    let mut on_node = gauge("atoll_elastic_node_cores", "Cores that it has on a node.");
    let mut load =
        gauge("atoll_elastic_load_ratio", "Load of its cores; the rules keep it in between.");
    let mut pages = gauge("atoll_elastic_node_pages", "Pages that it accesses, by node.");
    let mut processes = gauge("atoll_elastic_processes", "Processes of the target.");
    let mut acts = Metric::new("atoll_elastic_acts_total", "counter", "Changes of its cores.");
    for target in targets {
        let session = &target.session;
        let who = format!("target=\"{}\"", escaped(session.name()));
        processes.sample(&who, session.processes().len() as f64);
        acts.sample(&who, session.acts() as f64);
        load.sample(&who, session.load_percent().unwrap_or_default() / 100.0);
        for (node, count) in session.pages().in_order() {
            pages.sample(&format!("{who},node=\"{node}\""), count as f64);
        }
        let Some(controller) = session.controller() else { continue };
        let cpus = controller.cpus();
        cores.sample(&who, controller.given().len() as f64);
        free.sample(&who, controller.free().len() as f64);
        for node in machine.nodes_with_cpus() {
            let is_given = |core: &&atoll_topology::Core| {
                !core.cpus.intersection(&cpus).intersection(&node.cpus).is_empty()
            };
            let count = machine.cores.iter().filter(is_given).count();
            on_node.sample(&format!("{who},node=\"{}\"", node.id), count as f64);
        }
    }
    let mut own = Metric::new(
        "atoll_elastic_cpu_seconds_total",
        "counter",
        "Time that this process has spent on cpus.",
    );
    own.sample("", process_cpu_time().as_secs_f64());
    let all = [cores, free, on_node, load, pages, processes, acts, own];
    all.into_iter().map(Metric::into_text).collect()
}

//! Nodes hidden by firmware, a hypervisor or the kernel's command line.

use super::{FileReading, Finding, scene::Scene};

const NODES: &str = "/sys/devices/system/node";
const COMMAND_LINE: &str = "/proc/cmdline";

pub(super) fn check(scene: &Scene<'_>) -> Vec<Finding> {
    if let Some(finding) = switched_off(scene) {
        return vec![finding];
    }
    one_node(scene).into_iter().collect()
}

/// `numa=off`, or a kernel that fakes nodes.
fn switched_off(scene: &Scene<'_>) -> Option<Finding> {
    let text = scene.text(COMMAND_LINE)?;
    let option = text
        .split_whitespace()
        .find(|word| *word == "numa=off" || word.starts_with("numa=fake"))?;
    let what = format!("The kernel was started with {option:?}");
    let why = "The nodes it shows are not those of the hardware, so no placement can be right.";
    let reading = FileReading { file: COMMAND_LINE.to_owned(), value: option.to_owned() };
    let advice = "Take the option from the kernel's command line and start the machine again.";
    Some(Finding::warning("numa_switched_off", what, why).from([reading]).advice(advice))
}

/// Several packages in one node.
fn one_node(scene: &Scene<'_>) -> Option<Finding> {
    let machine = scene.machine();
    let packages = machine.packages.len();
    if machine.nodes.len() > 1 || packages < 2 {
        return None;
    }
    let what = format!("{packages} packages share one node");
    let why = "Each package has memory controllers of its own, so half or more of all accesses are \
               remote without anyone seeing it: the firmware interleaves memory over the packages, \
               or a hypervisor hides where it lies.";
    let absent = || FileReading { file: NODES.to_owned(), value: "not there".to_owned() };
    let online = scene.reading(&format!("{NODES}/online")).unwrap_or_else(absent);
    let advice = if scene.exists(NODES) {
        "In the firmware set 'Node Interleaving' to disabled ('NUMA' to enabled); for a virtual \
         machine give the guest the host's nodes. 'atoll topo measure' shows the difference."
    } else {
        "The kernel is built without NUMA: install one with CONFIG_NUMA."
    };
    Some(Finding::warning("nodes_hidden_by_firmware", what, why).from([online]).advice(advice))
}

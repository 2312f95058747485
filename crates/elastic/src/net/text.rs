//! The net as text, for `atoll elastic show-net`.

use std::fmt::Write;

use super::{InputArc, Net, OutputArc};

/// Places with their fields, then each transition with its inputs, guard and outputs.
pub fn written(net: &Net, parameter: &impl Fn(&str) -> Option<i64>) -> String {
    let mut out = String::from("Places\n");
    for place in &net.places {
        let token = format!("{}<{}>", place.name, place.fields.join(", "));
        let _ = writeln!(out, "  {token:<30} {}", place.meaning);
    }
    out.push_str("\nTransitions\n");
    for transition in &net.transitions {
        let inputs: Vec<_> = transition.inputs.iter().map(|arc| taken(net, arc)).collect();
        let outputs: Vec<_> = transition.outputs.iter().map(|arc| put(net, arc)).collect();
        let _ = writeln!(out, "  {:<16} {}", transition.name, transition.rule);
        let _ = writeln!(out, "    takes  {}", inputs.join(", "));
        let _ = writeln!(out, "    when   {}", transition.guard);
        let _ = writeln!(out, "    puts   {}", outputs.join(", "));
    }
    out.push_str("\nParameters\n");
    for name in ["thmin", "thmax", "hysteresis", "cores_min", "cores_max", "dwell_up", "dwell_down"]
    {
        if let Some(value) = parameter(name) {
            let _ = writeln!(out, "  {name:<16} {value}");
        }
    }
    out
}

fn taken(net: &Net, arc: &InputArc) -> String {
    format!("{}<{}>", net.places[arc.place].name, arc.names.join(", "))
}

fn put(net: &Net, arc: &OutputArc) -> String {
    let fields: Vec<_> = arc.fields.iter().map(ToString::to_string).collect();
    format!("{}<{}>", net.places[arc.place].name, fields.join(", "))
}

//! The machine that was declared is the one that the guest's kernel has and `topo` discovers.

use super::guest::EIGHT_NODES;

#[test]
fn kernel_and_topo_in_the_guest_show_the_declared_machine() {
    let Some(printed) = EIGHT_NODES.printed() else { return };
    let machine = printed.json("topo");
    // The fast clock, which the kernel does not watch and give up: every reading of another takes the
    // emulator's lock.
    assert_eq!(printed.lines("clock", 2), [["tsc", "tsc=reliable"]]);
    let published = [
        "10,16,16,22,16,22,16,22",
        "16,10,22,16,22,16,22,16",
        "16,22,10,16,16,22,16,22",
        "22,16,16,10,22,16,22,16",
        "16,22,16,22,10,16,16,22",
        "22,16,22,16,16,10,22,16",
        "16,22,16,22,16,22,10,16",
        "22,16,22,16,22,16,16,10",
    ];
    let kernel = printed.lines("kernel", 3);
    assert_eq!(kernel.len(), 8);
    for line in kernel {
        let node: usize = line[0].parse().unwrap();
        assert_eq!(line[1], line[0], "cpu i on node i");
        assert_eq!(line[2], published[node]);
        let shown = machine["distances"]["matrix"][node].as_array().expect("a row of distances");
        let shown: Vec<String> = shown.iter().map(ToString::to_string).collect();
        assert_eq!(shown.join(","), published[node]);
    }
    assert_eq!(machine["sources"]["distances"], "discovered");
}

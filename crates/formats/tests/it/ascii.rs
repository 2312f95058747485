use atoll_formats::render;
use atoll_testkit::machines;
use atoll_topology::{Knowledge, Machine};
use insta::assert_snapshot;

fn ascii(machine: Machine) -> String {
    render::ascii(&Knowledge::from_machine(machine))
}

#[test]
fn two_nodes_stand_side_by_side() {
    assert_snapshot!(ascii(machines::two_nodes()));
}

#[test]
fn uneven_nodes_take_the_room_they_need() {
    assert_snapshot!(ascii(machines::eight_uneven_nodes()));
}

#[test]
fn many_cores_are_counted() {
    let text = "pack:2 node:1(memory=384GiB) l3:12(size=32MiB) core:8 pu:2";
    assert_snapshot!(ascii(Machine::synthetic(text).unwrap()));
}

#[test]
fn more_nodes_than_a_picture_holds_are_grouped_with_those_alike() {
    let text = ascii(Machine::synthetic("node:128 core:4 pu:2").unwrap());
    assert!(text.contains("nodes 0-127"), "{text}");
    assert!(text.contains("128 × 1 GiB; 1 domain, 4 cores, 8 cpus"), "{text}");
}

#[test]
fn boxes_are_closed_and_at_most_100_columns_wide() {
    let large = ["node:32 l3:2 core:9 pu:2", "node:1024 core:2", "core:300", "l3:40 core:2 pu:8"];
    let large = large.map(|text| Machine::synthetic(text).unwrap());
    for machine in machines::all().into_iter().chain(large) {
        let text = ascii(machine);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let count = |mark: char| text.matches(mark).count();
        assert!(count('┌') > 0, "{text}");
        assert!([count('┐'), count('└'), count('┘')].iter().all(|n| *n == count('┌')), "{text}");
    }
}

#[test]
fn a_name_cannot_move_the_cursor() {
    let machine = Machine { name: "a\u{1b}[2Jb\n".to_owned(), ..machines::one_node() };
    assert!(ascii(machine).starts_with("a[2Jb\n1 package"));
}

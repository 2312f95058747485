use std::time::SystemTime;

use atoll_formats::dump;
use atoll_formats::{FormatError, numactl, toml, xml};
use atoll_testkit::machines;
use atoll_topology::{Fact, Knowledge, NodeId, Quantity, Source, Subject};

use atoll_testkit::tree::Tree;

/// Number of mutations of each file. They follow a fixed sequence, so a failure is reproducible.
const MUTATIONS: u32 = 1_500;

/// A small random number generator (xorshift, Marsaglia 2003) with a fixed seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }
}

/// Damages a text as a typo, a disk or an attacker would: changed bytes, lines lost, duplicated or swapped, larger
/// numbers, a truncated end.
fn mutate(text: &str, numbers: &mut Numbers) -> String {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    for _ in 0..=numbers.below(3) {
        if lines.is_empty() {
            break;
        }
        let (line, other) = (numbers.below(lines.len()), numbers.below(lines.len()));
        match numbers.below(7) {
            0 => drop(lines.remove(line)),
            1 => lines.insert(line, lines[other].clone()),
            2 => lines.swap(line, other),
            3 => lines.truncate(line),
            _ => lines[line] = mutate_line(&lines[line], numbers),
        }
    }
    lines.concat()
}

fn mutate_line(line: &str, numbers: &mut Numbers) -> String {
    const PIECES: [&str; 14] = [
        "",
        "0",
        "99999999999",
        "18446744073709551616",
        "-1",
        "\"",
        "<",
        ">",
        "=",
        "[",
        "&",
        ",",
        "\u{0}",
        "é",
    ];
    let mut characters: Vec<String> = line.chars().map(String::from).collect();
    for _ in 0..=numbers.below(2) {
        let position = numbers.below(characters.len());
        let piece = PIECES[numbers.below(PIECES.len())].to_owned();
        match characters.get_mut(position) {
            Some(character) if numbers.chance(2) => *character = piece,
            Some(character) => character.push_str(&piece),
            None => characters.push(piece),
        }
    }
    characters.concat()
}

/// Parses mutations of valid texts: no panic, and every error names the file and an existing line.
fn survives<T>(texts: &[String], parse: impl Fn(&str, &str) -> Result<T, FormatError>) {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut refused = 0;
    for text in texts {
        assert!(parse(text, "good").is_ok(), "{text}");
        for _ in 0..MUTATIONS {
            let mutated = mutate(text, &mut numbers);
            let Err(error) = parse(&mutated, "bad.file") else { continue };
            refused += 1;
            assert_eq!(error.file, "bad.file", "{error}");
            let lines = mutated.split('\n').count();
            assert!(
                error.line.is_none_or(|line| (1..=lines).contains(&line)),
                "{error}\n{mutated}"
            );
            assert!(error.to_string().len() < 1_000, "{error}");
        }
    }
    assert!(refused > MUTATIONS / 4, "only {refused} of the mutations did any harm");
}

fn knowledge() -> Vec<Knowledge> {
    let path = Subject::Path { from: NodeId(0), to: NodeId(1) };
    let mut fact = Fact::new(path, Quantity::Latency, 131.5, Source::Measured, "a test");
    fact.at = Some(SystemTime::UNIX_EPOCH);
    [machines::two_nodes(), machines::eight_uneven_nodes()]
        .map(|machine| Knowledge { machine, facts: vec![fact.clone()] })
        .into()
}

#[test]
fn mutated_xml_is_read_or_refused() {
    let texts: Vec<String> = knowledge().iter().map(xml::write).collect();
    survives(&texts, xml::parse);
}

#[test]
fn mutated_toml_is_read_or_refused() {
    let texts: Vec<String> = knowledge().iter().map(toml::write).collect();
    survives(&texts, toml::parse);
}

#[test]
fn mutated_numactl_text_is_read_or_refused() {
    let columns = [numactl::DistanceWidth::Narrow, numactl::DistanceWidth::Wide];
    let texts: Vec<String> = knowledge()
        .iter()
        .flat_map(|known| columns.map(|columns| numactl::write(&known.machine, columns)))
        .collect();
    survives(&texts, numactl::parse);
}

#[test]
fn a_mutated_dump_is_read_or_refused() {
    let tree = Tree::from_machine(&machines::one_node());
    survives(&[dump::gather(&tree.root(), "one_node")], dump::open);
}

//! The net of the mechanism: Dominico 2018, section 3, with the cores themselves as tokens.
//!
//! The paper defines the pipeline (monitor, evaluate the invariant `thmin < u < thmax`, allocate or release a core) and
//! leaves these choices open:
//!
//! | Left open | Chosen |
//! |---|---|
//! | what `u` is when threads outnumber cores | cpu time of all threads of the target, divided by the time of its cpus |
//! | the smallest of several fitting numbers of cores | a stable target releases a core if `u` would stay below `thmax - hysteresis` with one less |
//! | `p(n+1) > p(n)` where another core lowers `u` and nothing else | the core stays: `u < thmax` is the first condition of equation 1, and such growth is bounded |
//! | how often it may change | a core is given after `dwell_up` consecutive observations, released after `dwell_down` |
//! | `p(n) >= p(ntotal)`, which is unknown without a trial | every act is a trial: `g` and `r` record whether the last ones paid, and those that did not are undone |
//! | cores that lie on the wrong node while `u` is stable | `move` exchanges one core for another |
//!
//! It cannot oscillate under a constant load: a core is given when `u * n >= thmax * n`, and released when `u * n <
//! (thmax - hysteresis) * (n - 1)`, so the load must fall by more than the hysteresis in between.

use super::formula::{at_most, equal, less, name};
use super::{Guard, InputArc, Marking, Net, OutputArc, PipelineStep, Place, Term, Transition};

/// The control token between two observations.
pub const WATCHING: usize = 0;
/// What the monitors saw.
pub const OBSERVED: usize = 1;
/// The invariant is being evaluated.
pub const CHECKS: usize = 2;
/// More cores than the load needs.
pub const IDLE: usize = 3;
/// The invariant holds.
pub const STABLE: usize = 4;
/// Fewer cores than the load needs.
pub const OVERLOADED: usize = 5;
/// The numbers of given and possible cores of the target.
pub const PROVISION: usize = 6;
/// Free cores.
pub const FREE: usize = 7;
/// The target's cores.
pub const GIVEN: usize = 8;
/// Cores of other targets.
pub const ELSEWHERE: usize = 9;

const PLACES: [Place; 10] = [
    Place {
        name: "Watching",
        fields: &["a", "d"],
        meaning: "the next observation is waited for; a and d count the overloaded and the idle ones in a row",
    },
    Place {
        name: "Observed",
        fields: &["u", "v", "g", "r"],
        meaning: "load in percent, verdict on the last act, whether growing (g) and releasing (r) may pay",
    },
    Place {
        name: "Checks",
        fields: &["a", "d", "u", "v", "g", "r"],
        meaning: "the invariant thmin < u < thmax is evaluated",
    },
    Place { name: "Idle", fields: &["d", "r"], meaning: "more cores than the load needs" },
    Place { name: "Stable", fields: &["d", "u", "r"], meaning: "the invariant holds" },
    Place { name: "Overloaded", fields: &["a", "g"], meaning: "fewer cores than the load needs" },
    Place {
        name: "Provision",
        fields: &["n", "f"],
        meaning: "cores that the target has, and cores that it could be given",
    },
    Place { name: "Free", fields: &["c"], meaning: "a core that may be given" },
    Place { name: "Given", fields: &["c"], meaning: "a core that the target has" },
    Place { name: "Elsewhere", fields: &["c"], meaning: "a core of another target" },
];

/// The verdict before the load is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing: evaluate the load.
    Evaluate,
    /// Another target has more right to a core, or the maximum was lowered.
    Yield,
    /// The core given last did not raise performance.
    Retreat,
    /// The core released last lowered performance.
    Regain,
    /// A core lies on the wrong node.
    Move,
}

impl Verdict {
    /// Its number on the token.
    pub fn number(self) -> i64 {
        self as i64
    }
}

/// The values that guards compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct NetParameters {
    /// Lower threshold of the load, percent.
    pub thmin: i64,
    /// Upper threshold of the load, percent.
    pub thmax: i64,
    /// How far below the upper threshold the load must stay when a core is released, percent.
    pub hysteresis: i64,
    /// Fewest cores.
    pub cores_min: i64,
    /// Most cores.
    pub cores_max: i64,
    /// Consecutive overloaded observations before a core is given.
    pub dwell_up: i64,
    /// Consecutive idle observations before a core is released.
    pub dwell_down: i64,
}

impl NetParameters {
    /// The thresholds of section 4 (10 and 70 percent, from [9] there), for this many cores.
    pub fn published(cores_max: i64) -> Self {
        Self {
            thmin: 10,
            thmax: 70,
            hysteresis: 10,
            cores_min: 1,
            cores_max,
            dwell_up: 3,
            dwell_down: 10,
        }
    }

    /// The parameter of that name.
    pub fn named(&self, name: &str) -> Option<i64> {
        Some(match name {
            "thmin" => self.thmin,
            "thmax" => self.thmax,
            "hysteresis" => self.hysteresis,
            "cores_min" => self.cores_min,
            "cores_max" => self.cores_max,
            "dwell_up" => self.dwell_up,
            "dwell_down" => self.dwell_down,
            _ => return None,
        })
    }
}

fn from(place: usize, names: &[&'static str]) -> InputArc {
    InputArc { place, names: names.to_vec() }
}

fn to<const N: usize>(place: usize, fields: [Term; N]) -> OutputArc {
    OutputArc { place, fields: fields.to_vec() }
}

/// An output token with the same fields as its input.
fn same(place: usize, names: &[&'static str]) -> OutputArc {
    OutputArc { place, fields: names.iter().copied().map(name).collect() }
}

const ZERO: Term = Term::Number(0);
const CHECKED: [&str; 6] = ["a", "d", "u", "v", "g", "r"];

fn verdict(verdict: Verdict) -> Guard {
    equal(name("v"), verdict.number())
}

/// A transition that changes no core.
fn keeps(
    step: PipelineStep,
    (title, rule): (&'static str, &'static str),
    input: InputArc,
    guard: Guard,
    output: OutputArc,
) -> Transition {
    let provision = &["n", "f"];
    let inputs = vec![input, from(PROVISION, provision)];
    let outputs = vec![output, same(PROVISION, provision)];
    Transition { name: title, rule, step, inputs, guard, outputs }
}

/// A transition that gives the target a core.
fn gives((title, rule): (&'static str, &'static str), input: InputArc, guard: Guard) -> Transition {
    let room = less(name("n"), name("cores_max")).and(at_most(1, name("f")));
    Transition {
        name: title,
        rule,
        step: PipelineStep::Act,
        inputs: vec![input, from(PROVISION, &["n", "f"]), from(FREE, &["c"])],
        guard: guard.and(room),
        outputs: vec![
            to(WATCHING, [ZERO, ZERO]),
            to(PROVISION, [name("n") + 1, name("f") - 1]),
            same(GIVEN, &["c"]),
        ],
    }
}

/// A transition that takes a core from the target.
fn takes((title, rule): (&'static str, &'static str), input: InputArc, guard: Guard) -> Transition {
    Transition {
        name: title,
        rule,
        step: PipelineStep::Act,
        inputs: vec![input, from(PROVISION, &["n", "f"]), from(GIVEN, &["c"])],
        guard: guard.and(less(name("cores_min"), name("n"))),
        outputs: vec![
            to(WATCHING, [ZERO, ZERO]),
            to(PROVISION, [name("n") - 1, name("f") + 1]),
            same(FREE, &["c"]),
        ],
    }
}

/// The net.
pub fn core_net() -> Net {
    let mut transitions = vec![check()];
    transitions.extend(verdicts());
    transitions.extend(evaluations());
    transitions.extend(growth());
    transitions.extend(release());
    transitions.extend(sharing());
    Net { places: PLACES.to_vec(), transitions }
}

fn check() -> Transition {
    Transition {
        name: "check",
        rule: "an observation has come",
        step: PipelineStep::Monitor,
        inputs: vec![from(WATCHING, &["a", "d"]), from(OBSERVED, &["u", "v", "g", "r"])],
        guard: Guard::ALWAYS,
        outputs: vec![same(CHECKS, &CHECKED)],
    }
}

/// The verdict before the load.
fn verdicts() -> [Transition; 5] {
    let full = at_most(name("cores_max"), name("n")).or(less(name("f"), 1));
    let least = || at_most(name("n"), name("cores_min"));
    let mut declined = CHECKED.map(name);
    declined[3] = Verdict::Evaluate.number().into();
    let checks = || from(CHECKS, &CHECKED);
    [
        takes(
            ("yield", "another target with more right needs a core, or fewer are allowed now"),
            checks(),
            verdict(Verdict::Yield),
        ),
        takes(
            ("retreat", "the core given last did not raise performance: p(n+1) > p(n) is false"),
            checks(),
            verdict(Verdict::Retreat),
        ),
        gives(
            ("regain", "the core released last lowered performance: p(n) >= p(n+1) is false"),
            checks(),
            verdict(Verdict::Regain),
        ),
        Transition {
            name: "move",
            rule: "a free core is nearer to the pages accessed than one that is given",
            step: PipelineStep::Act,
            inputs: vec![
                checks(),
                from(PROVISION, &["n", "f"]),
                from(GIVEN, &["c"]),
                from(FREE, &["e"]),
            ],
            guard: verdict(Verdict::Move),
            outputs: vec![
                to(WATCHING, [ZERO, ZERO]),
                same(PROVISION, &["n", "f"]),
                same(FREE, &["c"]),
                same(GIVEN, &["e"]),
            ],
        },
        keeps(
            PipelineStep::Evaluate,
            ("decline", "what was asked for before the load is not possible"),
            checks(),
            (verdict(Verdict::Yield).and(least()))
                .or(verdict(Verdict::Retreat).and(least()))
                .or(verdict(Verdict::Regain).and(full))
                .or(verdict(Verdict::Move).and(less(name("f"), 1))),
            to(CHECKS, declined),
        ),
    ]
}

/// The invariant.
fn evaluations() -> [Transition; 5] {
    let checks = || from(CHECKS, &CHECKED);
    let evaluate = |title, input: InputArc, guard, output| {
        keeps(PipelineStep::Evaluate, title, input, guard, output)
    };
    let on_one_less =
        || (name("u") * name("n"), (name("thmax") - name("hysteresis")) * (name("n") - 1));
    let (needed, offered) = on_one_less();
    let surplus = less(needed, offered);
    let (needed, offered) = on_one_less();
    let tight = at_most(offered, needed);
    [
        evaluate(
            ("idle", "u <= thmin"),
            checks(),
            verdict(Verdict::Evaluate).and(at_most(name("u"), name("thmin"))),
            same(IDLE, &["d", "r"]),
        ),
        evaluate(
            ("stable", "thmin < u < thmax"),
            checks(),
            verdict(Verdict::Evaluate)
                .and(less(name("thmin"), name("u")))
                .and(less(name("u"), name("thmax"))),
            same(STABLE, &["d", "u", "r"]),
        ),
        evaluate(
            ("overloaded", "thmax <= u"),
            checks(),
            verdict(Verdict::Evaluate)
                .and(less(name("thmin"), name("u")))
                .and(at_most(name("thmax"), name("u"))),
            same(OVERLOADED, &["a", "g"]),
        ),
        evaluate(
            ("surplus", "the load would fit on one core less"),
            from(STABLE, &["d", "u", "r"]),
            surplus,
            same(IDLE, &["d", "r"]),
        ),
        keeps(
            PipelineStep::Keep,
            ("keep", "the local optimum number of cores is set"),
            from(STABLE, &["d", "u", "r"]),
            tight,
            to(WATCHING, [ZERO, ZERO]),
        ),
    ]
}

fn growth() -> [Transition; 3] {
    let overloaded = || from(OVERLOADED, &["a", "g"]);
    let waited = || at_most(name("dwell_up"), name("a") + 1);
    [
        keeps(
            PipelineStep::Keep,
            ("wait_to_allocate", "overloaded, but not for long enough"),
            overloaded(),
            less(name("a") + 1, name("dwell_up")),
            to(WATCHING, [name("a") + 1, ZERO]),
        ),
        gives(
            ("allocate", "overloaded for dwell_up observations, and growing may pay"),
            overloaded(),
            waited().and(equal(name("g"), 1)),
        ),
        keeps(
            PipelineStep::Keep,
            ("stop_growing", "overloaded, but there is no core to give, or growing did not pay"),
            overloaded(),
            waited().and(
                at_most(name("cores_max"), name("n")).or(less(name("f"), 1)).or(less(name("g"), 1)),
            ),
            same_up(),
        ),
    ]
}

/// Overloaded observations remain counted: the first chance to grow is taken.
fn same_up() -> OutputArc {
    to(WATCHING, [name("a"), ZERO])
}

fn release() -> [Transition; 3] {
    let idle = || from(IDLE, &["d", "r"]);
    let waited = || at_most(name("dwell_down"), name("d") + 1);
    [
        keeps(
            PipelineStep::Keep,
            ("wait_to_release", "idle, but not for long enough"),
            idle(),
            less(name("d") + 1, name("dwell_down")),
            to(WATCHING, [ZERO, name("d") + 1]),
        ),
        takes(
            ("release", "idle for dwell_down observations"),
            idle(),
            waited().and(equal(name("r"), 1)),
        ),
        keeps(
            PipelineStep::Keep,
            (
                "stop_releasing",
                "idle, but on the fewest cores allowed, or releasing cost performance",
            ),
            idle(),
            waited().and(at_most(name("n"), name("cores_min")).or(less(name("r"), 1))),
            to(WATCHING, [ZERO, name("d")]),
        ),
    ]
}

/// Moves of cores between targets.
fn sharing() -> [Transition; 2] {
    let passes = |title, rule, [source, target]: [usize; 2], f: Term| Transition {
        name: title,
        rule,
        step: PipelineStep::Share,
        inputs: vec![from(PROVISION, &["n", "f"]), from(source, &["c"])],
        guard: Guard::ALWAYS,
        outputs: vec![to(PROVISION, [name("n"), f]), same(target, &["c"])],
    };
    [
        passes("lend", "a core that no target needs", [ELSEWHERE, FREE], name("f") + 1),
        passes("recall", "a free core that another target needs", [FREE, ELSEWHERE], name("f") - 1),
    ]
}

/// The state before the first observation.
pub fn first_marking(
    given: impl IntoIterator<Item = i64>,
    free: impl IntoIterator<Item = i64>,
    elsewhere: impl IntoIterator<Item = i64>,
) -> Marking {
    let mut marking = Marking::empty(PLACES.len());
    let mut place = |place, cores: Vec<i64>| {
        for core in &cores {
            marking.put(place, vec![*core]);
        }
        cores.len() as i64
    };
    let n = place(GIVEN, given.into_iter().collect());
    let f = place(FREE, free.into_iter().collect());
    place(ELSEWHERE, elsewhere.into_iter().collect());
    marking.put(PROVISION, vec![n, f]);
    marking.put(WATCHING, vec![0, 0]);
    marking
}

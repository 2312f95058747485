//! Random calls of functions and operators over hostile values: refused or answered, never a panic. The differential
//! (`cargo xtask differential --calls`) makes as many as time allows.

use atoll_testkit::calls::{CalledFunction, FUNCTIONS, is_fault, random_call, setup};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::common::{live, rows, run};

const SEED: u64 = 20_261_127;
const CALLS: usize = 1_500;

#[test]
fn no_call_panics() {
    let session = live();
    for statement in setup() {
        run(&session, &statement).unwrap_or_else(|error| panic!("{statement}\n{error}"));
    }
    let functions: Vec<CalledFunction> = rows(&session, FUNCTIONS)
        .into_iter()
        .map(|row| CalledFunction {
            name: row[0].clone(),
            kind: row[1].clone(),
            arguments: row[2].clone(),
        })
        .collect();
    let mut random = StdRng::seed_from_u64(SEED);
    let mut faults = Vec::new();
    for _ in 0..CALLS {
        let sql = random_call(&functions, &mut random);
        if let Err(error) = run(&session, &sql)
            && is_fault(error.state.code(), &error.message)
        {
            faults.push(format!("{sql}\n{error}"));
        }
    }
    assert!(faults.is_empty(), "{} of {CALLS}:\n{}", faults.len(), faults.join("\n"));
}

//! Which tests run at the same time.
//!
//! Most tests of the binary and of the engines wait for a kernel, a clock or another program; those of the
//! simulator compute. The first run with the usual priority, the second beside them on what is left of the
//! cores: their clock is simulated, so they may be interrupted at any time. Tests that measure, or fill the
//! machine, come last, one at a time.

use super::build::{Built, Program};

/// Programs with tests that wait for something real. All others only compute.
const WAITING: [&str; 11] = [
    "behaviours",
    "binary",
    "conditions",
    "directories",
    "forked",
    "pebble",
    "plimsoll",
    "plimsoll_auth",
    "plimsoll_engine",
    "plimsoll_lab",
    "xtask",
];
/// The conformance suite, whose tests are divided by their engine.
const SUITE: &str = "behaviours";
/// The tests of the binary, some of which run alone.
const BINARY: &str = "binary";
/// The modules of the suite's tests that only compute.
const COMPUTING: [&str; 3] = ["simulator::", "apart::", "spooled::"];
/// The same in a long run, in which the other two use a real engine too.
const COMPUTING_IN_A_LONG_RUN: [&str; 1] = ["simulator::"];
/// The modules of tests that run while no other waiting test does.
const ALONE: &str = "alone::";

/// A part of the tests of a program.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) program: Program,
    /// The name that distinguishes it from the program's other parts in the output.
    pub(super) name: &'static str,
    /// Arguments of libtest.
    pub(super) arguments: Vec<String>,
}

/// All parts, in the lists that run side by side.
#[derive(Default)]
pub(super) struct Plan {
    /// Parts that compute, in this order, whenever a core is idle.
    pub(super) computing: Vec<Part>,
    /// Parts that wait, each list in its order beside the other.
    pub(super) waiting: [Vec<Part>; 2],
    /// Parts whose tests run one at a time, after those that wait.
    pub(super) alone: Vec<Part>,
}

/// Assigns every test to one part. `cores` is the number of tests that compute at the same time.
pub(super) fn plan(built: &Built, is_long: bool, cores: usize) -> Plan {
    let mut plan = Plan::default();
    for program in &built.programs {
        let part = |name, arguments: &[&str], threads: usize| Part {
            program: program.clone(),
            name,
            arguments: arguments
                .iter()
                .map(|argument| (*argument).to_owned())
                .chain([format!("--test-threads={threads}")])
                .collect(),
        };
        match program.name.as_str() {
            SUITE => {
                let simulated = if is_long { &COMPUTING_IN_A_LONG_RUN[..] } else { &COMPUTING[..] };
                let others: Vec<&str> = simulated.iter().flat_map(|module| ["--skip", module]).collect();
                plan.computing.push(part("simulated", simulated, cores));
                plan.waiting[0].push(part("real engines", &others, 2 * cores));
            }
            BINARY => {
                plan.waiting[1].push(part("among others", &["--skip", ALONE], 2 * cores));
                plan.alone.push(part("alone", &[ALONE], 1));
            }
            name if WAITING.contains(&name) => plan.waiting[0].push(part("all", &[], 2 * cores)),
            _ => plan.computing.push(part("all", &[], cores)),
        }
    }
    // The longest first: a short one at the end leaves no core without work.
    plan.computing.sort_by_key(|part| part.program.name != SUITE);
    plan.waiting[0].sort_by_key(|part| part.program.name != SUITE);
    plan
}

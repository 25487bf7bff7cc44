//! Results of modelled systems instead of measured ones: for tests, and to look at a report.
//!
//! Nothing is measured; the notes of such a run say so. Invariants: without noise, the figures of closed
//! loops are those of mean value analysis, and those of open loops those of queues with exponential demands
//! (R = D / (1 - U)); the same plan gives the same results.

use std::fmt::Write as _;

use anyhow::Result;

use super::{
    DiskUse, Entrant, FinishedTrial, Generator, Latency, LittlesLaw, LoadFigures, Machine, MachineUse,
    Measured, ProcessUse, Results, Run, TrialResult,
};
use crate::analysis::{Centre, Solution, solve};
use crate::experiment::Experiment;
use crate::experiment::open_loop::OpenLoop;
use crate::stats::Chance;

/// The measured time of a trial in seconds.
const SECONDS: f64 = 10.0;
/// Bytes of each body.
const BODY: f64 = 10_240.0;

/// A modelled system.
#[derive(Clone, Debug)]
pub struct System {
    /// The name of the contender.
    pub name: String,
    /// Its processes.
    pub processes: Vec<ModelledProcess>,
    /// The demand at a disk in seconds.
    pub disk: f64,
    /// The time in seconds for which a request holds a lock, which no probe sees.
    pub lock: f64,
    /// The rest of a request's time in seconds, without a queue.
    pub delay: f64,
}

/// A process of a modelled system.
#[derive(Clone, Debug)]
pub struct ModelledProcess {
    /// The name.
    pub name: String,
    /// Its CPU time for a request in seconds.
    pub demand: f64,
    /// The cores to which it is pinned, such as `0`.
    pub cores: Option<String>,
    /// The number of its threads, which are as many servers.
    pub threads: u32,
}

/// The trials of modelled systems.
#[derive(Clone, Debug)]
pub struct SyntheticPlan {
    /// The numbers of users.
    pub users: Vec<u32>,
    /// The think time in milliseconds.
    pub think_ms: u32,
    /// The number of repetitions.
    pub repetitions: u32,
    /// The number of discarded repetitions.
    pub discarded: u32,
    /// The standard deviation of the logarithm of each figure.
    pub noise: f64,
    /// The same, for a factor that all contenders of a repetition share.
    pub drift: f64,
    /// The seed of the noise.
    pub seed: u64,
    /// Whether the first system is the reference.
    pub has_reference: bool,
    /// The rates of the open loops in percent of the maximum throughput.
    pub open_percent: Vec<u32>,
}

/// The load of a modelled trial.
struct ModelledLoad {
    users: u32,
    /// Requests a second.
    throughput: f64,
    /// The mean response time in seconds.
    response: f64,
    is_open: bool,
    /// The factor of its demands.
    cost: f64,
}

impl Default for SyntheticPlan {
    fn default() -> SyntheticPlan {
        SyntheticPlan {
            users: vec![1, 2, 4, 8, 16, 32, 64],
            think_ms: 0,
            repetitions: 5,
            discarded: 0,
            noise: 0.0,
            drift: 0.0,
            seed: 1,
            has_reference: false,
            open_percent: Vec::new(),
        }
    }
}

impl System {
    /// Returns a system of one process with one thread.
    pub fn simple(name: &str, demand: f64, delay: f64) -> System {
        let process = ModelledProcess { name: "server".to_owned(), demand, cores: None, threads: 1 };
        System { name: name.to_owned(), processes: vec![process], disk: 0.0, lock: 0.0, delay }
    }

    fn centres(&self) -> Vec<Centre> {
        let processes = self.processes.iter().map(|one| Centre::Servers(one.demand, one.threads));
        let others = [Centre::Queue(self.disk), Centre::Queue(self.lock), Centre::Delay(self.delay)];
        processes.chain(others).collect()
    }

    /// Returns the mean response time at a rate of independent requests.
    fn open_response(&self, rate: f64) -> f64 {
        let response = |centre: &Centre| match *centre {
            Centre::Delay(demand) => demand,
            Centre::Queue(demand) => demand / (1.0 - rate * demand),
            // An approximation: exact for one server.
            Centre::Servers(demand, servers) => demand / (1.0 - rate * demand / f64::from(servers)),
        };
        self.centres().iter().map(response).sum()
    }
}

impl SyntheticPlan {
    /// Returns the results of the plan.
    ///
    /// # Errors
    /// The plan is no valid experiment.
    pub fn results(&self, systems: &[System]) -> Result<Results> {
        let text = self.experiment(systems);
        let experiment = Experiment::parse(&text)?;
        let most = self.users.iter().copied().max().unwrap_or(1);
        let think = f64::from(self.think_ms) / 1000.0;
        let solved: Vec<Vec<Solution>> =
            systems.iter().map(|system| solve(&system.centres(), think, most)).collect();
        let mut chance = Chance::new(self.seed);
        let mut trials = Vec::new();
        for users in &self.users {
            for repetition in 1..=self.repetitions {
                let common = self.drift * normal(&mut chance);
                for (system, solutions) in systems.iter().zip(&solved) {
                    let factors = [0, 1].map(|_| (self.noise * normal(&mut chance)).exp());
                    let solution = solutions.iter().find(|one| one.users == *users);
                    let Some(solution) = solution else { continue };
                    let load = closed_load(solution, think, common.exp(), factors);
                    trials.push(finished_trial(system, &load, None, repetition));
                }
            }
        }
        let run = self.run(systems);
        let mut results =
            Results { experiment, text, run, trials, open_loops: Vec::new(), profiles: Vec::new() };
        for (system, solutions) in systems.iter().zip(&solved) {
            self.add_open_loops(&mut results, &mut chance, system, solutions);
        }
        Ok(results)
    }

    fn add_open_loops(
        &self,
        results: &mut Results,
        chance: &mut Chance,
        system: &System,
        solutions: &[Solution],
    ) {
        let Some(last) = solutions.last() else { return };
        for percent in &self.open_percent {
            let rate = last.throughput * f64::from(*percent) / 100.0;
            let rate = (rate * 1000.0).round() / 1000.0;
            for repetition in 1..=self.repetitions {
                let [speed, cost] = [0, 1].map(|_| (self.noise * normal(chance)).exp());
                let response = system.open_response(rate) / speed;
                let load =
                    ModelledLoad { users: last.users, throughput: rate, response, is_open: true, cost };
                let open_loop = OpenLoop { percent: *percent, rate: Some(rate) };
                results.open_loops.push(finished_trial(system, &load, Some(open_loop), repetition));
            }
        }
    }

    fn experiment(&self, systems: &[System]) -> String {
        let mut text = String::from("name = \"synthetic\"\nabout = \"How do the modelled systems scale?\"\n");
        for (at, system) in systems.iter().enumerate() {
            let is_reference = self.has_reference && at == 0;
            // Writing to a string does not fail.
            let _ = write!(text, "\n[[contenders]]\nname = {:?}\nreference = {is_reference}\n", system.name);
            let _ = writeln!(text, "url = \"http://{{host}}:{{port}}/\"");
            for process in &system.processes {
                let _ = write!(text, "[[contenders.processes]]\nname = {:?}\n", process.name);
                let _ = writeln!(text, "command = [\"true\", \"{{port}}\"]");
                if let Some(cores) = &process.cores {
                    let _ = writeln!(text, "cores = {cores:?}");
                }
            }
        }
        let _ = write!(
            text,
            "\n[load]\ntime = \"10s\"\nthink = \"{}ms\"\n\n[sweep]\nusers = {:?}\n\n\
             [order]\nrepetitions = {}\ndiscarded = {}\n",
            self.think_ms, self.users, self.repetitions, self.discarded
        );
        let _ = write!(text, "\n[open_loop]\npercent = {:?}\n", self.open_percent);
        text
    }

    fn run(&self, systems: &[System]) -> Run {
        let machine = Machine {
            cpu: "a modelled processor".to_owned(),
            cores: 2,
            memory_mib: 8192,
            kernel: "6.12".to_owned(),
            system: "no distribution".to_owned(),
            ..Machine::default()
        };
        let entrant = |(at, system): (usize, &System)| Entrant {
            name: system.name.clone(),
            about: "a modelled system".to_owned(),
            version: "1.0".to_owned(),
            reference: self.has_reference && at == 0,
            machine: None,
        };
        Run {
            plimsoll: env!("CARGO_PKG_VERSION").to_owned(),
            begun: "2026-11-25T10:00:00Z".to_owned(),
            machine,
            contenders: systems.iter().enumerate().map(entrant).collect(),
            maxima: Vec::new(),
            notes: vec!["These results are synthetic: nothing was measured.".to_owned()],
        }
    }
}

fn closed_load(solution: &Solution, think: f64, common: f64, factors: [f64; 2]) -> ModelledLoad {
    let [speed, cost] = factors;
    let throughput = solution.throughput * speed * common;
    let response = f64::from(solution.users) / throughput - think;
    ModelledLoad { users: solution.users, throughput, response, is_open: false, cost: cost / common }
}

fn finished_trial(
    system: &System,
    load: &ModelledLoad,
    open_loop: Option<OpenLoop>,
    repetition: u32,
) -> FinishedTrial {
    FinishedTrial {
        contender: system.name.clone(),
        point: [("users".to_owned(), load.users.to_string())].into(),
        open_loop,
        repetition,
        begun: "2026-11-25T10:00:00Z".to_owned(),
        seconds: SECONDS + 2.0,
        result: TrialResult::Measured(Box::new(measured(system, load))),
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts of a modelled trial, far below 2^52"
)]
fn measured(system: &System, load: &ModelledLoad) -> Measured {
    let throughput = load.throughput;
    let us = load.response * 1e6;
    let process = |one: &ModelledProcess| {
        let busy = throughput * SECONDS * one.demand * load.cost;
        ProcessUse {
            name: one.name.clone(),
            user_seconds: Some(busy * 0.4),
            system_seconds: Some(busy * 0.6),
            threads: u64::from(one.threads),
            processes: 1,
            rss_bytes: 40 << 20,
            disk_read_bytes: Some(if system.disk > 0.0 { (throughput * BODY * SECONDS) as u64 } else { 0 }),
            pss_bytes: Some(0),
            ..ProcessUse::default()
        }
    };
    let processes: Vec<ProcessUse> = system.processes.iter().map(process).collect();
    let busy = processes.iter().filter_map(ProcessUse::cpu_seconds).sum::<f64>() / SECONDS;
    let disk = DiskUse {
        name: "sda".to_owned(),
        busy: (throughput * system.disk).min(1.0),
        read_bytes: (throughput * BODY * SECONDS) as u64,
        // Of another program.
        written_bytes: 1 << 30,
        ..DiskUse::default()
    };
    let has_disk = system.disk > 0.0;
    Measured {
        load: LoadFigures {
            users: u64::from(load.users),
            seconds: SECONDS,
            requests: (throughput * SECONDS) as u64,
            bytes: (throughput * SECONDS * BODY) as u64,
            requests_per_second: throughput,
            bytes_per_second: throughput * BODY,
            latency_us: Latency {
                mean: us,
                p50: us * 0.7,
                p90: us * 2.2,
                p95: Some(us * 2.9),
                p99: us * 4.4,
                p999: us * 6.6,
                max: us * 9.0,
            },
            pace: if load.is_open { "open" } else { "closed" }.to_owned(),
            littles_law: LittlesLaw { users: f64::from(load.users), ratio: 1.0 },
            generator: Generator { cpu_seconds: 1.0, share: 0.1, is_the_limit: false },
            ..LoadFigures::default()
        },
        processes,
        machine: Some(MachineUse {
            seconds: SECONDS,
            cores_busy: vec![(busy / 2.0).min(1.0), (busy / 2.0 + 0.02).min(1.0)],
            disks: if has_disk { vec![disk] } else { Vec::new() },
            ..MachineUse::default()
        }),
        marks: Vec::new(),
    }
}

/// Returns a draw of the standard normal distribution, nearly: the sum of twelve uniform draws.
#[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
fn normal(chance: &mut Chance) -> f64 {
    let uniform = |_| (chance.draw() >> 11) as f64 / (1_u64 << 53) as f64;
    (0..12).map(uniform).sum::<f64>() - 6.0
}

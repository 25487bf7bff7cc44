//! The laboratory's side: starts an agent and sends it requests.
//!
//! It measures nothing. Invariant: dropping the value ends the agent, which then ends everything that it
//! started.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::de::DeserializeOwned;

use super::limits::AGENT_END_TIME_MAX;
use super::probe::clock;
use super::{Greeting, Request, Response};

/// The interval between two checks whether an agent has responded or ended, or the run is to end.
const CHECK_EVERY: Duration = Duration::from_millis(10);

/// How often the clock of another machine is read.
const CLOCK_READINGS: usize = 5;

/// A running agent.
#[derive(Debug)]
pub struct Agent<'a> {
    child: Child,
    input: Option<ChildStdin>,
    /// The lines of its output.
    output: Receiver<String>,
    /// Its description of itself.
    pub greeting: Greeting,
    /// Its clock minus ours, in seconds; 0 on this machine.
    clock_ahead: f64,
    /// Set when the run is to end.
    stop: &'a AtomicBool,
    /// Its input or its output was closed.
    is_lost: bool,
}

impl<'a> Agent<'a> {
    /// Starts an agent: `program lab agent` behind the words of `prefix`. Its folder is below `work`.
    /// Requests fail when `stop` is set.
    ///
    /// # Errors
    /// The program or the prefix cannot be run, or the agent has another version.
    pub fn start(prefix: &[String], program: &str, work: &Path, stop: &'a AtomicBool) -> Result<Agent<'a>> {
        let words = prefix.iter().map(String::as_str).chain([program, "lab", "agent"]);
        let words: Vec<&str> = words.collect();
        let mut command = Command::new(words[0]);
        // A process group of its own: Ctrl-C reaches only the laboratory, which then ends the agent.
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().with_context(|| format!("cannot run {}", words.join(" ")))?;
        let (input, output) = (child.stdin.take(), child.stdout.take().context("an agent has an output")?);
        let (greeting, output) = (Greeting::default(), lines(BufReader::new(output)));
        let mut agent = Agent { child, input, output, greeting, clock_ahead: 0.0, stop, is_lost: false };
        let hello = Request::Hello { work: work.to_owned() };
        agent.greeting = agent.call(&hello).with_context(|| {
            let command = words.join(" ");
            format!("the agent does not answer. Try {command}; a contender's `plimsoll` is its path there")
        })?;
        let version = env!("CARGO_PKG_VERSION");
        if agent.greeting.version != version {
            bail!(
                "{} is version {}, and this is {version}: install the same",
                words.join(" "),
                agent.greeting.version
            );
        }
        if !prefix.is_empty() {
            agent.compare_clocks()?;
        }
        Ok(agent)
    }

    /// Sends a request and returns the value of its response.
    ///
    /// # Errors
    /// The agent's error; or the agent has ended; or the run is to end, which ends the agent.
    pub fn call<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T> {
        let input = self.input.as_mut().context("the agent has ended")?;
        let line = serde_json::to_string(request)? + "\n";
        let written = input.write_all(line.as_bytes());
        self.is_lost |= written.is_err();
        written.context("the agent has ended")?;
        match serde_json::from_str(&self.response()?).context("the agent sent no response")? {
            Response::Value(value) => Ok(serde_json::from_value(value)?),
            Response::Error(error) => bail!("{error}"),
        }
    }

    /// Returns whether its process, or the one that carries its input and output, has ended.
    pub fn has_ended(&mut self) -> bool {
        // A killed process closes its output before it has ended.
        self.is_lost || self.child.try_wait().map_or(true, |status| status.is_some())
    }

    fn response(&mut self) -> Result<String> {
        loop {
            match self.output.recv_timeout(CHECK_EVERY) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Disconnected) => {
                    self.is_lost = true;
                    bail!("the agent has ended");
                }
                Err(RecvTimeoutError::Timeout) if self.stop.load(Ordering::Relaxed) => {
                    self.input = None;
                    bail!("the run was ended");
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Returns a time of our monotonic clock by that of the agent's machine.
    pub fn its_time(&self, ours: f64) -> f64 {
        ours + self.clock_ahead
    }

    /// Compares the clocks of two machines. On one machine, they are the same clock.
    fn compare_clocks(&mut self) -> Result<()> {
        let mut readings = Vec::new();
        for _ in 0..CLOCK_READINGS {
            let before = clock();
            let its: f64 = self.call(&Request::Clock)?;
            readings.push(Reading { before, its, after: clock() });
        }
        self.clock_ahead = clock_ahead(&readings);
        Ok(())
    }
}

/// A reading of the agent's clock, and the times of the request and of the response by ours.
#[derive(Clone, Copy, Debug)]
struct Reading {
    before: f64,
    its: f64,
    after: f64,
}

/// Returns the difference of the clocks by the reading with the shortest round trip. The agent's clock was
/// read between request and response, so that the error is at most half of it.
fn clock_ahead(readings: &[Reading]) -> f64 {
    let round_trip = |reading: &Reading| reading.after - reading.before;
    let best = readings.iter().min_by(|one, other| round_trip(one).total_cmp(&round_trip(other)));
    best.map_or(0.0, |one| one.its - f64::midpoint(one.before, one.after))
}

/// Returns the lines of an agent's output, which a thread reads.
fn lines(output: BufReader<ChildStdout>) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in output.lines() {
            let Ok(line) = line else { break };
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

impl Drop for Agent<'_> {
    fn drop(&mut self) {
        // The end of its input ends the agent.
        self.input = None;
        let until = Instant::now() + AGENT_END_TIME_MAX;
        while Instant::now() < until {
            if self.child.try_wait().map_or(true, |status| status.is_some()) {
                return;
            }
            std::thread::sleep(CHECK_EVERY);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_response_does_not_move_the_clock_of_another_machine() {
        // The clock is 100 s ahead. A response is late by 2 s, and a request by 4 s.
        let reading = |before: f64, its: f64, after: f64| Reading { before, its, after };
        let readings =
            [reading(1.0, 101.001, 3.002), reading(4.0, 104.001, 4.002), reading(5.0, 109.0, 9.001)];
        assert!((clock_ahead(&readings) - 100.0).abs() < 0.001);
        assert!((clock_ahead(&readings[..1]) - 100.0).abs() > 0.9);
    }
}

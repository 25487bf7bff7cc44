//! The service demands of the model server, as a person writes them.
//!
//! Not here: the draws from them. Invariants: a text that leaves one out means zero; an unknown name is an
//! error.

use std::str::FromStr;
use std::time::Duration;

use anyhow::{Error, Result, anyhow, bail};
use plimsoll_wire::units::Time;

/// The service demands of each request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demands {
    /// The mean processor time.
    pub spin: Duration,
    /// The mean time for which a request holds the lock. It uses no processor meanwhile.
    pub lock: Duration,
    /// The mean time for which a request sleeps, beside any number of others.
    pub sleep: Duration,
    /// The distribution of all of them.
    pub distribution: Distribution,
}

/// The distribution of a demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// Exponential, as mean value analysis assumes.
    #[default]
    Exponential,
    /// The same for each request.
    Constant,
}

impl FromStr for Demands {
    type Err = Error;

    /// Parses demands such as `spin=4ms,lock=2ms,sleep=20ms,constant`.
    fn from_str(text: &str) -> Result<Demands> {
        let mut demands = Demands::default();
        for part in text.split(',') {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let parsed = value.parse::<Time>();
            let mean = || parsed.map(|time| time.0).map_err(|why| anyhow!("{part:?} has no time: {why}"));
            match name {
                "spin" => demands.spin = mean()?,
                "lock" => demands.lock = mean()?,
                "sleep" => demands.sleep = mean()?,
                "constant" if value.is_empty() => demands.distribution = Distribution::Constant,
                "exponential" if value.is_empty() => demands.distribution = Distribution::Exponential,
                _ => bail!("{part:?} is no demand: write spin=TIME, lock=TIME, sleep=TIME, or constant"),
            }
        }
        Ok(demands)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demand_that_is_left_out_is_zero_and_an_unknown_one_is_an_error() {
        let demands: Demands = "spin=4ms,sleep=1s,constant".parse().unwrap();
        assert_eq!((demands.spin, demands.sleep), (Duration::from_millis(4), Duration::from_secs(1)));
        assert_eq!((demands.lock, demands.distribution), (Duration::ZERO, Distribution::Constant));
        for wrong in ["", "spin", "spin=4", "disk=4ms", "constant=1", "spin=4ms,,lock=1ms"] {
            assert!(wrong.parse::<Demands>().is_err(), "{wrong:?}");
        }
    }
}

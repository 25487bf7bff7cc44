//! Asymptotic bounds of the throughput and the response time of a closed system, for any distribution of its
//! demands.
//!
//! They assume no queueing below and full use of one resource above. Invariant: no system of these demands
//! lies beyond them.

/// The bounds of a closed system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The sum of all demands, in seconds: the response time of a request that waits nowhere.
    pub total_demand: f64,
    /// The largest demand of one server of a resource, in seconds: that of the bottleneck.
    pub largest_demand: f64,
    /// The think time in seconds.
    pub think: f64,
}

impl Bounds {
    /// Returns the largest throughput of `users`: X(N) <= min(N / (D + Z), 1 / Dmax).
    pub fn throughput(&self, users: f64) -> f64 {
        (users / (self.total_demand + self.think)).min(1.0 / self.largest_demand)
    }

    /// Returns the smallest response time of `users`: R(N) >= max(D, N Dmax - Z).
    pub fn response(&self, users: f64) -> f64 {
        self.total_demand.max(users * self.largest_demand - self.think)
    }

    /// Returns the number of users at which the two bounds meet: N* = (D + Z) / Dmax. Beyond it, requests
    /// wait even if all arrive evenly.
    pub fn saturation(&self) -> f64 {
        (self.total_demand + self.think) / self.largest_demand
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_are_those_of_the_textbook() {
        // A processor of 4 ms, a disk of 6 ms, a think time of 90 ms.
        let bounds = Bounds { total_demand: 0.010, largest_demand: 0.006, think: 0.090 };
        assert!((bounds.throughput(1.0) - 10.0).abs() < 1e-9);
        assert!((bounds.throughput(100.0) - 1.0 / 0.006).abs() < 1e-9);
        assert!((bounds.response(1.0) - 0.010).abs() < 1e-12);
        assert!((bounds.response(100.0) - 0.510).abs() < 1e-12);
        assert!((bounds.saturation() - 100.0 / 6.0).abs() < 1e-9);
        let at = bounds.saturation();
        assert!((bounds.throughput(at) * (bounds.response(at) + bounds.think) - at).abs() < 1e-9);
    }
}

//! Exact mean value analysis of a closed system with one class of users.
//!
//! The result is exact for exponential demands at resources that serve in order of arrival, and for any
//! distribution where nothing waits (delays) or all share (processor sharing). For constant demands it is too
//! pessimistic. Invariants: the throughput never decreases with the number of users, and satisfies Little's
//! law.

/// A resource.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Centre {
    /// One server with a queue, and this demand in seconds.
    Queue(f64),
    /// Several equal servers with one queue: the demand at one of them in seconds, and their number.
    Servers(f64, u32),
    /// A delay without a queue, in seconds.
    Delay(f64),
}

impl Centre {
    /// Returns the demand in seconds.
    pub fn demand(&self) -> f64 {
        match *self {
            Centre::Queue(demand) | Centre::Servers(demand, _) | Centre::Delay(demand) => demand,
        }
    }
}

/// The state of a closed system with a number of users.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// The number of users.
    pub users: u32,
    /// Requests a second.
    pub throughput: f64,
    /// The response time in seconds, without the think time.
    pub response: f64,
    /// The mean number of requests at each centre.
    pub queues: Vec<f64>,
}

/// Returns the state for each number of users from 1 to `users`. `think` is in seconds.
pub fn solve(centres: &[Centre], think: f64, users: u32) -> Vec<Solution> {
    let mut states: Vec<CentreState> = centres.iter().map(CentreState::new).collect();
    let each = (1..=users).map(|users| {
        let residences: Vec<f64> = states.iter().map(|state| state.residence(users)).collect();
        let response: f64 = residences.iter().sum();
        let throughput = f64::from(users) / (response + think);
        let moved = states.iter_mut().zip(&residences);
        moved.for_each(|(state, residence)| state.advance(throughput, *residence));
        let queues = states.iter().map(|state| state.queue).collect();
        Solution { users, throughput, response, queues }
    });
    each.collect()
}

/// A centre, with one user less than in the next solution.
struct CentreState {
    centre: Centre,
    /// The mean number of requests at it.
    queue: f64,
    /// Of several servers: the probability of each number of requests at it, from 0.
    probabilities: Vec<f64>,
}

impl CentreState {
    fn new(centre: &Centre) -> CentreState {
        CentreState { centre: *centre, queue: 0.0, probabilities: vec![1.0] }
    }

    /// Returns the time that a request spends at the centre, with `users` in all.
    fn residence(&self, users: u32) -> f64 {
        match self.centre {
            Centre::Delay(demand) => demand,
            Centre::Queue(demand) => demand * (1.0 + self.queue),
            Centre::Servers(demand, servers) => {
                let at = (1..=users).zip(&self.probabilities);
                at.map(|(place, probability)| {
                    f64::from(place) / f64::from(place.min(servers.max(1))) * probability
                })
                .sum::<f64>()
                    * demand
            }
        }
    }

    fn advance(&mut self, throughput: f64, residence: f64) {
        self.queue = throughput * residence;
        if let Centre::Servers(demand, servers) = self.centre {
            let busy = (1_u32..).zip(&self.probabilities).map(|(place, probability)| {
                throughput * demand / f64::from(place.min(servers.max(1))) * probability
            });
            let busy: Vec<f64> = busy.collect();
            let idle = (1.0 - busy.iter().sum::<f64>()).max(0.0);
            self.probabilities = std::iter::once(idle).chain(busy).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() <= 1e-9 * right.abs().max(1.0)
    }

    #[test]
    fn one_user_waits_nowhere() {
        let solved = solve(&[Centre::Queue(0.004), Centre::Servers(0.006, 2), Centre::Delay(0.01)], 0.08, 1);
        assert!(close(solved[0].response, 0.020) && close(solved[0].throughput, 10.0), "{solved:?}");
    }

    #[test]
    fn two_equal_queues_have_the_throughput_of_the_closed_form() {
        // With M equal queues of demand D and no think time: X(N) = N / (D (N + M - 1)).
        for (number, solution) in (1_u32..).zip(solve(&[Centre::Queue(0.5); 2], 0.0, 20)) {
            let users = f64::from(number);
            assert!(close(solution.throughput, users / (0.5 * (users + 1.0))), "{solution:?}");
        }
    }

    #[test]
    fn several_servers_have_the_throughput_of_the_repair_model() {
        // N users who think for Z, and c servers: the machine-repair model, whose probabilities are
        // p(n) = C(N, n) (D/Z)^n for n <= c, and each further one by (N - n + 1) D / (c Z).
        let (demand, think, servers, users) = (0.3, 1.0, 3_u32, 10_u32);
        let mut weights = vec![1.0];
        for number in 1..=users {
            let rate = f64::from(users - number + 1) * demand / (f64::from(number.min(servers)) * think);
            weights.push(weights[weights.len() - 1] * rate);
        }
        let total: f64 = weights.iter().sum();
        let busy = (0_u32..).zip(&weights).map(|(number, weight)| f64::from(number.min(servers)) * weight);
        let expected = busy.sum::<f64>() / total / demand;
        let solved = solve(&[Centre::Servers(demand, servers)], think, users);
        assert!(close(solved[9].throughput, expected), "{} {expected}", solved[9].throughput);
    }

    #[test]
    fn a_multiple_server_of_one_is_a_queue() {
        let queue = solve(&[Centre::Queue(0.02), Centre::Queue(0.01)], 0.1, 30);
        let servers = solve(&[Centre::Servers(0.02, 1), Centre::Queue(0.01)], 0.1, 30);
        assert!(queue.iter().zip(&servers).all(|(one, other)| close(one.throughput, other.throughput)));
    }

    #[test]
    fn littles_law_holds_and_the_bottleneck_bounds_the_throughput() {
        let centres = [Centre::Queue(0.003), Centre::Servers(0.008, 2), Centre::Delay(0.02)];
        let solved = solve(&centres, 0.05, 200);
        for solution in &solved {
            let inside: f64 = solution.queues.iter().sum();
            assert!(close(inside + solution.throughput * 0.05, f64::from(solution.users)), "{solution:?}");
        }
        assert!(solved.windows(2).all(|pair| pair[0].throughput <= pair[1].throughput + 1e-9));
        let last = solved[199].throughput;
        assert!(last <= 250.0 + 1e-6 && last > 249.0, "two servers of 8 ms carry 250 a second: {last}");
    }
}

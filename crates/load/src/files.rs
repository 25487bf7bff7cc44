//! The files of a workload, and the rule that picks one for each request.
//!
//! No file is read here. Invariants: the pick is a function of user, request and seed, so that a trial can
//! be repeated. By [`Pick::Each`], no two users request the same file at a time as long as there are
//! enough.

use crate::limits::FILES_MAX;

/// The files of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Files {
    /// The single file in the URL.
    One,
    /// Numbered files. Each number replaces `{}` in the URL.
    Numbered {
        /// The first number.
        first: u64,
        /// Number of files.
        count: u64,
    },
    /// Named files. Each name replaces `{}` in the URL, or is appended to it.
    Listed(Vec<String>),
}

/// An invalid set of files. The message says how to write it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFiles {
    /// Not a range.
    #[error("write a number of files, such as 1000, or a range of numbers, such as 0..1000")]
    Form,
    /// None, or too many.
    #[error("there must be from 1 to {FILES_MAX} files")]
    Count,
    /// The URL has no position for the number.
    #[error("write {{}} in the URL where the number of the file belongs")]
    NoPlace,
}

impl std::str::FromStr for Files {
    type Err = BadFiles;

    /// Parses `1000` or `0..1000`. The end is exclusive.
    fn from_str(text: &str) -> Result<Files, BadFiles> {
        let number = |text: &str| text.parse::<u64>().map_err(|_| BadFiles::Form);
        let (first, end) = match text.split_once("..") {
            Some((first, end)) => (number(first)?, number(end)?),
            None => (0, number(text)?),
        };
        match end.checked_sub(first) {
            Some(count @ 1..=FILES_MAX) => Ok(Files::Numbered { first, count }),
            _ => Err(BadFiles::Count),
        }
    }
}

impl Files {
    /// Returns the number of files.
    #[must_use]
    pub fn count(&self) -> u64 {
        match self {
            Files::One => 1,
            Files::Numbered { count, .. } => *count,
            Files::Listed(names) => names.len() as u64,
        }
    }

    /// Returns the target of the file with this index, by a pattern that may include `{}`.
    #[must_use]
    pub fn target(&self, pattern: &str, index: u64) -> String {
        match self {
            Files::One => pattern.to_owned(),
            Files::Numbered { first, .. } => fill(pattern, &(first + index).to_string()),
            Files::Listed(names) => {
                let at = usize::try_from(index).unwrap_or(usize::MAX);
                fill(pattern, names.get(at).map_or("", String::as_str))
            }
        }
    }
}

/// Replaces `{}` by `name`, or appends it to a pattern without `{}`.
pub(crate) fn fill(pattern: &str, name: &str) -> String {
    if pattern.contains("{}") { pattern.replacen("{}", name, 1) } else { format!("{pattern}{name}") }
}

/// The rule by which a user chooses the file of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// Every user requests the files in the same order, so that all request the same file at a time.
    Same,
    /// Every user requests the files in order, starting `offset` files after the previous user. With as
    /// many files as requests, and an offset equal to one user's requests, no file is requested twice.
    Each {
        /// Distance between the first files of two consecutive users.
        offset: u64,
    },
    /// Every user requests one file, always the same: user u the file u mod F of F files.
    OfUser,
    /// Uniformly at random.
    Random {
        /// Seed of the choice.
        seed: u64,
    },
}

impl Pick {
    /// Returns a rule whose offset spreads `users` evenly over `files`.
    #[must_use]
    pub fn spread(files: u64, users: usize) -> Pick {
        Pick::Each { offset: (files / (users.max(1) as u64)).max(1) }
    }

    /// Returns the index of the file, below `files`, that `user` takes for its `request`. Both count from
    /// zero.
    #[must_use]
    pub fn file(self, user: u64, request: u64, files: u64) -> u64 {
        let index = match self {
            Pick::Same => request,
            Pick::OfUser => user,
            Pick::Each { offset } => user.wrapping_mul(offset).wrapping_add(request),
            Pick::Random { seed } => mixed(seed, user, request),
        };
        index.checked_rem(files).unwrap_or(0)
    }
}

/// Returns a pseudo-random number that depends only on the arguments (the finaliser of SplitMix64).
pub(crate) fn mixed(seed: u64, user: u64, request: u64) -> u64 {
    let mut state =
        seed ^ user.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ request.wrapping_mul(0xd1b5_4a32_d192_ed03);
    for factor in [0xbf58_476d_1ce4_e5b9_u64, 0x94d0_49bb_1331_11eb] {
        state = (state ^ (state >> 30)).wrapping_mul(factor);
    }
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn with_an_offset_of_its_requests_no_file_is_requested_twice() {
        // 2,000 requests per user, as in the original definition of the rule.
        let (users, requests) = (10, 2000);
        let pick = Pick::Each { offset: requests };
        let all: HashSet<u64> = (0..users)
            .flat_map(|user| (0..requests).map(move |request| pick.file(user, request, users * requests)))
            .collect();
        assert_eq!(all.len() as u64, users * requests);
    }

    #[test]
    fn users_ask_for_different_files_at_a_time_as_long_as_there_are_enough() {
        for (files, users) in [(1000, 64), (64, 64), (65, 64), (7, 3)] {
            let pick = Pick::spread(files, users);
            for request in [0, 1, 999, 123_456] {
                let at_once: HashSet<u64> =
                    (0..users as u64).map(|user| pick.file(user, request, files)).collect();
                assert_eq!(at_once.len(), users, "{files} files, request {request}");
            }
        }
    }

    #[test]
    fn a_user_that_has_seen_all_files_begins_again() {
        let pick = Pick::Each { offset: 3 };
        let seen: Vec<u64> = (0..5).map(|request| pick.file(1, request, 4)).collect();
        assert_eq!(seen, [3, 0, 1, 2, 3]);
    }

    #[test]
    fn a_user_with_a_file_of_its_own_asks_for_no_other() {
        let of = |user| (0..9).map(move |request| Pick::OfUser.file(user, request, 4)).collect::<Vec<_>>();
        assert_eq!((of(1), of(6)), (vec![1; 9], vec![2; 9]));
    }

    #[test]
    fn the_same_is_the_same_for_all_users() {
        assert_eq!((0..5).map(|user| Pick::Same.file(user, 9, 4)).collect::<HashSet<u64>>(), [1].into());
    }

    #[test]
    fn chance_takes_every_file_about_as_often_and_the_same_again_for_the_same_seed() {
        let (files, requests) = (10, 10_000);
        let pick = Pick::Random { seed: 7 };
        let mut counts = [0_u64; 10];
        for request in 0..requests {
            counts[usize::try_from(pick.file(3, request, files)).unwrap()] += 1;
            assert_eq!(pick.file(3, request, files), Pick::Random { seed: 7 }.file(3, request, files));
        }
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
        let other = Pick::Random { seed: 8 };
        assert!((0..100).any(|request| pick.file(3, request, files) != other.file(3, request, files)));
    }

    #[test]
    fn a_range_has_its_first_number_and_not_its_last() {
        let files: Files = "5..8".parse().unwrap();
        let targets: Vec<String> = (0..files.count()).map(|index| files.target("/a{}.bin", index)).collect();
        assert_eq!(targets, ["/a5.bin", "/a6.bin", "/a7.bin"]);
        assert_eq!("3".parse(), Ok(Files::Numbered { first: 0, count: 3 }));
    }

    #[test]
    fn a_malformed_range_is_refused_by_kind() {
        for text in ["", "a", "1..", "..2", "1...2", "-1..2"] {
            assert_eq!(text.parse::<Files>(), Err(BadFiles::Form), "{text}");
        }
        for text in ["0", "5..5", "6..5", "0..1000001"] {
            assert_eq!(text.parse::<Files>(), Err(BadFiles::Count), "{text}");
        }
    }

    #[test]
    fn a_name_goes_to_its_place_or_to_the_end() {
        assert_eq!(fill("/a/{}?x", "b"), "/a/b?x");
        assert_eq!(fill("/a/", "b"), "/a/b");
        let listed = Files::Listed(vec!["one.txt".to_owned(), "two.txt".to_owned()]);
        assert_eq!((listed.count(), listed.target("/s/", 1)), (2, "/s/two.txt".to_owned()));
    }
}

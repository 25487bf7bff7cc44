//! The ten requests of the file backup system, as a mix: the requests of one user's life, as data.
//!
//! Nothing is sent from here ([`TenUser`] sends). The system's document names the ten requests without
//! frequencies, so a mix has each of them once by default. Invariants: a life is consistent: no file is
//! downloaded, shared or deleted before its upload. The same seed gives the same lives.

mod answers;
mod plan;
mod user;

use std::str::FromStr;

use crate::files::mixed;
use crate::limits::MIX_TIMES_MAX;

pub(crate) use plan::Plan;
pub(crate) use user::TenUser;

// Defines each request once: its variant, its name and its entry in `Request::ALL`.
macro_rules! requests {
    ($($(#[$doc:meta])+ $variant:ident $name:literal,)+) => {
        /// One of the ten requests.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Request {
            $($(#[$doc])+ $variant,)+
        }

        impl Request {
            /// All requests, in the order of a life.
            pub const ALL: [Request; 10] = [$(Request::$variant),+];

            /// Returns the name in figures and in a mix.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Request::$variant => $name,)+
                }
            }
        }
    };
}

requests! {
    /// Creates an account under a new name.
    SignUp "sign_up",
    /// Starts a login session of that account.
    LogIn "log_in",
    /// Lists the account's home.
    List "list",
    /// Uploads a file with new content.
    Upload "upload",
    /// Downloads one of these files.
    Download "download",
    /// Shares one of these files with another account, for reading.
    Share "share",
    /// Lists the shares of which the account is the grantee.
    ListShared "list_shared",
    /// Downloads a shared file.
    DownloadShared "download_shared",
    /// Deletes one of the account's files.
    Delete "delete",
    /// Ends the login session.
    LogOut "log_out",
}

/// The number of times that a user sends each request in a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    times: [u32; 10],
}

impl Default for Mix {
    /// Each request once.
    fn default() -> Mix {
        Mix { times: [1; 10] }
    }
}

/// An invalid or inconsistent mix. The message says how to write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMix {
    /// The text cannot be parsed.
    #[error(
        "write ten, or ten:REQUEST=TIMES,... with list, upload, download, share, list_shared, \
         download_shared or delete, and times up to 100"
    )]
    Form,
    /// Sign-up, login and logout occur exactly once per life.
    #[error("sign_up, log_in and log_out are once in each life: leave them out")]
    Once,
    /// No file is left to download.
    #[error("download needs upload, and download_shared needs share")]
    Nothing,
    /// Too few files are left to share or to delete.
    #[error("nothing is shared or deleted twice: have upload at least as often as share and as delete")]
    Twice,
}

impl FromStr for Mix {
    type Err = BadMix;

    fn from_str(text: &str) -> Result<Mix, BadMix> {
        let mut mix = Mix::default();
        let rest = text.strip_prefix("ten").ok_or(BadMix::Form)?;
        if rest.is_empty() {
            return Ok(mix);
        }
        for part in rest.strip_prefix(':').ok_or(BadMix::Form)?.split(',') {
            let (name, times) = part.split_once('=').ok_or(BadMix::Form)?;
            let request = Request::ALL.into_iter().find(|request| request.name() == name);
            let times = times.parse().ok().filter(|times| *times <= MIX_TIMES_MAX).ok_or(BadMix::Form)?;
            mix.times[request.ok_or(BadMix::Form)? as usize] = times;
        }
        mix.check()
    }
}

impl Mix {
    /// Returns the number of times that a request occurs in a life.
    #[must_use]
    pub fn times(&self, request: Request) -> u32 {
        self.times[request as usize]
    }

    fn check(self) -> Result<Mix, BadMix> {
        use Request::{Delete, Download, DownloadShared, LogIn, LogOut, Share, SignUp, Upload};
        let times = |request| self.times(request);
        let needs = |this, other| times(this) > 0 && times(other) == 0;
        if [SignUp, LogIn, LogOut].into_iter().any(|request| times(request) != 1) {
            return Err(BadMix::Once);
        }
        if needs(Download, Upload) || needs(DownloadShared, Share) {
            return Err(BadMix::Nothing);
        }
        if times(Share).max(times(Delete)) > times(Upload) {
            return Err(BadMix::Twice);
        }
        Ok(self)
    }

    /// Returns the requests of a life: first each kind once, so that later ones have files to use. The
    /// others follow in random order, and deletions come last.
    pub(crate) fn life(&self, seed: u64, user: u64, life: u64) -> Vec<Request> {
        use Request::{Delete, LogOut};
        let is_there = |request: &Request| !matches!(request, Delete | LogOut) && self.times(*request) > 0;
        let mut requests: Vec<Request> = Request::ALL.into_iter().filter(is_there).collect();
        let begun = requests.len();
        for request in Request::ALL.into_iter().filter(is_there) {
            requests.extend(std::iter::repeat_n(request, self.times(request) as usize - 1));
        }
        shuffle(requests.get_mut(begun..).unwrap_or_default(), mixed(seed, user, life));
        requests.extend(std::iter::repeat_n(Delete, self.times(Delete) as usize));
        requests.push(LogOut);
        in_order(requests)
    }
}

/// Shuffles uniformly.
fn shuffle(requests: &mut [Request], seed: u64) {
    for last in (1..requests.len()).rev() {
        let at = mixed(seed, last as u64, 0) % (last as u64 + 1);
        requests.swap(last, usize::try_from(at).unwrap_or(last));
    }
}

/// Moves requests so that every share has a file: a share that comes too early is swapped with the next
/// upload.
fn in_order(mut requests: Vec<Request>) -> Vec<Request> {
    let (mut uploads, mut shares) = (0, 0);
    for at in 0..requests.len() {
        if requests[at] == Request::Share && shares == uploads {
            let later = requests[at..].iter().position(|request| *request == Request::Upload);
            requests.swap(at, at + later.unwrap_or_default());
        }
        uploads += u32::from(requests[at] == Request::Upload);
        shares += u32::from(requests[at] == Request::Share);
    }
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_has_each_of_the_ten_requests_once_if_nothing_else_is_said() {
        for user in 0..10 {
            assert_eq!("ten".parse::<Mix>().unwrap().life(1, user, user * 7), Request::ALL);
        }
    }

    #[test]
    fn a_life_has_what_its_mix_says_and_can_be_lived() {
        let text = "ten:list=3,upload=9,download=50,share=9,list_shared=0,download_shared=5,delete=4";
        let mix: Mix = text.parse().unwrap();
        let mut orders = std::collections::BTreeSet::new();
        for life in 0..100 {
            let requests = mix.life(1, 2, life);
            let (mut uploads, mut shares, mut deletes) = (0, 0, 0);
            for request in &requests {
                match request {
                    Request::Upload => uploads += 1,
                    Request::Share => shares += 1,
                    Request::Delete => deletes += 1,
                    Request::Download => assert!(uploads > 0),
                    Request::DownloadShared => assert!(shares > 0),
                    _ => {}
                }
                assert!(shares <= uploads && deletes <= uploads);
                assert!(deletes == 0 || matches!(request, Request::Delete | Request::LogOut));
            }
            for request in Request::ALL {
                let times = requests.iter().filter(|other| **other == request).count();
                assert_eq!(times, mix.times(request) as usize, "{}", request.name());
            }
            assert_eq!((requests[0], requests[1]), (Request::SignUp, Request::LogIn));
            assert_eq!(requests.last(), Some(&Request::LogOut));
            assert_eq!(requests, mix.life(1, 2, life), "it is the same for the same seed");
            orders.insert(requests.iter().map(|request| *request as u8).collect::<Vec<_>>());
        }
        assert!(orders.len() > 90, "only {} orders", orders.len());
    }

    #[test]
    fn a_mix_that_cannot_be_lived_is_refused() {
        for (text, bad) in [
            ("", BadMix::Form),
            ("nine", BadMix::Form),
            ("tens", BadMix::Form),
            ("ten:", BadMix::Form),
            ("ten:upload", BadMix::Form),
            ("ten:upload=many", BadMix::Form),
            ("ten:upload=101", BadMix::Form),
            ("ten:rename=1", BadMix::Form),
            ("ten:log_in=2", BadMix::Once),
            ("ten:sign_up=0", BadMix::Once),
            ("ten:share=0", BadMix::Nothing),
            ("ten:upload=0,share=0,download_shared=0,delete=0", BadMix::Nothing),
            ("ten:share=2", BadMix::Twice),
            ("ten:delete=2", BadMix::Twice),
        ] {
            assert_eq!(text.parse::<Mix>(), Err(bad), "{text}");
        }
    }
}

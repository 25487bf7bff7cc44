//! The ten requests of the file backup system, as a mix: what one user does in a life, as data.
//!
//! Nothing is sent from here ([`TenUser`] does that). The document names the ten requests and gives them no
//! shares, so a mix has each of them once unless something else is asked for. What must hold: a life can be
//! lived: nothing is downloaded, shared or deleted before it was uploaded; the same seed gives the same
//! lives.

mod answers;
mod plan;
mod user;

use std::str::FromStr;

use crate::load::files::mixed;
use crate::load::limits::MIX_TIMES_MAX;

pub(crate) use plan::Plan;
pub(crate) use user::TenUser;

// A request, its name and its place in the list of all are told once.
macro_rules! requests {
    ($($(#[$doc:meta])+ $variant:ident $name:literal,)+) => {
        /// One of the ten requests.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Request {
            $($(#[$doc])+ $variant,)+
        }

        impl Request {
            /// All of them, in the order of a life.
            pub const ALL: [Request; 10] = [$(Request::$variant),+];

            /// What it is called in figures and in a mix.
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
    /// A new account, of a name that nobody had.
    SignUp "sign_up",
    /// A session of that account.
    LogIn "log_in",
    /// What is in one's home.
    List "list",
    /// A file of new bytes.
    Upload "upload",
    /// One of these files.
    Download "download",
    /// One of them for another account to read.
    Share "share",
    /// What others share with one.
    ListShared "list_shared",
    /// A file of these.
    DownloadShared "download_shared",
    /// One of one's own files, gone.
    Delete "delete",
    /// The end of the session.
    LogOut "log_out",
}

/// How often a user makes each request in a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    times: [u32; 10],
}

impl Default for Mix {
    /// Each once.
    fn default() -> Mix {
        Mix { times: [1; 10] }
    }
}

/// A mix that cannot be read or lived, with what to write instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMix {
    /// It cannot be read.
    #[error(
        "write ten, or ten:REQUEST=TIMES,... with list, upload, download, share, list_shared, \
         download_shared or delete, and times up to 100"
    )]
    Form,
    /// An account signs up, logs in and logs out once in its life.
    #[error("sign_up, log_in and log_out are once in each life: leave them out")]
    Once,
    /// There is nothing to download.
    #[error("download needs upload, and download_shared needs share")]
    Nothing,
    /// There is too little to share or to delete.
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
    /// How often a request is made in a life.
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

    /// The requests of a life: first one of each, so that there is something to go on with; then the others
    /// by chance; what is deleted, is deleted in the end.
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

/// Every order is as likely as any other.
fn shuffle(requests: &mut [Request], seed: u64) {
    for last in (1..requests.len()).rev() {
        let at = mixed(seed, last as u64, 0) % (last as u64 + 1);
        requests.swap(last, usize::try_from(at).unwrap_or(last));
    }
}

/// A file must be there to be shared: what comes too early changes places with the next upload.
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

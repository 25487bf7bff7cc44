//! Errors of requests to the server, as a sentence with the next step.
//!
//! Errors of this machine are only carried, not explained. Invariants: text from a server cannot send
//! control sequences to the terminal. A problem with a code is explained in commands, not in HTTP
//! terms.

use std::fmt;
use std::time::Duration;

use plimsoll_client::http::{Error, Response};
use plimsoll_wire::http::problem_code::ProblemCode;
use plimsoll_wire::http::status::Status;
use serde::Deserialize;

use crate::limits::REFUSAL_BYTES_MAX;
use crate::output;
use crate::remote_path::RemotePath;

/// The reason why a request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There is no response, or no complete one.
    NoResponse(Error),
    /// The server refused the request.
    Refused(Refusal),
    /// The response does not follow the API.
    Unexpected(String),
    /// An error on this machine.
    Local(String),
}

/// A response that refuses the request.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: Status,
    detail: String,
    code: Option<ProblemCode>,
    pub(crate) retry_after: Option<Duration>,
    /// The account of the request's session; `None` if the request had none.
    account: Option<String>,
}

/// A problem detail of RFC 9457.
#[derive(Deserialize)]
struct Problem {
    detail: String,
    code: Option<String>,
}

impl Problem {
    /// Returns the sentence to print, and the code if this program knows it.
    fn sentence(&self) -> (String, Option<ProblemCode>) {
        let code = self.code.as_deref().and_then(ProblemCode::parse);
        let sentence = code.map(|code| sentence_in_commands(code).to_owned());
        (sentence.unwrap_or_else(|| output::text(self.detail.as_bytes())), code)
    }
}

/// Returns the sentence of a problem, in commands: the server's own is in terms of HTTP.
fn sentence_in_commands(code: ProblemCode) -> &'static str {
    match code {
        ProblemCode::NoParentFolder => {
            "The parent folder does not exist. Create it first: plimsoll mkdir -p FOLDER"
        }
        ProblemCode::FolderName => {
            "This is a folder's name. Put a file at a path without a slash at its end, or make a folder: \
             plimsoll mkdir FOLDER"
        }
        ProblemCode::TooManyUploads => {
            "Too many uploads are in progress. Finish some, or discard some of: plimsoll uploads"
        }
        ProblemCode::OverQuota => {
            "This would be more than the account's quota. Delete something first. Interrupted uploads count \
             too, until they are finished or discarded (see plimsoll uploads)."
        }
        ProblemCode::NoSuchShare => {
            "There is no such share of this account. See those there are: plimsoll shares"
        }
        ProblemCode::LoginRequired => "This needs an account. Log in: plimsoll login NAME",
    }
}

impl Refusal {
    /// Reads the refusal from a response.
    pub(crate) async fn of(mut response: Response<'_>, account: Option<&str>) -> Refusal {
        let status = response.status();
        let seconds = response.field("Retry-After").and_then(|value| value.trim().parse().ok());
        // A refusal remains one even if its text cannot be read.
        let (detail, code) = match response.json::<Problem>(REFUSAL_BYTES_MAX).await {
            Ok(problem) => problem.sentence(),
            Err(_) => (sentence_for(status), None),
        };
        let retry_after = seconds.map(Duration::from_secs);
        Refusal { status, detail, code, retry_after, account: account.map(str::to_owned) }
    }
}

/// Returns the meaning of a status where the response has no text: a response to HEAD never has one.
fn sentence_for(status: Status) -> String {
    let sentence = match status {
        Status::UNAUTHORIZED => "The server knows no such session. Log in: plimsoll login NAME",
        Status::FORBIDDEN => {
            "This account may not do that. Ask the owner for a share, or the operator for the permission."
        }
        Status::NOT_FOUND => "There is no such file or folder. See what is there: plimsoll ls",
        Status::TOO_MANY_REQUESTS | Status::SERVICE_UNAVAILABLE => {
            "The server is busy. Try again in a few seconds."
        }
        Status::INSUFFICIENT_STORAGE => {
            "The server has no room left. Delete something, or ask the operator for a larger quota."
        }
        _ => return format!("The server refused it with {status}."),
    };
    sentence.to_owned()
}

impl Failure {
    /// Returns the status, if the server answered.
    pub(crate) fn status(&self) -> Option<Status> {
        match self {
            Failure::Refused(refusal) => Some(refusal.status),
            _ => None,
        }
    }

    /// Returns whether the same request may succeed a little later.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Failure::NoResponse(Error::Connect { .. } | Error::Broken { .. } | Error::Late(_)) => true,
            Failure::Refused(refusal) => matches!(
                refusal.status,
                Status::REQUEST_TIMEOUT
                    | Status::LOCKED
                    | Status::TOO_MANY_REQUESTS
                    | Status::BAD_GATEWAY
                    | Status::SERVICE_UNAVAILABLE
                    | Status::GATEWAY_TIMEOUT
            ),
            _ => false,
        }
    }

    /// Returns whether all other requests will fail in the same way.
    pub(crate) fn affects_all_requests(&self) -> bool {
        matches!(self, Failure::NoResponse(error) if !matches!(error, Error::Source(_)))
            || self.status() == Some(Status::UNAUTHORIZED)
    }

    /// Names the folder to create in the message, for an upload to `place`.
    pub(crate) fn for_a_file_at(mut self, place: &RemotePath) -> Failure {
        if let (Failure::Refused(refusal), Some(folder)) = (&mut self, place.parent())
            && refusal.code == Some(ProblemCode::NoParentFolder)
        {
            refusal.detail =
                format!("The parent folder does not exist. Create it first: plimsoll mkdir -p {folder}");
        }
        self
    }

    /// Names the share in the message, for a request about the share `id`.
    pub(crate) fn for_share(mut self, id: &str) -> Failure {
        if let Failure::Refused(refusal) = &mut self
            && refusal.code == Some(ProblemCode::NoSuchShare)
        {
            refusal.detail =
                format!("There is no share {id:?} of this account. See those there are: plimsoll shares");
        }
        self
    }

    /// Returns an error of this machine: the failed action, and the operating system's error.
    pub(crate) fn local(action: impl fmt::Display, error: &std::io::Error) -> Failure {
        Failure::Local(format!("{action}: {error}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::NoResponse(error)
    }
}

/// Errors of the state folder.
impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure::Local(format!("{error:#}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NoResponse(Error::Connect { to, source }) => write!(
                f,
                "No server answers at {to}: {source}. Is the server running? Start one with: plimsoll serve, \
                 or name another with --server URL."
            ),
            Failure::NoResponse(error) => error.fmt(f),
            Failure::Refused(refusal) => refusal.fmt(f),
            Failure::Unexpected(what) => {
                write!(f, "The answer is not what was expected: {what}. Is this a plimsoll server?")
            }
            Failure::Local(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.account {
            Some(name) if self.status == Status::UNAUTHORIZED => {
                write!(f, "The session has ended. Log in again: plimsoll login {name}")
            }
            _ => f.write_str(&self.detail),
        }
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_with_a_known_code_is_explained_in_commands() {
        let sentence = |code: Option<&str>| {
            let detail = "Create it first: MKCOL its path.".to_owned();
            Problem { detail, code: code.map(str::to_owned) }.sentence().0
        };
        let expected = "The parent folder does not exist. Create it first: plimsoll mkdir -p FOLDER";
        assert_eq!(sentence(Some("no-parent-folder")), expected);
        for code in [None, Some("of-a-later-version")] {
            assert_eq!(sentence(code), "Create it first: MKCOL its path.");
        }
    }

    #[test]
    fn a_session_that_has_ended_is_said_with_the_account_to_log_in_to() {
        let refusal = |account: Option<&str>| Refusal {
            status: Status::UNAUTHORIZED,
            detail: "Wrong.".to_owned(),
            code: None,
            retry_after: None,
            account: account.map(str::to_owned),
        };
        assert!(refusal(Some("alice")).to_string().ends_with("plimsoll login alice"));
        assert_eq!(refusal(None).to_string(), "Wrong.");
    }
}

//! The questions that fronts and operators ask the auth tier, and its answers, as data.
//!
//! They say nothing of how they travel: a call now, a message when the tier runs apart. What must hold: a
//! question has all that its answer depends on, except for the directory, the settings and the time.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::account::{Account, Change, Exported, Permissions, Quota};
use crate::attempts::Source;
use crate::error::Error;
use crate::secret::Secret;
use crate::sessions::{LogIn, SessionId};
use crate::shares::{Grant, NewShare, Share};

/// What is asked. Names are as a person typed them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Make an account for whoever asks. Answer: [`Answer::Account`].
    SignUp {
        /// The account's name.
        name: String,
        /// Its password.
        password: Secret,
        /// Who asks.
        from: Source,
    },
    /// Begin a session. Answer: [`Answer::LogIn`].
    LogIn {
        /// The account's name.
        name: String,
        /// Its password.
        password: Secret,
        /// Who asks.
        from: Source,
        /// Whether the front knows that this very password was right before.
        is_known: bool,
    },
    /// Whose session is this? Answer: [`Answer::Session`].
    Session(SessionId),
    /// Whose password is this? Answer: [`Answer::Password`].
    Password {
        /// The account's name.
        name: String,
        /// Its password.
        password: Secret,
        /// Who asks.
        from: Source,
        /// Whether the front knows that this very password was right before.
        is_known: bool,
    },
    /// Does what a password showed still hold? Answer: [`Answer::Account`], as it is now.
    Renew {
        /// The account's number.
        account: i64,
        /// The version of the password that was shown.
        version: i64,
    },
    /// End a session. Answer: [`Answer::Done`].
    LogOut(SessionId),
    /// Set a password, by its owner. Answer: [`Answer::Done`].
    ChangePassword {
        /// The account's number.
        account: i64,
        /// The session that goes on; all others end.
        but: Option<SessionId>,
        /// The password until now.
        old: Secret,
        /// The password from now on.
        new: Secret,
        /// Who asks.
        from: Source,
    },
    /// Give a share. Answer: [`Answer::Share`].
    Share {
        /// The account that gives it.
        owner: i64,
        /// What it gives.
        new: NewShare,
    },
    /// End a share. Answer: [`Answer::Done`].
    Unshare {
        /// The account that gave it.
        owner: i64,
        /// The share's name.
        id: String,
    },
    /// What does this account share? Answer: [`Answer::Shares`].
    SharesBy(i64),
    /// What is shared with this account? Answer: [`Answer::Shares`].
    SharedWith(i64),
    /// What of this home may this account reach at or around a path? Answer: [`Answer::Grant`].
    Granted {
        /// Who asks.
        account: i64,
        /// The name of the home's account.
        owner: String,
        /// The path.
        path: Vec<u8>,
    },
    /// End the shares of a path and of all below it. Answer: [`Answer::Done`].
    EndShares {
        /// Whose home it is.
        owner: i64,
        /// The path.
        path: Vec<u8>,
    },
    /// Does the directory answer, and can it be written? Answer: [`Answer::Done`].
    Check {},
    /// What an operator asks. Whoever answers fronts must not take these from them.
    Operator(Order),
}

/// What an operator asks of the directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// All accounts by name. Answer: [`Answer::Accounts`].
    Accounts,
    /// One account. Answer: [`Answer::Account`].
    Account(String),
    /// Make an account. Answer: [`Answer::Account`].
    Add {
        /// The account's name.
        name: String,
        /// Its password.
        password: Secret,
        /// What it may store.
        quota: Quota,
        /// What it may do.
        permissions: Permissions,
    },
    /// Set a password and end all sessions. Answer: [`Answer::Done`].
    SetPassword {
        /// The account's name.
        name: String,
        /// The password from now on.
        password: Secret,
    },
    /// Change an account. Answer: [`Answer::Account`].
    Change(String, Change),
    /// Remove an account with its sessions and shares. Answer: [`Answer::Account`], as it was.
    Remove(String),
    /// All accounts as data. Answer: [`Answer::Exported`].
    Export,
    /// Make an account from data. Answer: [`Answer::Account`].
    Import(Exported),
}

/// Makes [`Answer`], and for each variant the way to what is in it.
macro_rules! answers {
    ($($(#[$doc:meta])* $name:ident($inner:ty),)*) => {
        /// What is answered.
        #[derive(Clone, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Answer {
            $($(#[$doc])* $name($inner),)*
        }

        $(impl TryFrom<Answer> for $inner {
            type Error = Answer;

            fn try_from(answer: Answer) -> Result<$inner, Answer> {
                if let Answer::$name(inner) = answer { Ok(inner) } else { Err(answer) }
            }
        })*
    };
}

answers! {
    /// It is done; there is nothing more to say.
    Done(()),
    /// An account.
    Account(Account),
    /// Accounts by name.
    Accounts(Vec<Account>),
    /// Accounts by name, with the hashes of their passwords.
    Exported(Vec<Exported>),
    /// Whose password it is, and how often it was set.
    Password((Account, i64)),
    /// A session that was begun, and how often the password was set that began it.
    LogIn((LogIn, i64)),
    /// Whose session it is, and when it ends.
    Session((Account, SystemTime)),
    /// A share that was given.
    Share(Share),
    /// Shares by owner, path and account.
    Shares(Vec<Share>),
    /// What may be reached; never nothing.
    Grant(Grant),
}

/// What is told to who asked from elsewhere.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told<T> {
    /// The answer.
    Answer(T),
    /// Why there is none.
    Error(Error),
}

impl<T> From<Result<T, Error>> for Told<T> {
    fn from(answered: Result<T, Error>) -> Told<T> {
        answered.map_or_else(Told::Error, Told::Answer)
    }
}

impl<T> From<Told<T>> for Result<T, Error> {
    fn from(told: Told<T>) -> Result<T, Error> {
        match told {
            Told::Answer(answer) => Ok(answer),
            Told::Error(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_and_its_answer_travel_as_data() {
        let password = Secret::from("correct horse");
        let name = "alice".to_owned();
        let asked = Question::LogIn { name, password, from: Source::Unix, is_known: true };
        let sent = serde_json::to_string(&asked).unwrap();
        let read: Question = serde_json::from_str(&sent).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), sent);
        let error = Error::BadName("no name".into());
        let sent = serde_json::to_string(&Err::<Answer, _>(&error)).unwrap();
        let read: Result<Answer, Error> = serde_json::from_str(&sent).unwrap();
        assert_eq!(read.unwrap_err(), error);
    }

    #[test]
    fn what_is_printed_of_a_question_and_an_answer_shows_no_secret() {
        let password = Secret::from("correct horse");
        let printed = format!("{:?}", Order::SetPassword { name: "alice".to_owned(), password });
        assert!(printed.contains("alice") && !printed.contains("horse"), "{printed}");
    }
}

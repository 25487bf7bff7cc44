//! Answers the processes that belong to this one: each serves one connection, and remembers nothing for
//! long.
//!
//! It is not the desk for fronts, which remember and have to hear of changes. What must hold: what is
//! remembered and what is counted of attempts is this process', so that it is the same for all; so is whether
//! sign-up is open, of which a process that began before a reload knows only what it was; what only an
//! operator may ask is not answered.

use plimsoll_io::Io;

use super::Auth;
use crate::ask::{Answer, Question};
use crate::error::Error;
use crate::sessions::{Credential, Identity};
use crate::settings::SignUp;
use crate::time;

impl Auth {
    /// Answers a process whose own handle is [`Auth::beside`] this one.
    ///
    /// # Errors
    /// As the question's; [`Error::NotAllowed`] for what only an operator may ask; [`Error::SignUpClosed`] as
    /// this handle is set, whoever answers it.
    pub async fn answer_beside(&self, io: &Io, question: Question) -> Result<Answer, Error> {
        match question {
            Question::Operator(_) => Err(Error::NotAllowed),
            Question::SignUp { .. } if self.settings().sign_up == SignUp::Closed => Err(Error::SignUpClosed),
            Question::Session(session) => {
                let identity = self.by_session(io, session).await?;
                let until = time::time(identity.verified.until);
                Ok(Answer::Session(((*identity.account).clone(), until)))
            }
            Question::Password { name, password, from, .. } => {
                by_password(&self.by_name(io, name, password, from).await?)
            }
            Question::LogIn { name, password, from, .. } => {
                Ok(Answer::LogIn(self.begin(io, name, password, from).await?))
            }
            other => self.answer(io, other).await,
        }
    }
}

fn by_password(identity: &Identity) -> Result<Answer, Error> {
    match identity.credential {
        Credential::Password(version) => Ok(Answer::Password(((*identity.account).clone(), version))),
        // A password shows no session.
        Credential::Session(_) => Err(Error::Unavailable),
    }
}

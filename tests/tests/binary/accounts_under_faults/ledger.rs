//! A user's ledger of created accounts: the confirmed state, and the uncertain state.
//!
//! Each change is recorded as unknown before its request is sent. Only the answer must confirm it.

/// The credentials of a request.
#[derive(Clone, Debug)]
pub(super) enum Credentials {
    Token(String),
    /// A name and a password.
    Password(String, String),
}

/// One account.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) name: String,
    /// The last confirmed password.
    pub(super) password: String,
    /// Whether its creation was confirmed.
    pub(super) is_made: bool,
    /// A possible new password: the change has no known outcome.
    pub(super) perhaps: Option<String>,
    /// Passwords whose replacement was confirmed.
    pub(super) replaced: Vec<String>,
    /// Confirmed tokens that no request has tried to end.
    pub(super) alive: Vec<String>,
    /// Tokens whose end was confirmed, by a logout or with a password change.
    pub(super) ended: Vec<String>,
}

impl Account {
    pub(super) fn new(name: String, password: String) -> Account {
        let (replaced, alive, ended) = (Vec::new(), Vec::new(), Vec::new());
        Account { name, password, is_made: false, perhaps: None, replaced, alive, ended }
    }

    /// Returns whether the account exists and its password is known.
    pub(super) fn is_known(&self) -> bool {
        self.is_made && self.perhaps.is_none()
    }

    pub(super) fn with(&self, password: &str) -> Credentials {
        Credentials::Password(self.name.clone(), password.to_owned())
    }

    /// Returns the credentials that must be accepted.
    pub(super) fn good(&self) -> Vec<Credentials> {
        let tokens = self.alive.iter().cloned().map(Credentials::Token);
        let password = self.is_known().then(|| self.with(&self.password));
        password.into_iter().chain(tokens).collect()
    }

    /// Returns the credentials that must be refused.
    pub(super) fn bad(&self) -> Vec<Credentials> {
        let replaced = self.replaced.iter().map(|password| self.with(password));
        let ended = self.ended.iter().cloned().map(Credentials::Token);
        replaced.chain(ended).chain([self.with("never a password")]).collect()
    }
}

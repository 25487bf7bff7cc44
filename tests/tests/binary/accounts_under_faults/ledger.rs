//! What a person knows of the accounts they made: what was confirmed, and what may be so or not.
//!
//! What must hold: what is about to be asked is written down before it is sent, as unknown; it is confirmed
//! by its answer alone.

/// What was shown with a request.
#[derive(Clone, Debug)]
pub(super) enum Shown {
    Token(String),
    /// A name and a password.
    Password(String, String),
}

/// One account.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) name: String,
    /// The last one that was confirmed.
    pub(super) password: String,
    /// Whether it was confirmed that it was made.
    pub(super) is_made: bool,
    /// What the password may be by now: nobody knows.
    pub(super) perhaps: Option<String>,
    /// Passwords of which it was confirmed that another has their place.
    pub(super) replaced: Vec<String>,
    /// Tokens that were confirmed, and that nobody has tried to end.
    pub(super) alive: Vec<String>,
    /// Tokens whose end was confirmed, by a log-out or with their password.
    pub(super) ended: Vec<String>,
}

impl Account {
    pub(super) fn new(name: String, password: String) -> Account {
        let (replaced, alive, ended) = (Vec::new(), Vec::new(), Vec::new());
        Account { name, password, is_made: false, perhaps: None, replaced, alive, ended }
    }

    /// Whether it is there, and its password is known.
    pub(super) fn is_known(&self) -> bool {
        self.is_made && self.perhaps.is_none()
    }

    pub(super) fn with(&self, password: &str) -> Shown {
        Shown::Password(self.name.clone(), password.to_owned())
    }

    /// What must open it.
    pub(super) fn good(&self) -> Vec<Shown> {
        let tokens = self.alive.iter().cloned().map(Shown::Token);
        let password = self.is_known().then(|| self.with(&self.password));
        password.into_iter().chain(tokens).collect()
    }

    /// What must not open it, or anything.
    pub(super) fn bad(&self) -> Vec<Shown> {
        let replaced = self.replaced.iter().map(|password| self.with(password));
        let ended = self.ended.iter().cloned().map(Shown::Token);
        replaced.chain(ended).chain([self.with("never a password")]).collect()
    }
}

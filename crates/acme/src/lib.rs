//! ACME (RFC 8555): a certificate that is ordered and renewed by the server itself, by `instant-acme`.
//!
//! A [`Renewer`] runs as one task. [`Machine`] has the states of a renewal, [`Validity`] its time, and
//! [`StateFolder`] the files, which several fronts may share.
//!
//! It answers no request: the server reads the answers to HTTP-01 challenges from the state folder, so that
//! any front and any process can. Wildcards need DNS-01, which it does not do. Invariants: the old
//! certificate stays in use until the new one is durable. A failing or refusing server is asked ever more
//! rarely. No key leaves the state folder, or is logged.
#![forbid(unsafe_code)]

mod certificate;
mod challenge;
mod external;
mod folder;
pub mod limits;
mod machine;
mod mailbox;
mod names;
mod order;
mod renewer;
mod schedule;

pub use certificate::{BadChain, Certificate};
pub use challenge::Proof;
pub use external::ExternalAccount;
pub use folder::{ATTEMPTS, CHALLENGES, StateFolder, Token};
pub use machine::{Attempts, Event, Failure, Machine, State, Unexpected};
pub use names::{BadDomainName, DomainName, Names};
pub use renewer::{Lock, Network, Renewer, Report, Settings};
pub use schedule::{Position, Validity, Window};

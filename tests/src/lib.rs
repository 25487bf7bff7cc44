//! What the tests stand on: servers under every engine, a client, and folders to be served.
//!
//! It is not a test itself, and it repeats nothing of what it tests: the client here writes bytes by hand.
//! What must hold: a behaviour is written once and run under each engine alike; a test cannot hang.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "a test says what it expects by failing"
)]

pub mod accounts;
pub mod binary;
pub mod client;
mod counted;
pub mod database;
pub mod forked;
pub mod ftp;
pub mod scene;
pub mod service;
pub mod together;
pub mod tree;
pub mod under;

pub use accounts::Person;
pub use client::{Answer, Client};
pub use ftp::{Data, Ftp, FtpClient, Way};
pub use scene::{HOT, LOOKED_UP_EACH_TIME, Protocol, Scenario, Scene};
pub use service::AS_OPERATOR;
pub use together::together;
pub use tree::Tree;
pub use under::{Engine, under};

#[doc(hidden)]
pub use inventory;

/// Makes a test of each behaviour under every engine: `behaviours!(scenario; one, two);`, where `scenario`
/// is a function that makes the [`Scenario`] and each behaviour an `async fn(Scene)`. With
/// `behaviours!(scenario and apart; one, two);` also of a front whose accounts' files are at a store apart;
/// with `behaviours!(scenario and spooled; one, two);` both as uploads come, and when all of each has come.
/// With `behaviours!(scenario but process; one);` not where each connection is a process: what it does there
/// from within is seen in one process alone (`xtask` has the list).
#[macro_export]
macro_rules! behaviours {
    ($scenario:ident and apart; $($name:ident),* $(,)?) => {
        $crate::behaviours!($scenario; $($name),*);
        mod apart {
            $(#[test] fn $name() { $crate::under::apart(super::$scenario, super::$name); })*
        }
    };
    ($scenario:ident and spooled; $($name:ident),* $(,)?) => {
        $crate::behaviours!($scenario and apart; $($name),*);
        mod spooled {
            $(#[test] fn $name() { $crate::under::spooled(super::$scenario, super::$name); })*
        }
    };
    ($scenario:ident; $($name:ident),* $(,)?) => {
        #[cfg(feature = "every-engine")]
        mod process {
            use $crate::{Engine, under};
            $($crate::alone!($name, || under(Engine::Process, super::$scenario, super::$name));)*
        }
        $crate::behaviours!($scenario but process; $($name),*);
    };
    ($scenario:ident but process; $($name:ident),* $(,)?) => {
        mod epoll {
            use $crate::{Engine, under};
            $(#[test] fn $name() { under(Engine::Epoll, super::$scenario, super::$name); })*
        }
        mod thread {
            use $crate::{Engine, under};
            $(#[test] fn $name() { under(Engine::Thread, super::$scenario, super::$name); })*
        }
        #[cfg(feature = "every-engine")]
        mod pool {
            use $crate::{Engine, under};
            $(#[test] fn $name() { under(Engine::Pool, super::$scenario, super::$name); })*
        }
        mod uring {
            use $crate::{Engine, under};
            $(#[test] fn $name() { under(Engine::Uring, super::$scenario, super::$name); })*
        }
        mod simulator {
            use $crate::{Engine, under};
            $(#[test] fn $name() { under(Engine::Simulator, super::$scenario, super::$name); })*
        }
    };
}

//! The foundation of the tests: servers under every engine, a client, and folders to serve.
//!
//! It is not a test itself. It shares no code with the tested parts: the client here writes bytes by hand.
//! A behaviour is written once and run under each engine alike. A test cannot hang.
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
pub mod archive;
pub mod binary;
pub mod client;
mod counted;
pub mod database;
pub mod forked;
pub mod ftp;
pub mod proxy;
pub mod relay;
pub mod scene;
pub mod service;
pub mod skips;
pub mod tls;
pub mod together;
pub mod tree;
pub mod under;

pub use accounts::Person;
pub use client::{Answer, Client};
pub use ftp::{Data, DataMode, Ftp, FtpClient, FtpTls};
pub use proxy::ProxySettings;
pub use scene::{HOT, LOOKED_UP_EACH_TIME, Protocol, Scenario, Scene};
pub use service::AS_OPERATOR;
pub use together::together;
pub use tree::Tree;
pub use under::{Engine, over_tls, under};

#[doc(hidden)]
pub use inventory;

/// Defines a module for each engine, with a test of each behaviour: `$run` runs it.
#[doc(hidden)]
#[macro_export]
macro_rules! engines {
    ($run:ident $names:tt; $($(#[$when:meta])? $module:ident: $engine:ident),* $(,)?) => {
        $($crate::engines!(@ $(#[$when])? $module $engine $run $names);)*
    };
    (@ $(#[$when:meta])? $module:ident $engine:ident $run:ident ($scenario:ident; $($name:ident),*)) => {
        $(#[$when])?
        mod $module {
            use $crate::{Engine, $run};
            $(#[test] fn $name() { $run(Engine::$engine, super::$scenario, super::$name); })*
        }
    };
}

/// As [`engines`], for the engine `process` in a long run: each test has a process to itself.
#[doc(hidden)]
#[macro_export]
macro_rules! forking_engine {
    ($run:ident $module:ident $scenario:ident; $($name:ident),*) => {
        #[cfg(feature = "every-engine")]
        mod $module {
            use $crate::{Engine, $run};
            $($crate::alone!($name, || $run(Engine::Process, super::$scenario, super::$name));)*
        }
    };
}

/// Defines a test of each behaviour with HTTP and FTP over TLS. A run on each commit has a real engine and
/// the simulator; a long run has every engine.
#[doc(hidden)]
#[macro_export]
macro_rules! over_tls {
    ($scenario:ident; $($name:ident),* $(,)?) => {
        $crate::over_tls!($scenario but process; $($name),*);
        $crate::forking_engine!(over_tls tls_process $scenario; $($name),*);
    };
    ($scenario:ident but process; $($name:ident),* $(,)?) => {
        $crate::engines!(over_tls ($scenario; $($name),*);
            tls_epoll: Epoll,
            tls_simulator: Simulator,
            #[cfg(feature = "every-engine")] tls_thread: Thread,
            #[cfg(feature = "every-engine")] tls_pool: Pool,
            #[cfg(feature = "every-engine")] tls_uring: Uring,
        );
    };
}

/// Defines a test of each behaviour under every engine: `behaviours!(scenario; one, two);`. `scenario` is a
/// function that returns the [`Scenario`], and each behaviour is an `async fn(Scene)`.
/// `behaviours!(scenario and remote; one, two);` adds a front with a remote store for the accounts' files.
/// `behaviours!(scenario and spooled; one, two);` also adds one that buffers each upload until it is
/// complete. `behaviours!(scenario but process; one);` omits the engine `process`, for behaviours that
/// observe the server from within one process (`xtask` has the list). With `and tls` at the end, each of
/// these also adds clients over TLS.
#[macro_export]
macro_rules! behaviours {
    ($scenario:ident and tls; $($name:ident),* $(,)?) => {
        $crate::behaviours!($scenario; $($name),*);
        $crate::over_tls!($scenario; $($name),*);
    };
    ($scenario:ident and remote and tls; $($name:ident),* $(,)?) => {
        $crate::behaviours!($scenario and remote; $($name),*);
        $crate::over_tls!($scenario; $($name),*);
    };
    ($scenario:ident and spooled and tls; $($name:ident),* $(,)?) => {
        $crate::behaviours!($scenario and spooled; $($name),*);
        $crate::over_tls!($scenario; $($name),*);
    };
    ($scenario:ident but process and tls; $($name:ident),* $(,)?) => {
        $crate::behaviours!($scenario but process; $($name),*);
        $crate::over_tls!($scenario but process; $($name),*);
    };
    ($scenario:ident and remote; $($name:ident),* $(,)?) => {
        $crate::behaviours!($scenario; $($name),*);
        mod remote {
            $(#[test] fn $name() { $crate::under::remote(super::$scenario, super::$name); })*
        }
    };
    ($scenario:ident and spooled; $($name:ident),* $(,)?) => {
        $crate::behaviours!($scenario and remote; $($name),*);
        mod spooled {
            $(#[test] fn $name() { $crate::under::spooled(super::$scenario, super::$name); })*
        }
    };
    ($scenario:ident; $($name:ident),* $(,)?) => {
        $crate::forking_engine!(under process $scenario; $($name),*);
        $crate::behaviours!($scenario but process; $($name),*);
    };
    ($scenario:ident but process; $($name:ident),* $(,)?) => {
        $crate::engines!(under ($scenario; $($name),*);
            epoll: Epoll,
            thread: Thread,
            uring: Uring,
            simulator: Simulator,
            #[cfg(feature = "every-engine")] pool: Pool,
        );
    };
}

//! The authentication server is killed and restarted, or hangs, while two fronts are in use at once.
//!
//! A credential whose end was confirmed by one front must not be accepted by either. A front that cannot
//! reach the server refuses with 503.

use plimsoll_auth::limits::SLOW_ANSWER_TIME;
use plimsoll_tests::binary::{EngineKind, Server, command};
use plimsoll_tests::on_each_engine;
use rustix::process::Signal;

use super::check::{check, until_ready};
use super::load::Load;
use super::{CONFIRMED, Chance, REFUSED, a_moment, begin, rounds};
use crate::tiers::Workspace;

const LATER: &[u16] = &[503];

/// Starts a program of a tier, without limits on login attempts and with cheap password hashing.
fn start(place: &Workspace, engine: EngineKind, args: &[&str], data: &str) -> Server {
    let mut program = command();
    program.args(args).args(["--engine", &engine.to_string(), "--secret-file"]).arg(place.path("secret"));
    program.arg("--data").arg(place.path(data));
    program.env("PLIMSOLL_LAB_FAST_PASSWORDS", "true").env("PLIMSOLL_LAB_NO_ATTEMPT_LIMITS", "true");
    Server::spawn(program)
}

fn auth(place: &Workspace, engine: EngineKind) -> Server {
    start(place, engine, &["auth", "--listen", &place.auth_at()], "accounts")
}

fn front(place: &Workspace, engine: EngineKind, name: &str) -> Server {
    let at = place.auth_at();
    let args = ["serve", "--auth", &at, "--http", "127.0.0.1:0", "--access-log", "off", "--signup", "open"];
    start(place, engine, &args, name)
}

/// Runs two fronts of an authentication server with test users on both, and a `fault` in the middle,
/// `count` times. Afterwards the server's state must match the users' ledgers.
fn rounds_of(
    engine: EngineKind,
    count: usize,
    fault: impl Fn(&Workspace, Server, &Load, &mut Chance) -> Server,
) {
    let (mut people, mut chance) = begin(&format!("an authentication server under {engine}"));
    let place = Workspace::new();
    let mut server = auth(&place, engine);
    let (one, two) = (front(&place, engine, "one"), front(&place, engine, "two"));
    let fronts = [&one, &two];
    until_ready(&fronts);
    for _ in 0..rounds(count) {
        let load = Load::at(&fronts, SLOW_ANSWER_TIME, LATER);
        server = people.live(&load, || {
            load.until_confirmed(CONFIRMED);
            a_moment(&mut chance);
            let server = fault(&place, server, &load, &mut chance);
            load.until_confirmed(CONFIRMED);
            server
        });
        until_ready(&fronts);
        check(&Load::at(&fronts, SLOW_ANSWER_TIME, LATER), &mut people);
    }
}

fn a_killed_authentication_server_loses_nothing_and_fronts_refuse_all_callers(engine: EngineKind) {
    rounds_of(engine, 3, |place, server, load, chance| {
        server.signal(Signal::KILL);
        // The next server binds the same address when this one has ended.
        drop(server);
        load.until_refused(REFUSED);
        a_moment(chance);
        auth(place, engine)
    });
}

fn a_hanging_authentication_server_delays_no_client_beyond_the_stated_time(engine: EngineKind) {
    rounds_of(engine, 1, |_, server, load, chance| {
        server.signal(Signal::STOP);
        // Each of these requests may take the full stated time.
        load.until_refused(REFUSED / 3);
        a_moment(chance);
        server.signal(Signal::CONT);
        server
    });
}

on_each_engine!(forks:
    a_killed_authentication_server_loses_nothing_and_fronts_refuse_all_callers,
    a_hanging_authentication_server_delays_no_client_beyond_the_stated_time,
);

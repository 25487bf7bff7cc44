//! The authentication server is killed and started again, or hangs, under two fronts that people use at
//! once.
//!
//! What must hold: what has ended, confirmed by whichever front, is let in by neither; fronts that cannot
//! ask say so.

use plimsoll_auth::limits::SLOW_ANSWER_TIME;
use plimsoll_tests::binary::{Kind, Server, command};
use plimsoll_tests::on_each_engine;
use rustix::process::Signal;

use super::check::{check, until_ready};
use super::load::Load;
use super::{CONFIRMED, Chance, REFUSED, a_moment, begin, rounds};
use crate::tiers::Place;

const LATER: &[u16] = &[503];

/// A program of the tiers, without what holds back who guesses, and with log-ins that cost next to nothing.
fn start(place: &Place, engine: Kind, args: &[&str], data: &str) -> Server {
    let mut program = command();
    program.args(args).args(["--engine", &engine.to_string(), "--secret-file"]).arg(place.path("secret"));
    program.arg("--data").arg(place.path(data));
    program.env("PLIMSOLL_LAB_FAST_PASSWORDS", "true").env("PLIMSOLL_LAB_NO_ATTEMPT_LIMITS", "true");
    Server::spawn(program)
}

fn auth(place: &Place, engine: Kind) -> Server {
    start(place, engine, &["auth", "--listen", &place.auth_at()], "accounts")
}

fn front(place: &Place, engine: Kind, name: &str) -> Server {
    let at = place.auth_at();
    let args = ["serve", "--auth", &at, "--http", "127.0.0.1:0", "--access-log", "off", "--signup", "open"];
    start(place, engine, &args, name)
}

/// Two fronts of an authentication server, and people at both, with a `fault` in the middle, so many times;
/// afterwards all is as they know it.
fn rounds_of(engine: Kind, count: usize, fault: impl Fn(&Place, Server, &Load, &mut Chance) -> Server) {
    let (mut people, mut chance) = begin(&format!("an authentication server under {engine}"));
    let place = Place::new();
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

fn an_authentication_server_that_is_killed_under_load_loses_nothing_and_fronts_let_nobody_in(engine: Kind) {
    rounds_of(engine, 3, |place, server, load, chance| {
        server.signal(Signal::KILL);
        // The next one takes the place when this one is gone.
        drop(server);
        load.until_refused(REFUSED);
        a_moment(chance);
        auth(place, engine)
    });
}

fn an_authentication_server_that_hangs_under_load_has_nobody_wait_for_longer_than_is_stated(engine: Kind) {
    rounds_of(engine, 1, |_, server, load, chance| {
        server.signal(Signal::STOP);
        // Each of which may take all of its time.
        load.until_refused(REFUSED / 3);
        a_moment(chance);
        server.signal(Signal::CONT);
        server
    });
}

on_each_engine!(forks:
    an_authentication_server_that_is_killed_under_load_loses_nothing_and_fronts_let_nobody_in,
    an_authentication_server_that_hangs_under_load_has_nobody_wait_for_longer_than_is_stated,
);

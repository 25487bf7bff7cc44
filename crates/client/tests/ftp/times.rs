//! Servers that take too long: each wait ends.

use plimsoll_client::ftp::{Command, Error, Session, Times, When};
use plimsoll_io::sim::BACKLOG_MAX;
use plimsoll_io::{Address, Io, Segment, Stream, Want};
use plimsoll_wire::ftp::command::Verb;

use crate::{Client, Control, SECOND, Server, calm, fetch, run};

const TIMES: Times =
    Times { connect: SECOND, answer: SECOND.saturating_mul(2), between_bytes: SECOND.saturating_mul(3) };

async fn log_in(client: &Client) -> Result<Session, Error> {
    let mut session = Session::connect(&client.io, &client.at, TIMES).await?;
    session.log_in("alice", "secret").await?;
    Ok(session)
}

/// Checks the timeout of a client whose server runs `server` and is then silent for a minute.
fn stuck<T: 'static>(
    server: impl AsyncFnOnce(&mut Server) -> T + 'static,
    client: impl AsyncFnOnce(&Client) -> Error + 'static,
    when: When,
    seconds: u32,
) {
    let client = async move |one: Client| {
        let error = client(&one).await;
        assert!(matches!(error, Error::Late(found) if found == when), "{error}");
        let passed = one.io.now().since_start();
        assert!(passed > SECOND * seconds && passed < SECOND * (seconds + 1), "{passed:?}");
    };
    let server = async move |mut one: Server| {
        let kept = server(&mut one).await;
        one.io.sleep(SECOND * 60).await;
        drop(kept);
    };
    run(calm(), server, client);
}

fn waiting(verb: Verb) -> When {
    When::Waiting(Command::Verb(verb))
}

async fn download(client: &Client) -> Error {
    fetch(&mut log_in(client).await.unwrap(), "a", 0).await.unwrap_err()
}

async fn upload(client: &Client) -> Error {
    let mut source = plimsoll_client::SingleSegment::new(Segment::Owned(vec![b'x'; 1 << 20]));
    log_in(client).await.unwrap().store(b"a", &mut source).await.unwrap_err()
}

#[test]
fn the_wait_for_a_reply_times_out() {
    let greeting = When::Waiting(Command::Greeting);
    stuck(
        async |server| server.accept().await,
        async |client| log_in(client).await.err().unwrap(),
        greeting,
        2,
    );
    let half = async |server: &mut Server| {
        let mut control = server.accept().await;
        control.stream.tx.push(Segment::Static(b"220-hello\r\n220-hel"));
        control
    };
    stuck(half, async |client| log_in(client).await.err().unwrap(), greeting, 2);
    stuck(async |server| server.logged_in().await, download, waiting(Verb::Epsv), 2);
    let no_begin = async |server: &mut Server| {
        let mut control = server.logged_in().await;
        (control.passive().await, control)
    };
    stuck(no_begin, download, waiting(Verb::Retr), 2);
}

/// Starts a transfer.
async fn begun(server: &mut Server) -> (Control, Stream) {
    let mut control = server.logged_in().await;
    let mut listener = control.passive().await;
    control.line().await;
    control.send_line("150 go");
    let data = listener.accept().await.unwrap();
    (control, data)
}

#[test]
fn the_wait_for_the_next_bytes_times_out() {
    let half = async |server: &mut Server| {
        let (control, mut data) = begun(server).await;
        control.io.sleep(SECOND * 2).await;
        data.tx.push(Segment::Static(b"half"));
        (control, data)
    };
    stuck(half, download, When::Receiving, 5);
}

#[test]
fn the_wait_for_a_confirmation_times_out() {
    let no_end = async |server: &mut Server| {
        let (control, mut data) = begun(server).await;
        data.tx.finish();
        (control, data)
    };
    stuck(no_end, download, waiting(Verb::Retr), 2);
    let all_taken = async |server: &mut Server| {
        let (control, mut data) = begun(server).await;
        while data.rx.recv(Want::Body).await.unwrap().is_some() {}
        (control, data)
    };
    stuck(all_taken, upload, waiting(Verb::Stor), 2);
}

#[test]
fn an_upload_to_a_stalled_server_times_out() {
    // Bytes were taken in the first of two periods; after them, the client waits for the server's
    // explanation.
    stuck(begun, upload, When::Sending, 8);
}

/// Fills the backlog, so that a further connection is not even refused.
async fn crowd(io: &Io, at: &Address) -> Vec<Stream> {
    let mut crowd = Vec::new();
    for _ in 0..BACKLOG_MAX {
        crowd.push(io.connect(at).await.unwrap());
    }
    crowd
}

#[test]
fn connecting_to_an_unreachable_server_times_out() {
    run(
        calm(),
        async |server| server.io.sleep(SECOND * 60).await,
        async |client| {
            let _crowd = crowd(&client.io, &client.at).await;
            let begun = client.io.now();
            let error = Session::connect(&client.io, &client.at, TIMES).await.err().unwrap();
            assert!(matches!(error, Error::Connect { .. }), "{error}");
            assert!(client.io.now() - begun < SECOND * 2);
        },
    );
}

#[test]
fn connecting_to_an_unreachable_data_port_times_out() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            let (listener, port) = control.listen();
            let _crowd = crowd(&server.io, listener.address()).await;
            control.answer("EPSV", &format!("229 (|||{port}|)")).await;
            control.quit().await;
        },
        async |client| {
            let mut session = log_in(&client).await.unwrap();
            let begun = client.io.now();
            let error = fetch(&mut session, "a", 0).await.unwrap_err();
            assert!(matches!(error, Error::Connect { .. }), "{error}");
            assert!(client.io.now() - begun < SECOND * 2);
            session.quit().await.unwrap();
        },
    );
}

#[test]
fn a_slow_but_steady_server_does_not_time_out() {
    run(
        calm(),
        async |mut server| {
            let (mut control, mut data) = begun(&mut server).await;
            for _ in 0..20 {
                control.io.sleep(SECOND * 2).await;
                data.tx.push(Segment::Static(b"x"));
            }
            data.finish().await.unwrap();
            control.io.sleep(SECOND).await;
            control.send_line("226 all of it");
            control.quit().await;
        },
        async |client| {
            let mut session = log_in(&client).await.unwrap();
            assert_eq!(fetch(&mut session, "a", 0).await.unwrap(), [b'x'; 20]);
            session.quit().await.unwrap();
        },
    );
}

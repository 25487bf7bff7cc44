//! The start of users that speak FTP, against a scripted FTP server.
//!
//! Transfers themselves are not tested here, but with the FTP client. Invariant: before the common start a
//! download user has logged in and opened its data connection.

use plimsoll_client::ftp::TlsStart;
use plimsoll_io::Listener;
use plimsoll_tls::{Certificates, Clock, Connector, MinVersion, Roots, ServerTls, Tickets};

use super::*;

const BODY: &[u8] = b"the file";
const CA: &[u8] = include_bytes!("../../../../tests/data/tls/ca.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../../../tests/data/tls/server.pem");
const KEY: &[u8] = include_bytes!("../../../../tests/data/tls/server.key");

/// A command received by the server, and its time.
type Commands = Arc<Mutex<Vec<(String, Duration)>>>;

/// Serves control connections, each with its data connections.
#[derive(Clone)]
struct FtpServer {
    io: Io,
    commands: Commands,
    /// The time for which a data listener waits for its transfer.
    data_time: Duration,
    /// The settings of its sessions, if it has TLS, and the start of TLS.
    tls: Option<(Arc<ServerTls>, TlsStart)>,
}

impl Handler for FtpServer {
    fn serve(&self, stream: Stream) -> LocalFuture {
        Box::pin(session(self.clone(), stream))
    }
}

impl FtpServer {
    /// Encrypts a control connection that starts TLS in this way, or a data connection (`None`).
    async fn encrypt(&self, stream: &mut Stream, at: Option<TlsStart>) {
        if let Some((tls, start)) = &self.tls
            && at.is_none_or(|at| at == *start)
        {
            tls.accept(&self.io, stream).await.unwrap();
        }
    }
}

/// Runs one session. Every session logs in later than the one before.
async fn session(server: FtpServer, mut stream: Stream) {
    let FtpServer { io, commands, data_time, .. } = &server;
    let data_time = *data_time;
    let Ok(Address::Ip(here)) = stream.local() else { return };
    server.encrypt(&mut stream, Some(TlsStart::Implicit)).await;
    let (mut received, mut data): (Vec<u8>, Option<(Listener, Duration)>) = (Vec::new(), None);
    send(&mut stream, "220 ready").await;
    while let Some(line) = line(&mut stream, &mut received).await {
        let logins = {
            let mut commands = commands.lock().unwrap();
            commands.push((line.clone(), io.now().since_start()));
            commands.iter().filter(|(line, _)| line.starts_with("USER")).count()
        };
        match line.split(' ').next() {
            Some("AUTH") => {
                send(&mut stream, "234 begin").await;
                server.encrypt(&mut stream, Some(TlsStart::Explicit)).await;
            }
            Some("USER") => {
                io.sleep(MS * 500 * u32::try_from(logins).unwrap()).await;
                send(&mut stream, "230 welcome").await;
            }
            Some("EPSV") => {
                let listener = io.listen(&Address::Ip((here.ip(), 0).into())).unwrap();
                let Address::Ip(at) = *listener.address() else { return };
                data = Some((listener, io.now().since_start() + data_time));
                send(&mut stream, &format!("229 ready (|||{}|)", at.port())).await;
            }
            Some("RETR") => match data.take().filter(|(_, until)| io.now().since_start() < *until) {
                Some((mut listener, _)) => {
                    send(&mut stream, "150 it comes").await;
                    let mut data = listener.accept().await.unwrap();
                    server.encrypt(&mut data, None).await;
                    data.tx.push(Segment::Static(BODY));
                    // The client may have gone.
                    let _ = data.finish().await;
                    send(&mut stream, "226 all of it").await;
                }
                None => send(&mut stream, "425 say EPSV first").await,
            },
            Some("QUIT") => {
                send(&mut stream, "221 goodbye").await;
                break;
            }
            _ => send(&mut stream, "200 well").await,
        }
    }
    let _ = stream.finish().await;
}

async fn send(stream: &mut Stream, answer: &str) {
    stream.tx.push(Segment::Owned(format!("{answer}\r\n").into_bytes()));
    // The client may have gone.
    let _ = stream.tx.drain(0).await;
}

/// Receives a command, or `None` at the end of the connection.
async fn line(stream: &mut Stream, received: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = received.windows(2).position(|end| end == b"\r\n") {
            return Some(String::from_utf8(received.drain(..end + 2).take(end).collect()).unwrap());
        }
        match stream.rx.recv(Want::Head).await {
            Ok(Some(lease)) => received.extend_from_slice(&lease),
            _ => return None,
        }
    }
}

/// Runs five users that download six files each. Returns the commands that the server received.
fn commands(connections: Connections, seed: u64, data_time: Duration) -> Vec<(String, Duration)> {
    let workload = Workload { connections, ..workload() };
    trial(workload, Scheme::Ftp, (seed, data_time)).1
}

/// As [`commands`], for users with these settings and this scheme. Returns also the outcome.
fn trial(
    workload: Workload,
    scheme: Scheme,
    (seed, data_time): (u64, Duration),
) -> (Outcome, Vec<(String, Duration)>) {
    let sim = Sim::new(seed, Faults::none());
    let (near, far) = (sim.host("users"), sim.host("server"));
    let commands = Commands::default();
    let of_server = Arc::clone(&commands);
    let tls = match scheme {
        Scheme::FtpOverTls(start) => Some((server_tls(), start)),
        _ => None,
    };
    let setup: Setup = Arc::new(move |io| {
        Rc::new(FtpServer { io, commands: Arc::clone(&of_server), data_time, tls: tls.clone() })
    });
    let at = sim.serve(&far, &Address::Ip((far.ip(), 21).into()), &setup).unwrap();
    let mut workload = Workload { users: 5, end: End::RequestsEach(6), ..workload };
    (workload.place.scheme, workload.place.addresses) = (scheme, vec![at]);
    let (crowd, tasks) = Crowd::gather(&workload, &near.io(), near.stop()).unwrap();
    sim.run(&near, all(tasks));
    assert!(sim.panics().is_empty(), "{:?}", sim.panics());
    let outcome = crowd.outcome().unwrap();
    assert!(outcome.is_clean(), "{:?}", outcome.messages);
    assert_eq!((outcome.requests, outcome.bytes), (30, 30 * BODY.len() as u64), "seed {seed}");
    let commands = commands.lock().unwrap().clone();
    (outcome, commands)
}

fn server_tls() -> Arc<ServerTls> {
    let certificates = Certificates::read([(CERTIFICATE, KEY)]).unwrap();
    Arc::new(
        ServerTls::new(certificates, &["ftp"], MinVersion::default(), Tickets::new().unwrap(), Clock::new())
            .unwrap(),
    )
}

fn is(verb: &'static str) -> impl Fn(&(String, Duration)) -> bool {
    move |(line, _)| line.starts_with(verb)
}

#[test]
fn all_data_connections_are_open_before_the_first_file_is_requested() {
    for seed in 0..SEEDS {
        let commands = commands(Connections::Kept, seed, 100 * SECOND);
        let first = commands.iter().position(is("RETR")).unwrap();
        let (before, after) = commands.split_at(first);
        let count = |verb| before.iter().filter(|command| is(verb)(command)).count();
        assert_eq!((count("USER"), count("TYPE I"), count("EPSV")), (5, 5, 5), "seed {seed}: {before:?}");
        assert!(after[..5].iter().all(is("RETR")), "seed {seed}: {after:?}");
        // One connection serves each transfer.
        assert_eq!(commands.iter().filter(|command| is("EPSV")(command)).count(), 30, "seed {seed}");
    }
}

#[test]
fn a_data_connection_that_the_server_gave_up_before_the_start_is_opened_again() {
    // The first user waits for two seconds for the last one to log in.
    let commands = commands(Connections::Kept, 0, SECOND);
    let count = |verb| commands.iter().filter(|command| is(verb)(command)).count();
    let again = count("EPSV") - 30;
    assert!((1..5).contains(&again) && count("RETR") == 30 + again, "{commands:?}");
}

#[test]
fn with_new_connections_a_session_begins_after_the_start() {
    let commands = commands(Connections::New, 0, 100 * SECOND);
    let count = |verb| commands.iter().filter(|command| is(verb)(command)).count();
    assert_eq!((count("USER"), count("EPSV"), count("RETR")), (30, 30, 30));
    assert!(commands[..5].iter().all(is("USER")), "{commands:?}");
}

#[test]
fn over_tls_data_connections_resume_the_session_of_their_control_connection_and_are_counted() {
    let connector = Connector::new(&Roots::read(CA).unwrap(), &["ftp"], Clock::new()).unwrap();
    for seed in 0..3 {
        for start in [TlsStart::Explicit, TlsStart::Implicit] {
            let handshakes = |connections, connector: &Connector| {
                let mut workload = Workload { connections, tls: Some(connector.clone()), ..workload() };
                workload.place.authority = "localhost".to_owned();
                let (outcome, commands) = trial(workload, Scheme::FtpOverTls(start), (seed, 100 * SECOND));
                assert_eq!(commands.iter().any(is("AUTH TLS")), start == TlsStart::Explicit);
                assert!(commands.iter().any(is("PROT P")), "{commands:?}");
                (outcome.full_handshakes.0, outcome.resumed_handshakes.0)
            };
            // Those of control connections precede the measurement.
            assert_eq!(handshakes(Connections::Kept, &connector), (0, 30), "seed {seed}, {start:?}");
            assert_eq!(handshakes(Connections::New, &connector), (30, 30), "seed {seed}, {start:?}");
            let full = connector.clone().without_resumption();
            assert_eq!(handshakes(Connections::New, &full), (60, 0), "seed {seed}, {start:?}");
        }
    }
}

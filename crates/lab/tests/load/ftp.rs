//! The start of users that speak FTP, against a scripted FTP server.
//!
//! Transfers themselves are not tested here, but with the FTP client. Invariant: before the common start a
//! download user has logged in and opened its data connection.

use plimsoll_io::Listener;

use super::*;

const BODY: &[u8] = b"the file";

/// A command received by the server, and its time.
type Commands = Arc<Mutex<Vec<(String, Duration)>>>;

/// Serves control connections, each with its data connections.
struct FtpServer {
    io: Io,
    commands: Commands,
    /// The time for which a data listener waits for its transfer.
    data_time: Duration,
}

impl Handler for FtpServer {
    fn serve(&self, stream: Stream) -> LocalFuture {
        Box::pin(session(self.io.clone(), stream, Arc::clone(&self.commands), self.data_time))
    }
}

/// Runs one session. Every session logs in later than the one before.
async fn session(io: Io, mut stream: Stream, commands: Commands, data_time: Duration) {
    let Ok(Address::Ip(here)) = stream.local() else { return };
    let (mut received, mut data): (Vec<u8>, Option<(Listener, Duration)>) = (Vec::new(), None);
    send(&mut stream, "220 ready").await;
    while let Some(line) = line(&mut stream, &mut received).await {
        let logins = {
            let mut commands = commands.lock().unwrap();
            commands.push((line.clone(), io.now().since_start()));
            commands.iter().filter(|(line, _)| line.starts_with("USER")).count()
        };
        match line.split(' ').next() {
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
    let sim = Sim::new(seed, Faults::none());
    let (near, far) = (sim.host("users"), sim.host("server"));
    let commands = Commands::default();
    let of_server = Arc::clone(&commands);
    let setup: Setup =
        Arc::new(move |io| Rc::new(FtpServer { io, commands: Arc::clone(&of_server), data_time }));
    let at = sim.serve(&far, &Address::Ip((far.ip(), 21).into()), &setup).unwrap();
    let mut workload = Workload { users: 5, connections, end: End::RequestsEach(6), ..workload() };
    (workload.place.scheme, workload.place.addresses) = (Scheme::Ftp, vec![at]);
    let (crowd, tasks) = Crowd::gather(&workload, &near.io(), near.stop()).unwrap();
    sim.run(&near, all(tasks));
    assert!(sim.panics().is_empty(), "{:?}", sim.panics());
    let outcome = crowd.outcome().unwrap();
    assert!(outcome.is_clean(), "{:?}", outcome.told);
    assert_eq!((outcome.requests, outcome.bytes), (30, 30 * BODY.len() as u64), "seed {seed}");
    commands.lock().unwrap().clone()
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

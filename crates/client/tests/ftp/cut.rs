//! Sessions whose bytes arrive in pieces, or whose control connection is cut after each byte in turn.

use std::cell::Cell;
use std::rc::Rc;

use plimsoll_client::ftp::Error;
use plimsoll_io::sim::{Faults, seeds};
use plimsoll_io::{Listener, Segment};

use crate::{Client, Control, Pieces, Server, fetch, run};

const FILE: &[u8] = b"what is in the file";

/// A server whose control connection ends after so many bytes of answers.
struct TruncatedServer {
    control: Control,
    left: usize,
}

impl TruncatedServer {
    /// Sends as much of `answer` as the bound permits; returns whether that is all of it.
    fn send_line(&mut self, answer: &str) -> bool {
        let line = format!("{answer}\r\n");
        let permitted = line.len().min(self.left);
        self.left -= permitted;
        self.control.stream.tx.push(Segment::Owned(line.as_bytes()[..permitted].to_vec()));
        permitted == line.len()
    }

    async fn answer(&mut self, line: &str, answer: &str) -> bool {
        assert_eq!(self.control.line().await, line);
        self.send_line(answer)
    }

    async fn passive(&mut self) -> Option<Listener> {
        let (listener, port) = self.control.listen();
        let text = format!("229 Entering Extended Passive Mode (|||{port}|)");
        self.answer("EPSV", &text).await.then_some(listener)
    }

    /// Serves a whole session, unless it is cut.
    async fn serve(&mut self) -> Option<()> {
        let going = |is_going: bool| is_going.then_some(());
        going(self.send_line("220-we\r\n 220 are\r\n220 ready"))?;
        going(self.answer("USER alice", "331 go on").await)?;
        going(self.answer("PASS secret", "230 welcome").await)?;
        going(self.answer("TYPE I", "200 as they are").await)?;
        let mut listener = self.passive().await?;
        going(self.answer("RETR a", "150 it comes").await)?;
        crate::give(&mut listener, FILE).await;
        going(self.send_line("226 all of it"))?;
        let mut listener = self.passive().await?;
        going(self.answer("STOR b", "150 send it").await)?;
        assert_eq!(crate::take(&mut listener).await.unwrap(), FILE);
        going(self.send_line("226 I have it"))?;
        going(self.answer("SIZE b", "213 19").await)?;
        going(self.answer("QUIT", "221 goodbye").await)
    }
}

/// Serves a session until it is cut after `bytes`.
async fn serve(mut server: Server, bytes: usize) {
    let mut sent = TruncatedServer { control: server.accept().await, left: bytes };
    sent.serve().await;
    let _ = sent.control.stream.finish().await;
}

async fn session(client: &Client) -> Result<(), Error> {
    let mut session = client.log_in().await?;
    assert_eq!(fetch(&mut session, "a", 0).await?, FILE);
    assert_eq!(session.store(b"b", &mut Pieces::of(&[FILE])).await?, FILE.len() as u64);
    assert_eq!(session.size(b"b").await?, FILE.len() as u64);
    session.quit().await
}

#[test]
fn a_session_succeeds_wherever_its_bytes_are_split() {
    for bytes in 0..400 {
        run(
            (0, Faults::split_at(bytes)),
            async |server| serve(server, usize::MAX).await,
            async |client| session(&client).await.unwrap(),
        );
    }
    for seed in seeds(200) {
        run(
            (seed, Faults::splits()),
            async |server| serve(server, usize::MAX).await,
            async |client| session(&client).await.unwrap(),
        );
    }
}

#[test]
fn a_session_that_ends_early_at_any_byte_is_an_error() {
    let mut bytes = 0;
    loop {
        let went_well = Rc::new(Cell::new(false));
        let outcome = Rc::clone(&went_well);
        run(
            (0, Faults::none()),
            async move |server| serve(server, bytes).await,
            async move |client| match session(&client).await {
                Ok(()) => outcome.set(true),
                Err(Error::Broken { .. }) => {}
                Err(error) => panic!("after {bytes} bytes: {error}"),
            },
        );
        if went_well.get() {
            break;
        }
        bytes += 1;
    }
    assert!(bytes > 200, "the session went well after {bytes} bytes");
}

//! The control connection of a client, and its transfers.

use std::io;
use std::net::{IpAddr, SocketAddr};

use plimsoll_io::{Address, Deadline, Io, Peer, Segment, Stream, Want};
use plimsoll_tls::Connector;

use super::data_connection::{Data, DataMode, PATIENCE};
use crate::accounts::PASSWORD;
use crate::scene::Scene;
use crate::tls::{SERVER_NAME, connector};

/// One control connection.
pub struct FtpClient {
    io: Io,
    pub stream: Stream,
    deadline: Deadline,
    received: Vec<u8>,
    /// The mode in which [`FtpClient::data`] opens connections.
    pub mode: DataMode,
    /// The means to encrypt data connections, if they are private.
    pub data_tls: Option<Connector>,
}

/// An answer of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FtpAnswer {
    pub code: u16,
    /// Its lines, without the codes of the first and the last.
    pub lines: Vec<String>,
}

impl FtpAnswer {
    /// Returns the text, with all lines of a multi-line answer.
    pub fn text(&self) -> String {
        self.lines.join("\n")
    }

    /// Fails unless the code is `code`.
    #[track_caller]
    pub fn expect(self, code: u16) -> FtpAnswer {
        assert_eq!(self.code, code, "{}", self.text());
        self
    }

    /// Returns the text between the first and the last double quote, with doubled quotes unescaped.
    pub fn quoted(&self) -> String {
        let text = self.text();
        let from = text.find('"').expect("a quote") + 1;
        let to = text.rfind('"').expect("another");
        text[from..to].replace("\"\"", "\"")
    }
}

impl FtpClient {
    /// Connects, and reads the greeting. If the server has TLS, encrypts the session and its data.
    pub async fn connect(scene: &Scene) -> FtpClient {
        let mut client = FtpClient::in_clear(scene).await;
        if scene.ftp_tls.is_some_and(|tls| !tls.is_implicit) {
            client.encrypt(&connector(&["ftp"])).await;
            client.protect().await;
        }
        client
    }

    /// Connects, and reads the greeting. Encrypts the session only where the server begins with TLS.
    pub async fn in_clear(scene: &Scene) -> FtpClient {
        let mut client = FtpClient::try_connect(scene).await.expect("the server accepts connections");
        client.reply().await.expect(220);
        client
    }

    /// Connects, and reads nothing.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub async fn try_connect(scene: &Scene) -> io::Result<FtpClient> {
        let mut stream = scene.io.connect(scene.ftp()).await?;
        let mut data_tls = None;
        if scene.ftp_tls.is_some_and(|tls| tls.is_implicit) {
            let connector = connector(&["ftp"]);
            let connected = connector.connect(&scene.io, &mut stream, SERVER_NAME).await;
            connected.map_err(io::Error::other)?;
            data_tls = Some(connector);
        }
        let (io, deadline, mode) = (scene.io.clone(), scene.io.deadline(), DataMode::Extended);
        Ok(FtpClient { io, stream, deadline, received: Vec::new(), mode, data_tls })
    }

    /// Encrypts the control connection by AUTH TLS.
    pub async fn encrypt(&mut self, connector: &Connector) {
        self.command("AUTH TLS").await.expect(234);
        assert!(self.received.is_empty(), "bytes in clear behind the answer");
        connector.connect(&self.io, &mut self.stream, SERVER_NAME).await.expect("a handshake");
        self.data_tls = Some(connector.clone());
    }

    /// Has data connections encrypted.
    pub async fn protect(&mut self) {
        self.command("PBSZ 0").await.expect(200);
        self.command("PROT P").await.expect(200);
    }

    /// Logs in with the test password, and selects binary transfers (TYPE I).
    pub async fn of(scene: &Scene, name: &str) -> FtpClient {
        let mut client = FtpClient::connect(scene).await;
        client.log_in(name).await;
        client.command("TYPE I").await.expect(200);
        client
    }

    pub async fn log_in(&mut self, name: &str) {
        self.command(&format!("USER {name}")).await.expect(331);
        self.command(&format!("PASS {PASSWORD}")).await.expect(230);
    }

    /// Pushes bytes unchanged; the engine sends them without a further call.
    pub fn push(&mut self, bytes: impl Into<Vec<u8>>) {
        self.stream.tx.push(Segment::Owned(bytes.into()));
    }

    /// Sends a line, and reads the answer.
    pub async fn command(&mut self, line: impl AsRef<[u8]>) -> FtpAnswer {
        self.try_command(line).await.expect("an answer")
    }

    /// As [`FtpClient::command`].
    ///
    /// # Errors
    /// Returns the error that broke the connection; [`io::ErrorKind::UnexpectedEof`] at its end.
    pub async fn try_command(&mut self, line: impl AsRef<[u8]>) -> io::Result<FtpAnswer> {
        self.push([line.as_ref(), b"\r\n"].concat());
        self.try_reply().await
    }

    /// Reads the next answer.
    pub async fn reply(&mut self) -> FtpAnswer {
        self.try_reply().await.expect("an answer")
    }

    /// As [`FtpClient::reply`].
    ///
    /// # Errors
    /// Returns the error that broke the connection; [`io::ErrorKind::UnexpectedEof`] at its end.
    pub async fn try_reply(&mut self) -> io::Result<FtpAnswer> {
        let first = self.line().await?;
        let (code, text) = first.split_at(3);
        let number = code.parse().unwrap_or_else(|_| panic!("no answer: {first:?}"));
        let mut answer = FtpAnswer { code: number, lines: Vec::new() };
        let last = format!("{code} ");
        if let Some(text) = text.strip_prefix(' ') {
            answer.lines.push(text.to_owned());
            return Ok(answer);
        }
        answer
            .lines
            .push(text.strip_prefix('-').unwrap_or_else(|| panic!("no answer: {first:?}")).to_owned());
        loop {
            let line = self.line().await?;
            if let Some(text) = line.strip_prefix(&last) {
                answer.lines.push(text.to_owned());
                return Ok(answer);
            }
            answer.lines.push(line);
        }
    }

    /// Reads the next line, without its CRLF.
    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.received.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                let line = line.strip_suffix(b"\r\n").expect("a line ends with CR LF");
                return Ok(String::from_utf8_lossy(line).into_owned());
            }
            self.receive_more().await?;
        }
    }

    /// Waits for the first byte of the next answer.
    pub async fn until_answered(&mut self) {
        if self.received.is_empty() {
            self.receive_more().await.expect("the begin of an answer");
        }
    }

    async fn receive_more(&mut self) -> io::Result<()> {
        self.deadline.after(PATIENCE);
        let received = self.deadline.within(self.stream.rx.recv(Want::Body)).await;
        match received.expect("the server answers in time")? {
            Some(lease) => self.received.extend_from_slice(&lease),
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        Ok(())
    }

    /// Expects that the server ends the connection cleanly and sends nothing more.
    pub async fn expect_end(&mut self) {
        let end = self.try_reply().await;
        assert_eq!(end.expect_err("an end").kind(), io::ErrorKind::UnexpectedEof);
        assert!(self.received.is_empty(), "{:?}", String::from_utf8_lossy(&self.received));
    }

    /// Expects that nothing is received for `time`.
    pub async fn expect_silence(&mut self, time: std::time::Duration) {
        self.deadline.after(time);
        let received = self.deadline.within(self.stream.rx.recv(Want::Body)).await;
        assert!(received.is_err(), "something came: {received:?}");
        assert!(self.received.is_empty(), "{:?}", String::from_utf8_lossy(&self.received));
    }

    /// Returns all bytes until the server ends or aborts the connection.
    pub async fn rest(&mut self) -> Vec<u8> {
        while self.receive_more().await.is_ok() {}
        std::mem::take(&mut self.received)
    }

    /// Ends its own side of the control connection, as the kernel does for a killed process.
    pub fn end(&mut self) {
        self.stream.tx.finish();
    }

    /// Returns the server's IP address.
    pub fn server_ip(&self) -> IpAddr {
        match self.stream.peer() {
            Peer::Ip(ip, _) => *ip,
            Peer::Unix => unreachable!("FTP is served over TCP"),
        }
    }

    /// Returns this client's IP address.
    pub fn own_ip(&self) -> IpAddr {
        match self.stream.local().expect("an address") {
            Address::Ip(at) => at.ip(),
            Address::Unix(_) => unreachable!("FTP is served over TCP"),
        }
    }

    /// Prepares a data connection in this client's mode.
    pub async fn data(&mut self) -> Data {
        self.try_data().await.expect("a data connection")
    }

    /// As [`FtpClient::data`].
    ///
    /// # Errors
    /// Returns the error that broke the control connection, or that of the data connection.
    pub async fn try_data(&mut self) -> io::Result<Data> {
        match self.mode {
            DataMode::Passive => {
                let at = self.pasv().await?;
                Data::to(&self.io, at).await.map(|data| data.over(self.data_tls.as_ref()))
            }
            DataMode::Extended => {
                let at = self.epsv().await?;
                Data::to(&self.io, at).await.map(|data| data.over(self.data_tls.as_ref()))
            }
            DataMode::Active | DataMode::ExtendedActive => self.active().await,
        }
    }

    /// Sends PASV, and returns the address on which the server listens.
    ///
    /// # Errors
    /// Returns the error that broke the connection.
    pub async fn pasv(&mut self) -> io::Result<SocketAddr> {
        let text = self.try_command("PASV").await?.expect(227).text();
        let inside = text.split(['(', ')']).nth(1).expect("parentheses");
        let numbers: Vec<u8> = inside.split(',').map(|number| number.parse().expect("a byte")).collect();
        let numbers: [u8; 6] = numbers.try_into().expect("six numbers");
        let ip: [u8; 4] = numbers[..4].try_into().expect("four");
        Ok((ip, u16::from_be_bytes([numbers[4], numbers[5]])).into())
    }

    /// Sends EPSV, and returns the address on which the server listens.
    ///
    /// # Errors
    /// Returns the error that broke the connection.
    pub async fn epsv(&mut self) -> io::Result<SocketAddr> {
        let text = self.try_command("EPSV").await?.expect(229).text();
        let port = text.split("|||").nth(1).and_then(|rest| rest.split('|').next());
        Ok((self.server_ip(), port.expect("a port").parse().expect("a number")).into())
    }

    async fn active(&mut self) -> io::Result<Data> {
        let listener = self.io.listen(&Address::Ip((self.own_ip(), 0).into()))?;
        let Address::Ip(at) = listener.address().clone() else { unreachable!("it is TCP") };
        let line = if self.mode == DataMode::Active { port(at) } else { eprt(at) };
        self.try_command(line).await?.expect(200);
        Ok(Data::waiting(&self.io, listener).over(self.data_tls.as_ref()))
    }

    /// Prepares a data connection and starts a transfer by `line`.
    pub async fn begin(&mut self, line: impl AsRef<[u8]>) -> Data {
        let data = self.data().await;
        self.command(line).await.expect(150);
        data
    }

    /// Receives the data of a successful transfer that `line` starts.
    pub async fn fetch(&mut self, line: impl AsRef<[u8]>) -> Vec<u8> {
        let mut data = self.begin(line).await;
        let all = data.all().await.expect("a whole transfer");
        let (is_encrypted, ended) = (data.is_encrypted(), data.finish().await);
        // After the server's end of TLS, the server may close before it has received the client's.
        assert!(is_encrypted || ended.is_ok(), "a clean end: {ended:?}");
        self.reply().await.expect(226);
        all
    }

    /// As [`FtpClient::fetch`], as lines of text.
    pub async fn fetch_lines(&mut self, line: impl AsRef<[u8]>) -> Vec<String> {
        let text = String::from_utf8(self.fetch(line).await).expect("UTF-8");
        assert!(text.is_empty() || text.ends_with("\r\n"), "{text:?}");
        text.split_terminator("\r\n").map(str::to_owned).collect()
    }

    pub async fn retr(&mut self, path: &str) -> Vec<u8> {
        self.fetch(format!("RETR {path}")).await
    }

    /// Sends a file by `line` (STOR, APPE …), and returns the last answer.
    pub async fn send(&mut self, line: impl AsRef<[u8]>, bytes: impl Into<Vec<u8>>) -> FtpAnswer {
        let mut data = self.begin(line).await;
        // The server may refuse in the middle: the reason follows on the control connection.
        if data.send(bytes).await.is_ok() {
            let _ = data.finish().await;
        }
        self.reply().await
    }

    pub async fn stor(&mut self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.send(format!("STOR {path}"), bytes).await.expect(226);
    }

    /// Sends a transfer command that the server refuses before any data, and returns the answer.
    pub async fn refused(&mut self, line: impl AsRef<[u8]>) -> FtpAnswer {
        let _unused = self.data().await;
        self.command(line).await
    }
}

/// `PORT h1,h2,h3,h4,p1,p2`.
fn port(at: SocketAddr) -> String {
    let [high, low] = at.port().to_be_bytes();
    format!("PORT {},{high},{low}", at.ip().to_string().replace('.', ","))
}

/// `EPRT |1|ADDRESS|PORT|`.
fn eprt(at: SocketAddr) -> String {
    let protocol = if at.is_ipv4() { 1 } else { 2 };
    format!("EPRT |{protocol}|{}|{}|", at.ip(), at.port())
}

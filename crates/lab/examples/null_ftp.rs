//! An FTP server that only answers: the upper bound for any server that handles one connection at a time.
//!
//! It has no accounts and no files: every password is accepted, and every file is the same kilobyte. It
//! serves one control connection at a time, and uses one port for all of its data connections. It is only
//! for measurements on loopback.

#![expect(clippy::print_stderr, reason = "a tool that people start by hand")]

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

const FILE: [u8; 1000] = [b'n'; 1000];

fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok());
    let Some(port) = port else {
        eprintln!("usage: null_ftp PORT");
        std::process::exit(2);
    };
    for client in TcpListener::bind((Ipv4Addr::LOCALHOST, port))?.incoming() {
        if let Err(error) = client.and_then(session) {
            eprintln!("null_ftp: a session broke off: {error}");
        }
    }
    Ok(())
}

fn session(mut control: TcpStream) -> std::io::Result<()> {
    control.set_nodelay(true)?;
    let (mut listener, mut passive) = (None, String::new());
    control.write_all(b"220 Null\r\n")?;
    for line in BufReader::new(control.try_clone()?).lines() {
        let answer = match (line?.split(' ').next(), &listener) {
            (Some("USER"), _) => "331 Who\r\n",
            (Some("PASS"), _) => "230 In\r\n",
            (Some("TYPE"), _) => "200 So\r\n",
            (Some("PASV"), Some(_)) => &passive,
            (Some("PASV"), None) => {
                let (bound, port) = listen()?;
                let [high, low] = port.to_be_bytes();
                (listener, passive) = (Some(bound), format!("227 Here (127,0,0,1,{high},{low})\r\n"));
                &passive
            }
            (Some("RETR"), Some(listener)) => {
                listener.accept()?.0.write_all(&FILE)?;
                "150 It comes\r\n226 It came\r\n"
            }
            (Some("QUIT"), _) => "221 Bye\r\n",
            _ => "502 No\r\n",
        };
        control.write_all(answer.as_bytes())?;
    }
    Ok(())
}

fn listen() -> std::io::Result<(TcpListener, u16)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

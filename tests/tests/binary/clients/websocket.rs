//! WebSocket through the proxy: a client and an echo server of aiohttp.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};

use plimsoll_tests::binary::{EngineKind, tool};
use plimsoll_tests::on_each_engine;

use super::{are_there, script};
use crate::reverse_proxy::proxy;

/// The echo server, until it is dropped.
struct Echo(Child);

impl Echo {
    /// Starts it, and returns its port.
    fn start() -> (Echo, u16) {
        let mut python = script("websocket_echo.py");
        let mut child = python.process_group(0).stdout(Stdio::piped()).spawn().unwrap();
        let (stdout, echo) = (child.stdout.take().unwrap(), Echo(child));
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        (echo, line.trim().parse().unwrap())
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        tool::kill(&mut self.0);
        let _ = self.0.wait();
    }
}

fn messages_pass_through_the_proxy(kind: EngineKind) {
    if !are_there() {
        return;
    }
    let (_echo, port) = Echo::start();
    let proxy = proxy(kind, &["--origin", &format!("http://127.0.0.1:{port}")]);
    let done = tool::run(script("websocket_client.py").arg(proxy.url("/echo"))).well();
    assert_eq!(done.text(), "done\n", "{}", done.stderr);
}

on_each_engine!(forks: messages_pass_through_the_proxy);

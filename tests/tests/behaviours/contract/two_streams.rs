//! The contract under FTP's use: a control stream and a data stream, and an abort in the middle.

use std::rc::Rc;
use std::time::Duration;

use plimsoll_io::{Address, Either, Handler, Io, Peer, Segment, Stream, Want, select};
use plimsoll_tests::service::Each;
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Client, Protocol, Scenario, Scene, behaviours};

use super::acts::too_much;

fn scenario() -> Scenario {
    Scenario { protocol: Protocol::Of(handler), ..Scenario::default() }
}

fn handler(io: Io) -> Rc<dyn Handler> {
    Rc::new(Each(io, control))
}

/// Returns the next line, without its end; lines of the tests are short.
async fn line(stream: &mut Stream, held: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = held.iter().position(|&byte| byte == b'\n') {
            let line = held.drain(..=end).collect::<Vec<u8>>();
            return Some(String::from_utf8_lossy(&line).trim().to_owned());
        }
        held.extend_from_slice(&stream.rx.recv(Want::Head).await.ok()??);
    }
}

/// `SEND n`, `TAKE` and `ABORT`, each answered by lines.
async fn control(io: Io, mut stream: Stream) {
    let mut held = Vec::new();
    while let Some(command) = line(&mut stream, &mut held).await {
        match command.split_once(' ') {
            Some(("SEND", len)) => {
                let len = len.parse().unwrap();
                let done = transfer(&io, &mut stream, &mut held, |data| send(data, len)).await;
                stream.tx.push(Segment::Owned(done));
            }
            _ if command == "TAKE" => {
                let done = transfer(&io, &mut stream, &mut held, take).await;
                stream.tx.push(Segment::Owned(done));
            }
            _ => stream.tx.push(Segment::Static(b"nothing to abort\n")),
        }
    }
    let _ = stream.finish().await;
}

/// Opens a data stream as passive mode does and moves bytes over it, unless the control stream says ABORT.
async fn transfer<F>(
    io: &Io,
    control: &mut Stream,
    held: &mut Vec<u8>,
    moving: impl Fn(Stream) -> F,
) -> Vec<u8>
where
    F: Future<Output = std::io::Result<usize>>,
{
    let Address::Ip(here) = control.local().unwrap() else { panic!("a TCP address") };
    let mut listener = io.listen(&Address::Ip((here.ip(), 0).into())).unwrap();
    let Address::Ip(at) = listener.address() else { panic!("a TCP address") };
    control.tx.push(Segment::Owned(format!("port {}\n", at.port()).into_bytes()));
    let peer = control.peer().clone();
    let moved = async {
        let data = listener.accept().await?;
        assert!(same_host(data.peer(), &peer), "data goes to the control stream's peer alone");
        moving(data).await
    };
    match select(moved, line(control, held)).await {
        Either::Left(Ok(bytes)) => format!("done {bytes}\n").into_bytes(),
        Either::Left(Err(error)) => format!("failed {:?}\n", error.kind()).into_bytes(),
        Either::Right(_) => b"aborted\n".to_vec(),
    }
}

fn same_host(one: &Peer, other: &Peer) -> bool {
    matches!((one, other), (Peer::Ip(one, _), Peer::Ip(other, _)) if one == other)
}

async fn send(mut data: Stream, len: usize) -> std::io::Result<usize> {
    for part in noise(1, len).chunks(60_000) {
        data.tx.push(Segment::Owned(part.to_vec()));
        data.tx.drain(60_000).await?;
    }
    data.finish().await?;
    Ok(len)
}

async fn take(mut data: Stream) -> std::io::Result<usize> {
    let mut taken = 0;
    while let Some(lease) = data.rx.recv(Want::Body).await? {
        taken += lease.len();
    }
    data.finish().await?;
    Ok(taken)
}

/// A client's control stream.
struct Control {
    stream: Stream,
    held: Vec<u8>,
}

impl Control {
    async fn new(scene: &Scene) -> Control {
        Control { stream: scene.io.connect(&scene.at).await.unwrap(), held: Vec::new() }
    }

    fn send_line(&mut self, line: &str) {
        self.stream.tx.push(Segment::Owned(format!("{line}\n").into_bytes()));
    }

    async fn receive_line(&mut self) -> String {
        line(&mut self.stream, &mut self.held).await.expect("a line")
    }

    /// Connects to the data port that the server announces.
    async fn data(&mut self, scene: &Scene) -> Client {
        let port = self.receive_line().await.strip_prefix("port ").unwrap().parse().unwrap();
        let Address::Ip(server) = scene.at else { panic!("a TCP address") };
        let at = Address::Ip((server.ip(), port).into());
        Client::new(&scene.io, scene.io.connect(&at).await.unwrap())
    }
}

async fn bytes_move_over_the_data_stream_and_the_control_stream_goes_on(scene: Scene) {
    let mut control = Control::new(&scene).await;
    for len in [0, 1, 50_000] {
        control.send_line(&format!("SEND {len}"));
        let mut data = control.data(&scene).await;
        let mut received = Vec::new();
        while let Some(lease) = data.receive().await.expect("a clean end") {
            received.extend_from_slice(&lease);
        }
        assert!(received == noise(1, len));
        data.stream.tx.finish();
        assert_eq!(control.receive_line().await, format!("done {len}"));
    }
}

async fn an_abort_in_the_middle_ends_the_data_stream_and_not_the_control_stream(scene: Scene) {
    let mut control = Control::new(&scene).await;
    let len = too_much(&scene);
    for _ in 0..2 {
        control.send_line(&format!("SEND {len}"));
        let mut data = control.data(&scene).await;
        data.receive().await.unwrap().expect("some bytes");
        control.send_line("ABORT");
        assert_eq!(control.receive_line().await, "aborted");
        assert!(data.expect_abort().await.len() < len);
    }
    control.send_line("ABORT");
    assert_eq!(control.receive_line().await, "nothing to abort");
}

async fn an_abort_before_the_data_stream_is_connected_is_heard(scene: Scene) {
    let mut control = Control::new(&scene).await;
    control.send_line("TAKE");
    assert!(control.receive_line().await.starts_with("port "));
    control.send_line("ABORT");
    assert_eq!(control.receive_line().await, "aborted");
}

async fn a_data_stream_that_the_client_drops_fails_that_transfer_alone(scene: Scene) {
    let mut control = Control::new(&scene).await;
    control.send_line("TAKE");
    let mut data = control.data(&scene).await;
    data.push(noise(2, 100));
    scene.io.sleep(Duration::from_millis(20)).await;
    drop(data);
    assert!(control.receive_line().await.starts_with("failed"));
    control.send_line("TAKE");
    let mut data = control.data(&scene).await;
    data.send(noise(2, 100)).await;
    data.stream.tx.finish();
    data.expect_end().await;
    assert_eq!(control.receive_line().await, "done 100");
}

async fn a_control_stream_that_is_dropped_takes_its_data_stream_with_it(scene: Scene) {
    let mut control = Control::new(&scene).await;
    control.send_line(&format!("SEND {}", too_much(&scene)));
    let mut data = control.data(&scene).await;
    data.receive().await.unwrap().expect("some bytes");
    drop(control);
    data.expect_abort().await;
    drop(data);
    scene.until(|| (scene.connections)() == 0).await;
}

behaviours!(
    scenario;
    bytes_move_over_the_data_stream_and_the_control_stream_goes_on,
    an_abort_in_the_middle_ends_the_data_stream_and_not_the_control_stream,
    an_abort_before_the_data_stream_is_connected_is_heard,
    a_data_stream_that_the_client_drops_fails_that_transfer_alone,
    a_control_stream_that_is_dropped_takes_its_data_stream_with_it,
);

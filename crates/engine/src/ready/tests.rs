//! What the readiness socket leaves with the system.

use plimsoll_io::limits::PIPED_BYTES_MIN;
use plimsoll_io::{Address, Io, Segment, Stream, Want, join};

use crate::block_on;
use crate::serve::Kind;

const BODY_BYTES: usize = 300_000;

/// The two ends of a connection by way of `at`.
async fn connection(io: &Io, at: &Address) -> (Stream, Stream) {
    let mut listener = io.listen(at).unwrap();
    let address = listener.address().clone();
    let (near, far) = join(io.connect(&address), listener.accept()).await;
    (near.unwrap(), far.unwrap())
}

fn body() -> Vec<u8> {
    (0..BODY_BYTES).map(|at| (at / 7 % 251).to_le_bytes()[0]).collect()
}

/// Sends a body from a client to a server that passes it on to another client, and says whether its first
/// bytes stayed with the system on the way.
async fn pass_on(io: Io, from: Address) -> bool {
    let (mut sender, mut near) = connection(&io, &from).await;
    let (mut far, mut receiver) = connection(&io, &"127.0.0.1:0".parse().unwrap()).await;
    sender.tx.push(Segment::Owned(body()));
    let passing = async {
        let (mut left, mut is_piped) = (BODY_BYTES as u64, None);
        while left > 0 {
            let segment = near.rx.recv_for(&far.tx, left).await.unwrap().expect("not the end");
            is_piped.get_or_insert(matches!(segment, Segment::Piped(_)));
            left -= segment.len();
            far.tx.push(segment);
            far.tx.drain(PIPED_BYTES_MIN).await.unwrap();
        }
        far.tx.finish();
        is_piped == Some(true)
    };
    let receiving = async {
        let mut received = Vec::new();
        while let Some(lease) = receiver.rx.recv(Want::Body).await.unwrap() {
            received.extend_from_slice(&lease);
        }
        received
    };
    let (is_piped, received) = join(passing, receiving).await;
    assert!(received == body());
    is_piped
}

#[test]
fn what_is_passed_on_stays_with_the_system_from_sockets_of_both_kinds() {
    let folder = tempfile::tempdir().unwrap();
    for kind in [Kind::Epoll, Kind::Thread] {
        let unix = Address::Unix(folder.path().join(kind.to_string()));
        for from in ["127.0.0.1:0".parse().unwrap(), unix] {
            let told = format!("{kind} from {from}");
            assert!(block_on(kind, |io| pass_on(io, from)).unwrap(), "{told}");
        }
    }
}

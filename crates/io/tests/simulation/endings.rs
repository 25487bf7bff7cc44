//! The end of a connection: dropping aborts, finishing delivers.

use std::io;

use plimsoll_io::sim::{Faults, PER_MILLE, seeds};
use plimsoll_io::{Segment, Want};

use crate::{SECOND, at, bytes, collect, converse, owned, receive_all, two_hosts};

#[test]
fn finishing_delivers_everything_and_a_clean_end() {
    for seed in seeds(100) {
        let (sim, near, far) = two_hosts(seed, Faults::splits());
        let ((), (received, _)) = converse(
            &sim,
            (&near, &far),
            async |mut stream| {
                stream.tx.push(Segment::Owned(bytes(3000)));
                stream.finish().await.unwrap();
            },
            async |stream| collect(stream).await.unwrap(),
        );
        assert_eq!(received, bytes(3000));
    }
}

#[test]
fn dropping_is_never_seen_as_a_clean_end() {
    for seed in seeds(200) {
        let (sim, near, far) = two_hosts(seed, Faults::splits());
        let drained = seed % 2 == 0;
        let ((), received) = converse(
            &sim,
            (&near, &far),
            async move |mut stream| {
                stream.tx.push(owned(b"HTTP/1.1 200 OK\r\n\r\n"));
                if drained {
                    stream.tx.drain(0).await.unwrap();
                }
            },
            async |mut stream| receive_all(&mut stream.rx).await,
        );
        assert_eq!(received.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }
}

#[test]
fn dropping_after_finish_delivers_what_was_taken_and_otherwise_is_seen() {
    let (mut whole, mut broken) = (0, 0);
    for seed in 0..100 {
        let (sim, near, far) = two_hosts(seed, Faults::splits());
        let ((), received) = converse(
            &sim,
            (&near, &far),
            async |mut stream| {
                stream.tx.push(Segment::Owned(bytes(500)));
                stream.tx.finish();
            },
            async |mut stream| receive_all(&mut stream.rx).await,
        );
        match received {
            Ok((received, _)) => {
                assert_eq!(received, bytes(500));
                whole += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
                broken += 1;
            }
        }
    }
    assert!(whole > 10 && broken > 10, "{whole} whole, {broken} broken");
}

#[test]
fn a_half_closed_stream_still_receives() {
    for seed in seeds(50) {
        let (sim, near, far) = two_hosts(seed, Faults::splits());
        let io = far.io();
        let (answer, ()) = converse(
            &sim,
            (&near, &far),
            async |mut stream| {
                stream.tx.push(owned(b"question"));
                stream.tx.finish();
                receive_all(&mut stream.rx).await.unwrap().0
            },
            async move |mut stream| {
                let (question, _) = receive_all(&mut stream.rx).await.unwrap();
                assert_eq!(question, b"question");
                io.sleep(SECOND).await;
                stream.tx.push(owned(b"answer"));
                stream.finish().await.unwrap();
            },
        );
        assert_eq!(answer, b"answer");
    }
}

#[test]
fn the_end_of_a_stream_is_returned_by_every_later_receive() {
    let (sim, near, far) = two_hosts(0, Faults::splits());
    converse(
        &sim,
        (&near, &far),
        async |mut stream| stream.finish().await.unwrap(),
        async |mut stream| {
            for _ in 0..3 {
                assert!(stream.rx.recv(Want::Head).await.unwrap().is_none());
            }
            stream.tx.finish();
        },
    );
}

/// Returns what a peer receives if its stream was answered, finished and dropped with its last bytes
/// unread.
fn refused_upload(seed: u64, lingers: bool) -> io::Result<Vec<u8>> {
    let (sim, near, far) = two_hosts(seed, Faults::splits());
    let io = far.io();
    let (seen, ()) = converse(
        &sim,
        (&near, &far),
        async |mut stream| {
            stream.tx.push(Segment::Owned(bytes(2000)));
            stream.tx.finish();
            receive_all(&mut stream.rx).await.map(|(received, _)| received)
        },
        async move |mut stream| {
            stream.rx.recv(Want::Head).await.unwrap();
            stream.tx.push(owned(b"413"));
            if lingers {
                // The peer may drop the rest of its upload once it has the response.
                let _ = stream.finish().await;
                return;
            }
            stream.tx.finish();
            stream.tx.drain(0).await.unwrap();
            io.yield_now().await;
        },
    );
    seen
}

#[test]
fn closing_on_unread_bytes_may_take_the_answer_from_the_peer() {
    let lost = (0..100).filter(|seed| refused_upload(*seed, false).is_err()).count();
    assert!(lost > 10, "{lost} of 100");
}

/// Returns the bytes and the error that a peer receives if its stream was answered and closed with a
/// byte of its own unread. The peer starts to receive a second after that, one lease at a time.
fn closed_on_unread(reset_discards: u16) -> (Option<Vec<u8>>, io::ErrorKind) {
    let (sim, near, far) = two_hosts(0, Faults { reset_discards, ..Faults::none() });
    let (near_io, far_io) = (near.io(), far.io());
    let (seen, ()) = converse(
        &sim,
        (&near, &far),
        async move |mut stream| {
            stream.tx.push(owned(b"x"));
            near_io.sleep(SECOND * 2).await;
            let mut received = None;
            loop {
                match stream.rx.recv(Want::Head).await {
                    Ok(lease) => received = Some(lease.unwrap().to_vec()),
                    Err(error) => return (received, error.kind()),
                }
            }
        },
        async move |mut stream| {
            far_io.sleep(SECOND).await;
            stream.tx.push(owned(b"413"));
            stream.tx.finish();
            stream.tx.drain(0).await.unwrap();
        },
    );
    seen
}

#[test]
fn a_reset_may_leave_or_take_what_has_arrived_and_comes_after_it() {
    let reset = io::ErrorKind::ConnectionReset;
    assert_eq!(closed_on_unread(0), (Some(b"413".to_vec()), reset));
    assert_eq!(closed_on_unread(PER_MILLE), (None, reset));
}

#[test]
fn bytes_that_come_after_a_clean_close_are_answered_with_a_reset() {
    let (sim, near, far) = two_hosts(0, Faults::none());
    let io = near.io();
    converse(
        &sim,
        (&near, &far),
        async move |mut stream| {
            assert!(stream.rx.recv(Want::Head).await.unwrap().is_none());
            stream.tx.push(owned(b"late"));
            stream.tx.drain(0).await.unwrap();
            io.sleep(SECOND).await;
            stream.tx.push(owned(b"later"));
            stream.tx.drain(0).await.unwrap_err();
        },
        async |mut stream| {
            stream.tx.finish();
            stream.tx.drain(0).await.unwrap();
        },
    );
}

#[test]
fn lingering_gets_the_answer_to_the_peer() {
    for seed in seeds(100) {
        assert_eq!(refused_upload(seed, true).unwrap(), b"413");
    }
}

#[test]
fn an_error_of_sending_sticks() {
    for seed in seeds(50) {
        let (sim, near, far) = two_hosts(seed, Faults::splits());
        let io = near.io();
        converse(
            &sim,
            (&near, &far),
            async move |mut stream| {
                io.sleep(SECOND).await;
                stream.tx.push(owned(b"too late"));
                for _ in 0..3 {
                    let kind = stream.tx.drain(0).await.unwrap_err().kind();
                    assert!(matches!(kind, io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe));
                    stream.tx.push(owned(b"in vain"));
                }
                assert_eq!(stream.tx.unsent(), 0);
                assert!(stream.rx.recv(Want::Head).await.is_err());
                assert!(stream.rx.recv(Want::Head).await.is_err());
            },
            async |stream| drop(stream),
        );
    }
}

#[test]
fn pushing_after_finish_is_an_error_and_not_more_bytes() {
    let (sim, near, far) = two_hosts(0, Faults::none());
    let ((), received) = converse(
        &sim,
        (&near, &far),
        async |mut stream| {
            stream.finish().await.unwrap();
            stream.tx.push(owned(b"more"));
            assert_eq!(stream.tx.drain(0).await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        },
        async |stream| collect(stream).await.unwrap().0,
    );
    assert_eq!(received, b"");
}

#[test]
fn a_connection_queued_at_a_dropped_listener_is_reset() {
    let (sim, near, far) = two_hosts(0, Faults::splits());
    let (io, listener) = (near.io(), far.io().listen(&at()).unwrap());
    sim.run(&near, async move {
        let mut stream = io.connect(&at()).await.unwrap();
        drop(listener);
        let reset = stream.rx.recv(Want::Head).await.unwrap_err();
        assert_eq!(reset.kind(), io::ErrorKind::ConnectionReset);
        assert!(io.connect(&at()).await.is_err());
    });
}

#[test]
fn resets_end_both_sides_with_an_error_or_not_at_all() {
    let mut reset = 0;
    for seed in 0..200 {
        let (sim, near, far) = two_hosts(seed, Faults::resets(30));
        let (sent, received) = converse(
            &sim,
            (&near, &far),
            async |mut stream| {
                stream.tx.push(Segment::Owned(bytes(500)));
                stream.finish().await
            },
            async |mut stream| receive_all(&mut stream.rx).await,
        );
        match received {
            Ok((received, _)) => assert_eq!(received, bytes(500)),
            Err(_) => {
                assert!(sent.is_err());
                reset += 1;
            }
        }
        assert_eq!(sim.connections_open(), 0);
    }
    assert!((20..180).contains(&reset), "{reset} of 200");
}

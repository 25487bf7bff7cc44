//! Bytes between two hosts: complete, in order, and stopped by flow control while the receiver does not
//! read.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use plimsoll_io::limits::{BODY_BLOCK_BYTES, HEAD_BLOCK_BYTES};
use plimsoll_io::sim::{Faults, WINDOW_BYTES_MAX, seeds};
use plimsoll_io::{Address, Peer, Segment, Want, join};

use crate::{SECOND, at, bytes, collect, converse, owned, receive_all, two_hosts};

#[test]
fn all_bytes_arrive_in_order_however_they_are_split() {
    for seed in seeds(200) {
        let (sim, near, far) = two_hosts(seed, Faults::splits());
        let sent = bytes(usize::try_from(seed).unwrap() * 97);
        let (pushed, back) = (sent.clone(), sent.iter().rev().copied().collect::<Vec<_>>());
        let answer = back.clone();
        let (answered, received) = converse(
            &sim,
            (&near, &far),
            async move |mut stream| {
                for part in pushed.chunks(700) {
                    stream.tx.push(owned(part));
                    stream.tx.drain(1000).await.unwrap();
                }
                stream.tx.finish();
                receive_all(&mut stream.rx).await.unwrap().0
            },
            async move |mut stream| {
                let (received, _) = receive_all(&mut stream.rx).await.unwrap();
                stream.tx.push(owned(&answer));
                stream.finish().await.unwrap();
                received
            },
        );
        assert!(received == sent && answered == back, "seed {seed}");
        assert_eq!(sim.connections_open(), 0);
        assert_eq!(near.leased_bytes() + far.leased_bytes(), 0);
    }
}

#[test]
fn a_mebibyte_passes_a_window_that_starts_with_a_byte() {
    for seed in seeds(10) {
        let (sim, near, far) = two_hosts(seed, Faults::splits());
        let ((), (received, _)) = converse(
            &sim,
            (&near, &far),
            async |mut stream| {
                stream.tx.push(Segment::Owned(bytes(1 << 20)));
                stream.finish().await.unwrap();
            },
            async |stream| collect(stream).await.unwrap(),
        );
        assert!(received == bytes(1 << 20));
    }
}

#[test]
fn without_faults_what_was_pushed_in_one_turn_is_received_at_once() {
    let (sim, near, far) = two_hosts(0, Faults::none());
    let ((), received) = converse(
        &sim,
        (&near, &far),
        async |mut stream| {
            stream.tx.push(Segment::Static(b"HTTP/1.1 200 OK\r\n\r\n"));
            stream.tx.push(owned(b"hello"));
            stream.finish().await.unwrap();
        },
        async |stream| collect(stream).await.unwrap(),
    );
    assert_eq!(received, (b"HTTP/1.1 200 OK\r\n\r\nhello".to_vec(), 1));
}

#[test]
fn a_chosen_split_cuts_there_and_nowhere_else() {
    for split in 1..5 {
        let (sim, near, far) = two_hosts(0, Faults::split_at(split));
        let ((), parts) = converse(
            &sim,
            (&near, &far),
            async |mut stream| {
                stream.tx.push(owned(b"USER"));
                stream.tx.push(owned(b" x"));
                stream.finish().await.unwrap();
            },
            async |mut stream| {
                let mut parts = Vec::new();
                while let Some(lease) = stream.rx.recv(Want::Head).await.unwrap() {
                    parts.push(lease.to_vec());
                }
                stream.tx.finish();
                parts
            },
        );
        let (first, rest) = b"USER x".split_at(split);
        assert_eq!(parts, [first.to_vec(), rest.to_vec()]);
    }
}

#[test]
fn an_answer_is_sent_while_its_task_does_something_else() {
    let (sim, near, far) = two_hosts(0, Faults::splits());
    let io = near.io();
    let ((), received) = converse(
        &sim,
        (&near, &far),
        async move |mut stream| {
            stream.tx.push(owned(b"220 ready\r\n"));
            io.sleep(SECOND * 60).await;
        },
        async |mut stream| stream.rx.recv(Want::Head).await.unwrap().unwrap().len(),
    );
    assert!(received > 0);
}

#[test]
fn a_receiver_that_does_not_receive_blocks_the_sender() {
    for seed in seeds(50) {
        let (sim, near, far) = two_hosts(seed, Faults::splits());
        let sent = Rc::new(Cell::new(0));
        let (count, near_io, far_io) = (Rc::clone(&sent), near.io(), far.io());
        converse(
            &sim,
            (&near, &far),
            async move |mut stream| {
                let deadline = near_io.deadline();
                deadline.after(SECOND * 30);
                while let Ok(drained) = deadline.within(stream.tx.drain(0)).await {
                    drained.unwrap();
                    stream.tx.push(Segment::Owned(vec![0; 1000]));
                    count.set(count.get() + 1000);
                }
                assert!(stream.tx.unsent() > 0);
            },
            async move |stream| {
                far_io.sleep(SECOND * 60).await;
                drop(stream);
            },
        );
        assert!((1000..=WINDOW_BYTES_MAX + 1000).contains(&sent.get()), "{} bytes", sent.get());
        assert_eq!(far.leased_bytes(), 0);
    }
}

#[test]
fn a_lease_is_of_the_size_that_was_wanted() {
    let (sim, near, far) = two_hosts(0, Faults::none());
    converse(
        &sim,
        (&near, &far),
        async |mut stream| {
            stream.tx.push(Segment::Owned(bytes(50_000)));
            stream.finish().await.unwrap();
        },
        async |mut stream| {
            let head = stream.rx.recv(Want::Head).await.unwrap().unwrap();
            let body = stream.rx.recv(Want::Body).await.unwrap().unwrap();
            assert_eq!((head.len(), head.capacity()), (HEAD_BLOCK_BYTES, HEAD_BLOCK_BYTES));
            assert_eq!((body.len(), body.capacity()), (50_000 - HEAD_BLOCK_BYTES, BODY_BLOCK_BYTES));
            stream.finish().await.unwrap();
        },
    );
}

#[test]
fn a_received_lease_can_be_sent_on() {
    for seed in seeds(50) {
        let (sim, near, far) = two_hosts(seed, Faults::splits());
        let (echoed, ()) = converse(
            &sim,
            (&near, &far),
            async |stream| {
                let (mut rx, mut tx) = stream.split();
                tx.push(Segment::Shared(bytes(5000).into()));
                tx.finish();
                receive_all(&mut rx).await.unwrap().0
            },
            crate::echo,
        );
        assert_eq!(echoed, bytes(5000));
    }
}

#[test]
fn both_directions_go_on_at_once() {
    let (sim, near, far) = two_hosts(3, Faults::splits());
    let flood = async |stream: plimsoll_io::Stream| {
        let (mut rx, mut tx) = stream.split();
        tx.push(Segment::Owned(bytes(300_000)));
        tx.finish();
        join(receive_all(&mut rx), tx.drain(0)).await.0.unwrap().0.len()
    };
    let received = converse(&sim, (&near, &far), flood, flood);
    assert_eq!(received, (300_000, 300_000));
}

#[test]
fn connecting_without_a_listener_is_refused() {
    let (sim, near, _) = two_hosts(0, Faults::splits());
    let io = near.io();
    sim.run(&near, async move {
        for to in [at(), Address::Unix("/run/nobody".into())] {
            let refused = io.connect(&to).await.map(drop).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        }
        assert!(io.now().since_start() > SECOND / 10_000);
    });
    assert_eq!(sim.connections_open(), 0);
}

#[test]
fn a_connection_is_connected_before_it_is_accepted() {
    let (sim, near, far) = two_hosts(0, Faults::splits());
    let (near_io, mut listener) = (near.io(), far.io().listen(&at()).unwrap());
    sim.run(&near, async move {
        let mut stream = near_io.connect(&at()).await.unwrap();
        stream.tx.push(owned(b"early"));
        stream.tx.finish();
        let (bytes, _) = receive_all(&mut listener.accept().await.unwrap().rx).await.unwrap();
        assert_eq!(bytes, b"early");
    });
}

#[test]
fn an_address_is_listened_at_once_and_free_again_afterwards() {
    let (_sim, near, far) = two_hosts(0, Faults::none());
    let listener = near.io().listen(&at()).unwrap();
    let taken = far.io().listen(&at()).map(drop).unwrap_err();
    assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    drop(listener);
    far.io().listen(&at()).unwrap();
}

#[test]
fn port_zero_is_a_free_port_and_anothers_address_is_refused() {
    let (_sim, near, far) = two_hosts(0, Faults::none());
    let any = ":0".parse().unwrap();
    let (one, two) = (near.io().listen(&any).unwrap(), near.io().listen(&any).unwrap());
    assert_ne!(one.address(), two.address());
    let theirs = format!("{}:80", far.ip()).parse().unwrap();
    let refused = near.io().listen(&theirs).map(drop).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::AddrNotAvailable);
}

#[test]
fn each_end_knows_the_other() {
    let (sim, near, far) = two_hosts(0, Faults::none());
    let everywhere: Address = "0.0.0.0:80".parse().unwrap();
    let to: Address = format!("{}:80", far.ip()).parse().unwrap();
    let (io, from, mut listener) = (near.io(), near.ip(), far.io().listen(&everywhere).unwrap());
    sim.run(&near, async move {
        let stream = io.connect(&to).await.unwrap();
        assert_eq!(stream.peer().to_string(), "10.0.0.2");
        let accepted = listener.accept().await.unwrap();
        assert!(matches!(accepted.peer(), Peer::Ip(ip, _) if *ip == from));
    });
}

//! HTTP over the channel: the same answers as over a socket, with large files passed as open descriptors.

use plimsoll_channel::{Bodies, Count};
use plimsoll_io::{Segment, Want};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Client, Scenario, Scene, Tree, behaviours};

/// Sizes of files: copied into the ring, at the limit of that, and larger than the rings.
const SIZES: [usize; 6] = [0, 1, 5_000, 16 * 1024, 100_000, 1_500_000];
const LARGE: usize = SIZES[5];

fn tree() -> Tree {
    let named = |tree: Tree, size: &usize| tree.file(format!("{size}.bin"), noise(*size as u64, *size));
    SIZES.iter().fold(Tree::new(), named)
}

fn passed() -> Scenario {
    Scenario { tree: tree(), channel: Some(Bodies::Passed), ..Scenario::default() }
}

async fn files_of_every_size_arrive_whole(scene: Scene) {
    let mut client = scene.connect().await;
    // Twice: from the disk, and from the hot cache.
    for size in SIZES.iter().chain(&SIZES) {
        let answer = client.get(&format!("/{size}.bin")).await;
        assert_eq!(answer.status, 200);
        assert!(answer.body == noise(*size as u64, *size), "{size} bytes");
    }
}

async fn ranges_arrive_whole(scene: Scene) {
    let (mut client, whole) = (scene.connect().await, noise(LARGE as u64, LARGE));
    for (first, last) in [(0, 0), (7, 40_006), (LARGE - 20_000, LARGE - 1), (1, LARGE - 1)] {
        let answer =
            client.get_with(&format!("/{LARGE}.bin"), &format!("Range: bytes={first}-{last}\r\n")).await;
        assert_eq!(answer.status, 206);
        assert!(answer.body == whole[first..=last], "{first}-{last}");
    }
}

async fn pipelined_requests_are_answered_in_order(scene: Scene) {
    let mut client = scene.connect().await;
    let request = |size| format!("GET /{size}.bin HTTP/1.1\r\nHost: test\r\n\r\n");
    client.push([5_000, 100_000, 1, 100_000, 16 * 1024].map(request).concat());
    for size in [5_000, 100_000, 1, 100_000, 16 * 1024] {
        assert!(client.answer().await.body == noise(size as u64, size), "{size} bytes");
    }
}

async fn uploads_larger_than_the_ring_arrive_whole(scene: Scene) {
    let mut client = scene.connect().await;
    for size in [0, 1, 8_191, 100_000] {
        let body = noise(9, size);
        let answer = client.ask("PUT", "/test/echo", "", &body).await;
        assert_eq!(answer.status, 200);
        assert!(answer.body == body, "{size} bytes");
    }
}

async fn several_channels_work_at_the_same_time(scene: Scene) {
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(scene.connect().await);
    }
    for client in &mut clients {
        client.push(format!("GET /{LARGE}.bin HTTP/1.1\r\nHost: test\r\n\r\n"));
    }
    for client in clients.iter_mut().rev() {
        assert!(client.answer().await.body == noise(LARGE as u64, LARGE));
    }
}

async fn a_client_that_disconnects_during_a_response_frees_its_connection(scene: Scene) {
    for size in [5_000, LARGE] {
        let mut client = scene.connect().await;
        client.push(format!("GET /{size}.bin HTTP/1.1\r\nHost: test\r\n\r\n").repeat(20));
        client.until_answered().await;
        drop(client);
    }
    scene.until(|| scene.open() == 0).await;
}

async fn a_client_that_disconnects_during_an_upload_frees_its_connection(scene: Scene) {
    let mut client = scene.connect().await;
    client.push("PUT /test/echo HTTP/1.1\r\nHost: test\r\nContent-Length: 1000000\r\n\r\n");
    client.push(noise(3, 50_000));
    scene.until(|| scene.begun() == 1).await;
    drop(client);
    scene.until(|| scene.open() == 0).await;
}

async fn an_order_to_stop_ends_an_idle_channel_cleanly(scene: Scene) {
    let mut client = scene.connect().await;
    client.get("/1.bin").await;
    scene.stop.order();
    client.expect_end().await;
    drop(client);
    scene.until(|| scene.open() == 0).await;
}

async fn a_request_that_asks_for_it_is_the_last(scene: Scene) {
    let mut client = scene.connect().await;
    let answer = client.get_with("/100000.bin", "Connection: close\r\n").await;
    assert!(answer.body == noise(100_000, 100_000));
    client.expect_end().await;
}

behaviours!(passed;
    files_of_every_size_arrive_whole,
    ranges_arrive_whole,
    pipelined_requests_are_answered_in_order,
    uploads_larger_than_the_ring_arrive_whole,
    several_channels_work_at_the_same_time,
    a_client_that_disconnects_during_a_response_frees_its_connection,
    a_client_that_disconnects_during_an_upload_frees_its_connection,
    an_order_to_stop_ends_an_idle_channel_cleanly,
    a_request_that_asks_for_it_is_the_last,
);

mod copied {
    //! The same with every body in the ring, as a client may ask for.
    use super::*;

    fn copied() -> Scenario {
        Scenario { channel: Some(Bodies::Copied), ..passed() }
    }

    async fn no_descriptor_is_passed(scene: Scene) {
        let mut client = scene.connect().await;
        assert!(client.get(&format!("/{LARGE}.bin")).await.body == noise(LARGE as u64, LARGE));
        assert_eq!(scene.channels.get(Count::FilesPassed), 0);
        assert!(scene.channels.get(Count::BytesCopied) >= LARGE as u64);
    }

    behaviours!(copied but process; no_descriptor_is_passed);

    mod alike {
        use super::*;

        behaviours!(copied;
            files_of_every_size_arrive_whole,
            ranges_arrive_whole,
            pipelined_requests_are_answered_in_order,
            uploads_larger_than_the_ring_arrive_whole,
            several_channels_work_at_the_same_time,
            a_client_that_disconnects_during_a_response_frees_its_connection,
        );
    }
}

mod counted {
    //! The server's counts of passed and copied files.
    use super::*;

    async fn a_large_file_is_passed_and_its_bytes_are_not_copied(scene: Scene) {
        let Client { mut stream, .. } = scene.connect().await;
        let request = format!("GET /{LARGE}.bin HTTP/1.1\r\nHost: test\r\n\r\n");
        stream.tx.push(Segment::Owned(request.into_bytes()));
        let (mut head, mut left) = (Vec::new(), LARGE as u64);
        while !head.ends_with(b"\r\n\r\n") {
            let received = stream.rx.recv_for(&stream.tx, 1).await.unwrap().expect("more of the head");
            head.extend_from_slice(received.bytes());
        }
        let whole = noise(LARGE as u64, LARGE);
        while left > 0 {
            // Limited, as a proxy does that sends a part at a time.
            let received = stream.rx.recv_for(&stream.tx, left.min(600_000)).await.unwrap();
            let Some(Segment::File(part)) = received else { panic!("{received:?} instead of a file") };
            assert_eq!(part.range.start, LARGE as u64 - left);
            let length = usize::try_from(part.range.end - part.range.start).unwrap();
            let mut bytes = vec![0; length];
            let read = scene.fs().read_at(&part.file, &mut bytes, part.range.start).unwrap();
            let start = usize::try_from(part.range.start).unwrap();
            assert!(read > 0 && bytes[..read] == whole[start..start + read]);
            left -= length as u64;
        }
        assert_eq!(scene.channels.get(Count::FilesPassed), 1);
        assert_eq!(scene.channels.get(Count::BytesPassed), LARGE as u64);
        assert!(scene.channels.get(Count::BytesCopied) < 4096);
    }

    async fn a_small_file_is_copied(scene: Scene) {
        let mut client = scene.connect().await;
        for _ in 0..3 {
            assert_eq!(client.get("/5000.bin").await.body.len(), 5_000);
        }
        assert_eq!(scene.channels.get(Count::FilesPassed), 0);
    }

    async fn a_part_of_a_passed_file_is_received_as_bytes_by_a_client_that_reads(scene: Scene) {
        let Client { mut stream, .. } = scene.connect().await;
        let request = format!("GET /{LARGE}.bin HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        stream.tx.push(Segment::Owned(request.into_bytes()));
        let mut whole = Vec::new();
        while let Some(lease) = stream.rx.recv(Want::Head).await.unwrap() {
            whole.extend_from_slice(&lease);
        }
        assert!(whole.ends_with(&noise(LARGE as u64, LARGE)));
        assert_eq!(scene.channels.get(Count::FilesPassed), 1);
    }

    async fn a_client_that_waits_is_woken_at_most_once_for_each_response(scene: Scene) {
        let mut client = scene.connect().await;
        for _ in 0..20 {
            assert_eq!(client.get("/1.bin").await.body.len(), 1);
        }
        let wakeups = scene.channels.get(Count::Wakeups);
        assert!(wakeups <= 20, "{wakeups} wake-ups");
    }

    behaviours!(passed but process;
        a_large_file_is_passed_and_its_bytes_are_not_copied,
        a_client_that_waits_is_woken_at_most_once_for_each_response,
        a_small_file_is_copied,
        a_part_of_a_passed_file_is_received_as_bytes_by_a_client_that_reads,
    );
}

mod panicking {
    //! A defect of the server.
    use super::*;

    fn panicking() -> Scenario {
        Scenario { panics: true, ..passed() }
    }

    async fn a_panic_aborts_its_channel_and_no_other(scene: Scene) {
        let (mut one, mut other) = (scene.connect().await, scene.connect().await);
        one.push("GET /test/panic HTTP/1.1\r\nHost: test\r\n\r\n");
        assert!(one.try_answer(true).await.is_err());
        assert_eq!(other.get("/5000.bin").await.body.len(), 5_000);
    }

    behaviours!(panicking; a_panic_aborts_its_channel_and_no_other);
}

mod with_one_slot {
    //! The least that a channel needs: each frame is taken before the next is sent.
    use super::*;

    fn passed_in_one_slot() -> Scenario {
        Scenario { channel_slots: 1, ..passed() }
    }

    fn copied_in_one_slot() -> Scenario {
        Scenario { channel: Some(Bodies::Copied), ..passed_in_one_slot() }
    }

    behaviours!(passed_in_one_slot;
        files_of_every_size_arrive_whole,
        pipelined_requests_are_answered_in_order,
        several_channels_work_at_the_same_time,
        a_client_that_disconnects_during_a_response_frees_its_connection,
        an_order_to_stop_ends_an_idle_channel_cleanly,
    );

    mod counted {
        use super::*;

        async fn a_wait_for_a_slot_is_counted_until_it_ends(scene: Scene) {
            let count = |count| scene.channels.get(count);
            let mut client = scene.connect().await;
            client.push(format!("GET /{LARGE}.bin HTTP/1.1\r\nHost: test\r\n\r\n").repeat(3));
            scene.until(|| count(Count::SlotWaiters) == 1).await;
            assert!(count(Count::FilesPassed) <= 1, "a file has a slot of its own");
            for _ in 0..3 {
                assert!(client.answer().await.body == noise(LARGE as u64, LARGE));
            }
            scene.until(|| count(Count::SlotWaiters) == 0).await;
            assert!(count(Count::SlotWaits) >= 1 && count(Count::FilesPassed) == 3);
            assert!(count(Count::MemoryBytes) > 0);
            drop(client);
            scene.until(|| scene.open() == 0).await;
            assert_eq!(count(Count::MemoryBytes), 0);
        }

        async fn a_client_that_disconnects_ends_the_wait(scene: Scene) {
            let mut client = scene.connect().await;
            client.push(format!("GET /{LARGE}.bin HTTP/1.1\r\nHost: test\r\n\r\n").repeat(3));
            scene.until(|| scene.channels.get(Count::SlotWaiters) == 1).await;
            drop(client);
            scene.until(|| scene.open() == 0).await;
            assert_eq!(scene.channels.get(Count::SlotWaiters), 0);
        }

        behaviours!(passed_in_one_slot but process;
            a_wait_for_a_slot_is_counted_until_it_ends,
            a_client_that_disconnects_ends_the_wait,
        );
    }

    mod copies {
        use super::*;

        behaviours!(copied_in_one_slot;
            files_of_every_size_arrive_whole,
            pipelined_requests_are_answered_in_order,
            uploads_larger_than_the_ring_arrive_whole,
            several_channels_work_at_the_same_time,
            a_client_that_disconnects_during_a_response_frees_its_connection,
        );
    }
}

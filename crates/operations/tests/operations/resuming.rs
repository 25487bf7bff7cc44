//! Uploads that begin at an offset, for protocols that identify an upload by its path alone.

use std::time::Duration;

use plimsoll_auth::{Permission, Permissions};
use plimsoll_operations::{Error, Parents};
use plimsoll_store::Begin;

use crate::{NO_DELETE, NOTHING, of, open, own, run_over, send};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn an_aborted_upload_is_kept_and_resumed_and_each_part_has_its_line() {
    run_over(open, async |scene| {
        let alice = scene.person("alice").await;
        let (operations, place) = (&scene.operations, own("f"));
        let mut first = operations.upload_from(&alice, &place, Begin::Start).await.unwrap();
        assert_eq!(first.start_offset(), 0);
        send(&mut first, b"hello").await.unwrap();
        drop(first);
        assert!(scene.log.last().contains("\"bytes\":5,\"result\":\"broken off\""), "{}", scene.log.last());
        assert!(scene.xferlog.last().ends_with(" unix 5 /f b _ i r alice ftp 0 * i\n"));
        scene.io.sleep(SECOND).await;
        assert_eq!(scene.contents(&alice, "f").await, None);
        assert_eq!(operations.pending_size(&alice, &place).await.unwrap(), Some(5));

        let mut second = operations.upload_from(&alice, &place, Begin::Offset(4)).await.unwrap();
        assert_eq!((second.start_offset(), second.bytes()), (4, 4));
        second.in_ascii();
        send(&mut second, b"~~ world").await.unwrap();
        second.commit().await.unwrap();
        assert_eq!(scene.contents(&alice, "f").await.unwrap(), "hell~~ world");
        assert!(scene.log.last().contains("\"bytes\":8,\"result\":\"ok\""), "{}", scene.log.last());
        assert!(scene.xferlog.last().ends_with(" unix 8 /f a _ i r alice ftp 0 * c\n"));
        assert_eq!(operations.pending_size(&alice, &place).await.unwrap(), None);
    });
}

#[test]
fn in_a_share_no_upload_is_kept_and_an_existing_file_is_resumed() {
    run_over(open, async |scene| {
        let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
        let operations = &scene.operations;
        operations.make_folder(&alice, &own("d"), Parents::Needed).await.unwrap();
        scene.share(&alice, "d", "bob", Permission::Write).await;
        let place = of("alice", "d/f");
        let mut broken = operations.upload_from(&bob, &place, Begin::Start).await.unwrap();
        send(&mut broken, b"hello").await.unwrap();
        drop(broken);
        scene.io.sleep(SECOND).await;
        assert_eq!(operations.pending_size(&bob, &place).await.unwrap(), None);
        assert_eq!(operations.pending_size(&alice, &own("d/f")).await.unwrap(), None);

        scene.put(&bob, &place, b"hello").await.unwrap();
        let mut more = operations.upload_from(&bob, &place, Begin::End).await.unwrap();
        send(&mut more, b" world").await.unwrap();
        more.commit().await.unwrap();
        assert_eq!(scene.contents(&alice, "d/f").await.unwrap(), "hello world");

        let mut hers = operations.upload_from(&alice, &own("d/g"), Begin::Start).await.unwrap();
        send(&mut hers, b"hers").await.unwrap();
        drop(hers);
        scene.io.sleep(SECOND).await;
        assert_eq!(operations.pending_size(&bob, &of("alice", "d/g")).await.unwrap(), None);
        let his = operations.upload_from(&bob, &of("alice", "d/g"), Begin::End).await.unwrap();
        assert_eq!(his.start_offset(), 0);
        assert_eq!(operations.pending_size(&alice, &own("d/g")).await.unwrap(), Some(4));
    });
}

#[test]
fn the_callers_own_home_under_their_name_is_their_own() {
    run_over(open, async |scene| {
        let alice = scene.person("alice").await;
        let mut broken = scene.operations.upload_from(&alice, &of("alice", "f"), Begin::Start).await.unwrap();
        send(&mut broken, b"hello").await.unwrap();
        drop(broken);
        scene.io.sleep(SECOND).await;
        for place in [own("f"), of("alice", "f")] {
            assert_eq!(scene.operations.pending_size(&alice, &place).await.unwrap(), Some(5), "{place}");
        }
    });
}

#[test]
fn an_account_without_delete_changes_no_file_but_resumes_an_upload() {
    run_over(open, async |scene| {
        let alice = scene.person_who_may("alice", NO_DELETE).await;
        let operations = &scene.operations;
        scene.put(&alice, &own("there"), b"hello").await.unwrap();
        for from in [Begin::Start, Begin::Offset(0), Begin::Offset(2), Begin::Offset(5), Begin::End] {
            let refused = operations.upload_from(&alice, &own("there"), from).await.err().unwrap();
            assert!(matches!(refused, Error::NotPermitted("replace files")), "{from:?}: {refused}");
        }
        let mut broken = operations.upload_from(&alice, &own("new"), Begin::Start).await.unwrap();
        send(&mut broken, b"hello").await.unwrap();
        drop(broken);
        scene.io.sleep(SECOND).await;
        let mut rest = operations.upload_from(&alice, &own("new"), Begin::EndAt(5)).await.unwrap();
        send(&mut rest, b" world").await.unwrap();
        // A file created meanwhile is not replaced either.
        scene.put(&alice, &own("new"), b"quicker").await.unwrap();
        assert_eq!(rest.commit().await.unwrap_err().word(), "precondition");
        assert_eq!(scene.contents(&alice, "new").await.unwrap(), "quicker");
        assert_eq!(scene.contents(&alice, "there").await.unwrap(), "hello");
    });
}

#[test]
fn an_account_without_write_begins_no_upload_anywhere() {
    run_over(open, async |scene| {
        let alice = scene.person("alice").await;
        let bob = scene.person_who_may("bob", Permissions { read: true, delete: true, ..NOTHING }).await;
        let carol = scene.person("carol").await;
        scene.put(&alice, &own("f"), b"hello").await.unwrap();
        scene.share(&alice, "f", "bob", Permission::Write).await;
        scene.share(&alice, "f", "carol", Permission::Read).await;
        for from in [Begin::Start, Begin::Offset(5), Begin::End] {
            for (caller, place, word) in [
                (&bob, own("f"), "not allowed"),
                (&bob, of("alice", "f"), "not allowed"),
                (&carol, of("alice", "f"), "not allowed"),
                (&carol, of("alice", "g"), "not found"),
            ] {
                let refused = scene.operations.upload_from(caller, &place, from).await.err().unwrap();
                assert_eq!(refused.word(), word, "{place} {from:?}");
            }
        }
        assert_eq!(scene.contents(&alice, "f").await.unwrap(), "hello");
    });
}

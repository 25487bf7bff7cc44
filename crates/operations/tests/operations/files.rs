//! Removing single files and folders, and setting times.

use std::time::Duration;

use plimsoll_auth::Permission;
use plimsoll_io::{Existing, join};
use plimsoll_operations::Parents;
use plimsoll_store::Depth;

use crate::{NO_DELETE, of, own, run};

#[test]
fn a_file_is_removed_as_a_file_and_a_folder_only_when_it_is_empty() {
    run(async |scene| {
        let alice = scene.person("alice").await;
        let operations = &scene.operations;
        operations.make_folder(&alice, &own("d"), Parents::Needed).await.unwrap();
        scene.put(&alice, &own("d/f"), b"hello").await.unwrap();
        let word = |removed: Result<_, plimsoll_operations::Error>| removed.map(drop).map_err(|e| e.word());

        assert_eq!(word(operations.remove_file(&alice, &own("d")).await), Err("wrong kind"));
        assert_eq!(word(operations.remove_folder(&alice, &own("d")).await), Err("not empty"));
        assert_eq!(word(operations.remove_folder(&alice, &own("d/f")).await), Err("wrong kind"));
        assert_eq!(word(operations.remove_file(&alice, &own("d/none")).await), Err("not found"));
        assert!(scene.log.last().contains("\"operation\":\"delete\""), "{}", scene.log.last());
        assert_eq!(scene.xferlog.count(), 1, "of the upload");

        operations.remove_file(&alice, &own("d/f")).await.unwrap();
        assert!(scene.xferlog.last().ends_with(" unix 5 /d/f b _ d r alice ftp 0 * c\n"));
        operations.remove_folder(&alice, &own("d")).await.unwrap();
        assert_eq!(scene.contents(&alice, "d/f").await, None);
    });
}

#[test]
fn a_share_ends_with_what_is_removed_and_not_with_what_is_not() {
    run(async |scene| {
        let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
        let operations = &scene.operations;
        operations.make_folder(&alice, &own("d"), Parents::Needed).await.unwrap();
        scene.put(&alice, &own("d/f"), b"hello").await.unwrap();
        scene.share(&alice, "d", "bob", Permission::Write).await;
        for refused in [
            operations.remove_folder(&alice, &own("d")).await,
            operations.remove_file(&alice, &own("d")).await,
        ] {
            refused.unwrap_err();
            assert_eq!(operations.shared(&bob).await.unwrap().len(), 1);
        }
        operations.remove_file(&bob, &of("alice", "d/f")).await.unwrap();
        operations.remove_folder(&alice, &own("d")).await.unwrap();
        assert!(operations.shared(&bob).await.unwrap().is_empty());
    });
}

#[test]
fn an_account_without_delete_removes_nothing() {
    run(async |scene| {
        let alice = scene.person_who_may("alice", NO_DELETE).await;
        scene.operations.make_folder(&alice, &own("d"), Parents::Needed).await.unwrap();
        scene.put(&alice, &own("f"), b"hello").await.unwrap();
        let file = scene.operations.remove_file(&alice, &own("f")).await;
        let folder = scene.operations.remove_folder(&alice, &own("d")).await;
        assert_eq!((file.unwrap_err().word(), folder.unwrap_err().word()), ("not allowed", "not allowed"));
        assert!(scene.contents(&alice, "f").await.is_some());
    });
}

#[test]
fn an_account_with_write_sets_a_files_time() {
    run(async |scene| {
        let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
        scene.put(&alice, &own("f"), b"hello").await.unwrap();
        scene.share(&alice, "f", "bob", Permission::Read).await;
        let time = Duration::from_secs(1_000_000_000);
        scene.operations.set_modified(&alice, &own("f"), time).await.unwrap();
        assert!(scene.log.last().contains("\"operation\":\"settime\""), "{}", scene.log.last());
        let refused = scene.operations.set_modified(&bob, &of("alice", "f"), 2 * time).await;
        assert_eq!(refused.unwrap_err().word(), "not allowed");
        let file = scene.operations.look(&alice, &own("f")).await.unwrap().location;
        assert_eq!(file.stat(&scene.io).await.unwrap().modified, time);
    });
}

#[test]
fn an_account_without_delete_copies_over_no_file_also_a_concurrent_one() {
    run(async |scene| {
        let (operations, alice) = (&scene.operations, scene.person("alice").await);
        let bob = scene.person("bob").await;
        operations.make_folder(&alice, &own("d"), Parents::Needed).await.unwrap();
        scene.share(&alice, "d", "bob", Permission::Write).await;
        let limited = scene.with_permissions(&bob, NO_DELETE).await;
        scene.put(&alice, &own("d/from"), b"copied").await.unwrap();
        for number in 0..10 {
            let name = format!("d/to{number}");
            let (from, to) = (of("alice", "d/from"), of("alice", &name));
            let copy = operations.copy(&limited, &from, &to, Existing::Replaced, Depth::Infinity);
            let (copied, put) = join(copy, scene.put(&alice, &own(&name), b"put")).await;
            put.unwrap();
            assert!(matches!(copied.map_err(|error| error.word()), Ok(_) | Err("not allowed")));
            // Under either order, only the put may replace the file.
            assert_eq!(scene.contents(&alice, &name).await.as_deref(), Some("put"));
        }
    });
}

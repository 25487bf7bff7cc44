//! Lookups without a record: they need the same right as reading, and leave no log line.

use plimsoll_auth::{Permission, Permissions};
use plimsoll_operations::{Caller, HomePath, Operation, Parents, ReadAccess, VisibleEntries};

use crate::{NOTHING, Scene, of, own, run};

/// Returns the result of a lookup. Asserts that a read, which alone writes a log line, has the same
/// result.
async fn lookup(
    scene: &Scene,
    caller: &Caller,
    place: &HomePath,
) -> Result<(String, VisibleEntries), &'static str> {
    let before = scene.log.count();
    let looked = scene.operations.look(caller, place).await;
    assert_eq!(scene.log.count(), before, "a look has no line");
    let read = scene.operations.read(caller, place, Operation::Download).await;
    let lookup = |access: ReadAccess| {
        // In a share, the name marks the folder that no link may lead out of.
        (String::from_utf8_lossy(access.location.name()).replace("//", "/"), access.shown)
    };
    let read = read.map(|(access, _)| lookup(access)).map_err(|error| error.word());
    assert_eq!(scene.log.count(), before + 1);
    let looked = looked.map(lookup).map_err(|error| error.word());
    assert_eq!(looked, read, "{place}");
    looked
}

#[test]
fn a_lookup_is_refused_exactly_where_a_read_is() {
    run(async |scene| {
        let (alice, bob) = (scene.person("alice").await, scene.person("bob").await);
        for folder in ["a", "a/b"] {
            scene.operations.make_folder(&alice, &own(folder), Parents::Needed).await.unwrap();
        }
        scene.put(&alice, &own("a/b/f"), b"f").await.unwrap();
        scene.share(&alice, "a/b", "bob", Permission::Read).await;
        let at = |path: &str, shown| Ok((path.to_owned(), shown));
        let names = |name: &str| VisibleEntries::Only(vec![name.as_bytes().to_vec()]);
        for (place, expected) in [
            (own("any"), at("any", VisibleEntries::All)),
            (of("bob", "any"), at("any", VisibleEntries::All)),
            (of("alice", "a/b"), at("a/b", VisibleEntries::All)),
            (of("alice", "a/b/f"), at("a/b/f", VisibleEntries::All)),
            (of("alice", ""), at("", names("a"))),
            (of("alice", "a"), at("a", names("b"))),
            (of("alice", "ab"), Err("not found")),
            (of("nobody", "a"), Err("not found")),
            (of("../alice", "a"), Err("not found")),
        ] {
            assert_eq!(lookup(&scene, &bob, &place).await, expected, "{place}");
        }
        let bob = scene.with_permissions(&bob, NOTHING).await;
        for place in [own("any"), of("alice", "a/b")] {
            assert_eq!(lookup(&scene, &bob, &place).await, Err("not allowed"));
        }
    });
}

#[test]
fn a_renewed_caller_may_do_what_the_account_may_now_and_an_ended_one_nothing() {
    run(async |scene| {
        let alice = scene.person("alice").await;
        let lines = scene.log.count();
        let may = Permissions { read: true, ..NOTHING };
        let now = scene.with_permissions(&alice, may).await;
        assert_eq!(now.identity.account.permissions, may);
        assert_eq!(now.visitor.protocol, alice.visitor.protocol);
        scene.auth.set_enabled(&scene.io, "alice", false).await.unwrap();
        let ended = scene.operations.renew(&now).await.err().unwrap();
        assert_eq!(ended.word(), "not authenticated");
        assert_eq!(scene.log.count(), lines, "what follows is the operation");
    });
}

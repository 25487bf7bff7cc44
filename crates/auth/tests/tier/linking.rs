//! Public links.

use plimsoll_auth::request::{AuthRequest, AuthResponse};
use plimsoll_auth::{
    Auth, Error, FileVersion, Identity, Link, LinkPermission, LinkVisit, NewLink, Permissions, Settings,
    link_of_token,
};
use plimsoll_io::Io;

use crate::{MINUTE, SECOND, guarded, here, join_as, peer, run, secret, settings};

fn read(path: &str) -> NewLink {
    NewLink {
        path: path.as_bytes().to_vec(),
        permission: LinkPermission::Read,
        expires: None,
        password: None,
        uses_max: None,
        bytes_max: None,
    }
}

/// Adds a link, and returns it with the id that its token gives.
async fn add(io: &Io, auth: &Auth, owner: &Identity, new: NewLink) -> (Link, String) {
    let (link, token) = auth.add_link(io, owner, new, &here()).await.unwrap();
    (link, link_of_token(token.bytes()).unwrap())
}

async fn visit(io: &Io, auth: &Auth, id: &str) -> Result<Identity, Error> {
    match auth.visit_link(io, id, None).await? {
        LinkVisit::Open(identity) => Ok(identity),
        LinkVisit::Locked(_) => panic!("it has no password"),
    }
}

#[test]
fn a_visitor_has_the_owners_account_with_the_rights_of_the_link_alone() {
    run(&settings(), async |io, auth| {
        let alice = join_as(&io, &auth, "alice").await;
        let (link, id) = add(&io, &auth, &alice, read("/docs/")).await;
        assert_eq!((link.id.as_str(), link.path.as_slice()), (id.as_str(), b"docs".as_slice()));
        let visitor = visit(&io, &auth, &id).await.unwrap();
        assert_eq!((visitor.account.id, visitor.session()), (alice.account.id, None));
        assert_eq!(visitor.account.permissions, Permissions { read: true, ..Permissions::NONE });
        assert_eq!(visitor.link(), Some(&link));
        let upload = NewLink { permission: LinkPermission::Upload, ..read("in") };
        let (link, id) = add(&io, &auth, &alice, upload).await;
        // It has limits that its owner did not set.
        assert_eq!((link.uses_max, link.bytes_max), (Some(1_000), Some(10 << 30)));
        let visitor = visit(&io, &auth, &id).await.unwrap();
        assert_eq!(visitor.account.permissions, Permissions { write: true, ..Permissions::NONE });
        assert_eq!(auth.links(&io, &alice).await.unwrap().len(), 2);
    });
}

#[test]
fn a_link_ends_when_it_is_ended_or_its_path_is_or_its_owner_is_disabled() {
    run(&settings(), async |io, auth| {
        let (alice, bob) = (join_as(&io, &auth, "alice").await, join_as(&io, &auth, "bob").await);
        let (one, _) = add(&io, &auth, &alice, read("a")).await;
        let (two, _) = add(&io, &auth, &alice, read("b/c")).await;
        let (three, _) = add(&io, &auth, &alice, read("d")).await;
        let visitor = visit(&io, &auth, &one.id).await.unwrap();
        assert!(auth.holds(&io, &visitor));
        assert_eq!(auth.end_link(&io, &bob, &one.id).await, Err(Error::NotFound));
        auth.end_link(&io, &alice, &one.id).await.unwrap();
        assert!(!auth.holds(&io, &visitor));
        assert_eq!(auth.renew(&io, &visitor).await.unwrap_err(), Error::NotFound);
        assert_eq!(visit(&io, &auth, &one.id).await.unwrap_err(), Error::NotFound);
        visit(&io, &auth, &two.id).await.unwrap();
        auth.end_shares(&io, alice.account.id, b"b").await.unwrap();
        assert_eq!(visit(&io, &auth, &two.id).await.unwrap_err(), Error::NotFound);
        let visitor = visit(&io, &auth, &three.id).await.unwrap();
        auth.set_enabled(&io, "alice", false).await.unwrap();
        assert_eq!(auth.renew(&io, &visitor).await.unwrap_err(), Error::NotFound);
        auth.set_enabled(&io, "alice", true).await.unwrap();
        visit(&io, &auth, &three.id).await.unwrap();
    });
}

#[test]
fn a_link_ends_at_its_time_also_for_a_visitor_that_is_cached() {
    run(&settings(), async |io, auth| {
        let alice = join_as(&io, &auth, "alice").await;
        let end = io.wall() + MINUTE;
        let (link, _) = add(&io, &auth, &alice, NewLink { expires: Some(end), ..read("a") }).await;
        let visitor = visit(&io, &auth, &link.id).await.unwrap();
        io.sleep(end.duration_since(io.wall()).unwrap() - SECOND).await;
        visit(&io, &auth, &link.id).await.unwrap();
        io.sleep(SECOND).await;
        assert!(!auth.holds(&io, &visitor));
        assert_eq!(visit(&io, &auth, &link.id).await.unwrap_err(), Error::NotFound);
        assert_eq!(auth.links(&io, &alice).await.unwrap(), []);
    });
}

#[test]
fn a_password_is_needed_and_its_proof_is_good_for_one_link() {
    run(&settings(), async |io, auth| {
        let alice = join_as(&io, &auth, "alice").await;
        let new = || NewLink { password: Some(secret("open sesame now")), ..read("a") };
        let (link, _) = add(&io, &auth, &alice, new()).await;
        let (other, _) = add(&io, &auth, &alice, new()).await;
        assert!(link.has_password);
        let locked = async |id: &str, grant: Option<&str>| {
            matches!(auth.visit_link(&io, id, grant).await.unwrap(), LinkVisit::Locked(_))
        };
        assert!(locked(&link.id, None).await && locked(&link.id, Some("forged")).await);
        let wrong = auth.unlock_link(&io, &link.id, &secret("open barley"), &here()).await;
        assert_eq!(wrong, Err(Error::WrongCredentials));
        let grant = auth.unlock_link(&io, &link.id, &secret("open sesame now"), &here()).await.unwrap();
        assert!(!locked(&link.id, Some(&grant)).await && locked(&other.id, Some(&grant)).await);
        assert!(locked(&link.id, None).await);
        let weak = NewLink { password: Some(secret("a")), ..read("a") };
        assert!(matches!(auth.add_link(&io, &alice, weak, &here()).await, Err(Error::BadPassword(_))));
    });
}

#[test]
fn guesses_at_a_password_of_a_link_are_limited_and_lock_no_client_out_of_an_account() {
    run(&guarded(), async |io, auth| {
        let alice = join_as(&io, &auth, "alice").await;
        let new = NewLink { password: Some(secret("open sesame now")), ..read("a") };
        let (link, _) = add(&io, &auth, &alice, new).await;
        let guess = async |from: &str| auth.unlock_link(&io, &link.id, &secret("wrong"), &peer(from)).await;
        for _ in 0..10 {
            assert_eq!(guess("198.51.100.1").await, Err(Error::WrongCredentials));
        }
        assert!(matches!(guess("198.51.100.1").await, Err(Error::TooManyAttempts { .. })));
        let right = secret("open sesame now");
        assert!(auth.unlock_link(&io, &link.id, &right, &peer("198.51.100.1")).await.is_err());
        auth.unlock_link(&io, &link.id, &right, &peer("203.0.113.1")).await.unwrap();
        auth.log_in(&io, "alice", &secret(crate::PASSWORD), &peer("203.0.113.1")).await.unwrap();
    });
}

#[test]
fn a_password_that_comes_with_each_request_is_hashed_once() {
    run(&guarded(), async |io, auth| {
        let alice = join_as(&io, &auth, "alice").await;
        let new = NewLink { password: Some(secret("open sesame now")), ..read("a") };
        let (link, _) = add(&io, &auth, &alice, new).await;
        let unlock = async |from: &str, password: &str| {
            auth.unlock_link(&io, &link.id, &secret(password), &peer(from)).await
        };
        let (one, other) = ("198.51.100.1", "203.0.113.1");
        let first = unlock(one, "open sesame now").await;
        assert!(first.is_ok());
        io.sleep(SECOND).await;
        // Each check makes a proof with another end.
        assert_eq!(unlock(one, "open sesame now").await, first);
        assert_ne!(unlock(other, "open sesame now").await, first);
        assert_eq!(unlock(one, "open sesame").await, Err(Error::WrongCredentials));
        auth.end_link(&io, &alice, &link.id).await.unwrap();
        assert_eq!(unlock(one, "open sesame now").await, Err(Error::NotFound));
    });
}

#[test]
fn a_main_process_answers_its_processes_from_its_cache() {
    run(&settings(), async |io, auth| {
        let alice = join_as(&io, &auth, "alice").await;
        let (link, _) = add(&io, &auth, &alice, NewLink { uses_max: Some(2), ..read("a") }).await;
        let uses = async |needs_counts: bool| {
            let request = AuthRequest::Link { id: link.id.clone(), grant: None, needs_counts };
            match auth.respond_to_process(&io, request).await {
                Ok(AuthResponse::LinkAccess(access)) => Ok((access.link.uses, access.is_locked)),
                Ok(_) => panic!("another response"),
                Err(error) => Err(error),
            }
        };
        assert_eq!(uses(false).await, Ok((0, false)));
        auth.use_link(&io, &link.id, (FileVersion::default(), 0), None).await.unwrap();
        assert_eq!(uses(false).await, Ok((0, false)));
        assert_eq!(uses(true).await, Ok((1, false)));
        auth.end_link(&io, &alice, &link.id).await.unwrap();
        assert_eq!(uses(false).await, Err(Error::NotFound));
    });
}

#[test]
fn downloads_are_counted_and_a_counted_one_may_be_continued() {
    run(&settings(), async |io, auth| {
        let alice = join_as(&io, &auth, "alice").await;
        let (link, _) = add(&io, &auth, &alice, NewLink { uses_max: Some(2), ..read("a") }).await;
        let download = async |(path, etag): (&str, &str), grant: Option<&str>| {
            let file = FileVersion { path: path.into(), etag: etag.to_owned() };
            auth.use_link(&io, &link.id, (file, 0), grant).await
        };
        let grant = download(("a/1", "x"), None).await.unwrap().expect("a grant");
        for _ in 0..5 {
            // A renewed grant would never end.
            assert_eq!(download(("a/1", "x"), Some(&grant)).await, Ok(None));
        }
        assert!(download(("a/2", "x"), Some(&grant)).await.unwrap().is_some());
        assert_eq!(download(("a/1", "x"), None).await, Err(Error::LinkUsedUp));
        for other in [("a/3", "x"), ("a/1", "y")] {
            assert_eq!(download(other, Some(&grant)).await, Err(Error::LinkUsedUp));
        }
        assert_eq!(download(("a/1", "x"), Some(&grant)).await, Ok(None));
        assert_eq!(auth.links(&io, &alice).await.unwrap()[0].uses, 2);
    });
}

#[test]
fn links_need_the_permission_to_share_and_can_be_turned_off() {
    run(&settings(), async |io, auth| {
        let alice = join_as(&io, &auth, "alice").await;
        let (link, _) = add(&io, &auth, &alice, read("a")).await;
        for bad in [
            NewLink { uses_max: Some(0), ..read("a") },
            NewLink { expires: Some(io.wall() - SECOND), ..read("a") },
            read("a/.."),
        ] {
            assert!(matches!(auth.add_link(&io, &alice, bad, &here()).await, Err(Error::BadShare(_))));
        }
        let visitor = visit(&io, &auth, &link.id).await.unwrap();
        assert!(auth.holds(&io, &visitor));
        auth.set(Settings { links: false, ..settings() });
        // Also for cached visitors and for transfers in progress.
        assert!(!auth.holds(&io, &visitor));
        assert_eq!(auth.renew(&io, &visitor).await.unwrap_err(), Error::NotFound);
        assert_eq!(auth.add_link(&io, &alice, read("a"), &here()).await.unwrap_err(), Error::NoLinks);
        assert_eq!(visit(&io, &auth, &link.id).await.unwrap_err(), Error::NotFound);
        auth.set(settings());
        visit(&io, &auth, &link.id).await.unwrap();
        let may = Permissions { share: false, ..Permissions::default() };
        auth.set_permissions(&io, "alice", may).await.unwrap();
        assert_eq!(auth.add_link(&io, &alice, read("a"), &here()).await.unwrap_err(), Error::NotAllowed);
    });
}

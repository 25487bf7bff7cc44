//! Operators' requests.

use plimsoll_auth::{Error, Exported, Permissions, Quota};

use crate::{PASSWORD, here, join_as, run, secret, settings, token};

#[test]
fn an_operator_adds_shows_and_removes_accounts() {
    run(&settings(), async |io, auth| {
        let quota = Quota { bytes: Some(9), files: Some(1) };
        let may = Permissions { delete: false, ..Permissions::default() };
        let added = auth.add(&io, "Zoe", &secret(PASSWORD), quota, may).await.unwrap();
        assert_eq!((added.name.as_str(), added.quota, added.permissions), ("zoe", quota, may));
        join_as(&io, &auth, "alice").await;
        assert_eq!(auth.account(&io, "ZOE").await.unwrap(), added);
        let names: Vec<_> = auth.accounts(&io).await.unwrap().into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["alice", "zoe"]);
        let again = auth.add(&io, "zoe", &secret(PASSWORD), quota, may).await;
        assert_eq!(again, Err(Error::NameTaken));
        assert_eq!(auth.remove(&io, "zoe").await.unwrap(), added);
        assert_eq!(auth.remove(&io, "zoe").await, Err(Error::NotFound));
        assert_eq!(auth.account(&io, "zoe").await, Err(Error::NotFound));
        assert_eq!(auth.set_quota(&io, "zoe", quota).await, Err(Error::NotFound));
    });
}

#[test]
fn a_password_that_an_operator_sets_ends_all_sessions() {
    run(&settings(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let token = token(&io, &auth, "alice").await;
        auth.by_token(&io, token.as_bytes()).await.unwrap();
        auth.set_password(&io, "alice", &secret("battery staple")).await.unwrap();
        assert_eq!(auth.by_token(&io, token.as_bytes()).await.unwrap_err(), Error::NoSession);
        let old = auth.by_password(&io, b"alice", &secret(PASSWORD), &here()).await;
        assert_eq!(old.unwrap_err(), Error::WrongCredentials);
        assert!(auth.by_password(&io, b"alice", &secret("battery staple"), &here()).await.is_ok());
        let short = auth.set_password(&io, "alice", &secret("short")).await;
        assert!(matches!(short, Err(Error::BadPassword(_))));
    });
}

#[test]
fn an_exported_account_is_imported_with_its_password() {
    run(&settings(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let quota = Quota { bytes: Some(9), files: None };
        auth.set_quota(&io, "alice", quota).await.unwrap();
        let exported = auth.export(&io).await.unwrap();
        let line = serde_json::to_string(&exported[0]).unwrap();
        assert!(!line.contains('\n') && line.contains("$argon2id$"), "{line}");
        assert_eq!(auth.import(&io, exported[0].clone()).await, Err(Error::NameTaken));
        auth.remove(&io, "alice").await.unwrap();
        let read: Exported = serde_json::from_str(&line).unwrap();
        let account = auth.import(&io, read).await.unwrap();
        assert_eq!((account.name.as_str(), account.quota), ("alice", quota));
        assert!(auth.by_password(&io, b"alice", &secret(PASSWORD), &here()).await.is_ok());
    });
}

#[test]
fn an_import_takes_no_password_in_clear_and_no_bad_name() {
    run(&settings(), async |io, auth| {
        let line = r#"{"name":"alice","password":"correct horse"}"#;
        let clear: Exported = serde_json::from_str(line).unwrap();
        assert!(clear.enabled && clear.permissions == Permissions::default());
        let refused = auth.import(&io, clear.clone()).await.unwrap_err();
        assert!(matches!(&refused, Error::BadImport(why) if why.contains("alice")), "{refused}");
        let name = "../alice".to_owned();
        assert!(matches!(auth.import(&io, Exported { name, ..clear }).await, Err(Error::BadName(_))));
        assert_eq!(auth.accounts(&io).await.unwrap(), []);
    });
}

#[test]
fn an_account_has_a_number_that_no_other_account_ever_had() {
    run(&settings(), async |io, auth| {
        let add = async |name: &str| {
            let (quota, may) = (Quota::default(), Permissions::default());
            auth.add(&io, name, &secret(PASSWORD), quota, may).await.unwrap()
        };
        let first = add("alice").await;
        auth.remove(&io, "alice").await.unwrap();
        let second = add("alice").await;
        join_as(&io, &auth, "bob").await;
        let bob = auth.account(&io, "bob").await.unwrap();
        // A new directory after a loss begins again: no number may be small enough to be drawn twice.
        for id in [first.id, second.id, bob.id] {
            assert!((1 << 32..1 << 53).contains(&id), "{id}");
        }
        assert!(first.id != second.id && second.id != bob.id);
    });
}

#[test]
fn an_imported_account_keeps_its_number_unless_another_account_has_it() {
    run(&settings(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let id = auth.account(&io, "alice").await.unwrap().id;
        let exported = auth.export(&io).await.unwrap().remove(0);
        auth.remove(&io, "alice").await.unwrap();
        let imported = auth.import(&io, exported.clone()).await.unwrap();
        assert_eq!(imported.id, id);
        let created = Some("2020-02-29T12:00:00Z".to_owned());
        let old = Exported { name: "carol".to_owned(), created, ..exported.clone() };
        auth.import(&io, old).await.unwrap();
        let carol = auth.export(&io).await.unwrap().into_iter().find(|account| account.name == "carol");
        assert_eq!(carol.unwrap().created.as_deref(), Some("2020-02-29T12:00:00Z"));
        let wrong =
            Exported { name: "dave".to_owned(), created: Some("soon".to_owned()), ..exported.clone() };
        assert!(matches!(auth.import(&io, wrong).await, Err(Error::BadImport(_))));
        let twin = auth.import(&io, Exported { name: "bob".to_owned(), ..exported }).await.unwrap();
        assert_ne!(twin.id, id);
    });
}

//! Tests of dumps and moves: the rows of every store, read and written as they are.

use plimsoll_auth::directory::{
    DirectoryError, DirectoryRows, DumpReader, DumpWriter, GivenShare, NewSession, Opening, StoredAccount,
    StoredLink, StoredLock, StoredRow, Summary, open, open_rows, transfer,
};
use std::collections::BTreeSet;

use plimsoll_auth::{Account, Change, Directory, NetworkHash, Permission, Permissions, Quota, SessionId};

use crate::links::link;
use crate::locks::{WIDE, lock};
use crate::{KINDS, NOW, add, fresh, session, session_id};

/// Further accounts: more than are read or written at once.
const ACCOUNTS: u32 = 450;

/// Fills a directory with rows of all kinds, and with values at the bounds of their types.
fn fill(directory: &mut dyn Directory) {
    let (alice, bob) = (add(directory, "alice"), add(directory, "bob"));
    let quota = Quota { bytes: Some(i64::MAX as u64), files: Some(0) };
    directory.change(alice.id, Change::Quota(quota)).unwrap().unwrap();
    let permissions = Permissions { write: false, operate: true, ..Permissions::default() };
    directory.change(bob.id, Change::Permissions(permissions)).unwrap().unwrap();
    directory.set_password(bob.id, 1, "another \"hash\" of \u{e9}", None).unwrap();
    for number in 1..=3 {
        directory.add_session(&session(number, &alice, 0), 9).unwrap().unwrap();
        directory
            .add_network(bob.id, NetworkHash::from_bytes([number; 32]), NOW + u64::from(number), 9)
            .unwrap();
    }
    let long = vec![b'x'; 4000];
    for (id, path, expires) in
        [("1", &b"caf\xe9 \x00 \n'"[..], None), ("2", b"", Some(NOW + 7)), ("3", &long, None)]
    {
        let share = GivenShare {
            id: id.to_owned(),
            owner: alice.id,
            with: bob.id,
            path: path.to_vec(),
            permission: if expires.is_some() { Permission::Write } else { Permission::Read },
            created: NOW,
            expires,
        };
        directory.add_share(&share, 9).unwrap().unwrap();
    }
    assert!(directory.add_link(&link("4", &alice, b"caf\xe9 \x00 \n'"), 9).unwrap());
    let plain = StoredLink {
        uploads: true,
        expires: None,
        password: String::new(),
        uses_max: None,
        bytes_max: None,
        ..link("5", &bob, &long)
    };
    assert!(directory.add_link(&plain, 9).unwrap());
    assert!(directory.use_link("4", 7, NOW).unwrap());
    assert!(directory.add_lock(&lock("6", &alice, b"caf\xe9 \x00 \n'"), WIDE).unwrap());
    let of_bob = StoredLock { holder: bob.id, shared: true, deep: false, ..lock("7", &alice, &long) };
    assert!(directory.add_lock(&of_bob, WIDE).unwrap());
}

/// Adds [`ACCOUNTS`] without an exchange for each.
fn add_accounts(directory: &mut dyn DirectoryRows) {
    let account = |number: u32| {
        StoredRow::Account(StoredAccount {
            id: i64::from(number),
            name: format!("name{number}"),
            hash: format!("hash of {number}"),
            version: 1,
            quota_bytes: None,
            quota_files: None,
            permissions: 0,
            enabled: true,
            created: 0,
        })
    };
    directory.write_rows(&(1..=ACCOUNTS).map(account).collect::<Vec<_>>()).unwrap();
}

fn rows(directory: &mut dyn DirectoryRows) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    directory
        .read_rows(&mut |row| {
            rows.push(serde_json::to_string(&row).unwrap());
            Ok(())
        })
        .unwrap();
    rows.sort();
    rows
}

/// An empty directory of each store.
fn empty_stores() -> (tempfile::TempDir, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let mut urls: Vec<String> = KINDS.iter().map(|kind| fresh(kind).url).collect();
    urls.push(format!("sqlite:{}", folder.path().join("d.sqlite").display()));
    (folder, urls)
}

#[test]
fn rows_move_through_every_store_and_every_one_is_the_same() {
    let (folder, urls) = empty_stores();
    let first = format!("sqlite:{}", folder.path().join("first.sqlite").display());
    fill(&mut *open(&first).unwrap());
    let mut from = open_rows(&first, Opening::Transfer).unwrap();
    add_accounts(&mut *from);
    let expected = rows(&mut *from);
    assert_eq!(expected.len() as u64, u64::from(ACCOUNTS) + 2 + 3 + 3 + 3 + 2 + 2);
    for url in urls.iter().chain(&[fresh("redis").url, fresh("postgres").url]) {
        let mut to = open_rows(url, Opening::Transfer).unwrap();
        let summary = transfer(|each| from.read_rows(each), &mut *to).unwrap();
        assert_eq!(summary.accounts, u64::from(ACCOUNTS) + 2, "{url}");
        assert_eq!(rows(&mut *to), expected, "{url}");
        assert_eq!(Summary::of(&mut *to).unwrap(), summary, "{url}");
        // A server finds them, too.
        let mut directory = open(url).unwrap();
        assert!(directory.session(session_id(2), NOW).unwrap().is_some(), "{url}");
        let (alice, bob) =
            (directory.account("alice").unwrap().unwrap(), directory.account("bob").unwrap().unwrap());
        assert_eq!(bob.version, 2, "{url}");
        let shares = directory.shares_around(alice.account.id, bob.account.id, b"any", NOW).unwrap();
        assert_eq!((shares.len(), shares[0].id.as_str()), (1, "2"), "{url}");
        assert!(directory.add_session(&session(9, &alice.account, 9), 9).unwrap().is_some(), "{url}");
        assert!(directory.end_session(session_id(9)).unwrap(), "{url}");
        from = to;
    }
}

#[test]
fn a_dump_is_restored_into_every_store() {
    let (_folder, urls) = empty_stores();
    for url in &urls {
        fill(&mut *open(url).unwrap());
        let mut directory = open_rows(url, Opening::Transfer).unwrap();
        let expected = rows(&mut *directory);
        let schema = directory.schema().unwrap();
        let mut writer = DumpWriter::new(Vec::new(), &schema, "test").unwrap();
        directory
            .read_rows(&mut |row| writer.row(&row).map_err(|error| DirectoryError::Failed(error.to_string())))
            .unwrap();
        let (dump, summary) = writer.end().unwrap();
        directory.remove_rows().unwrap();
        assert!(Summary::of(&mut *directory).unwrap().is_empty(), "{url}");
        assert!(open(url).unwrap().account("alice").unwrap().is_none(), "{url}");
        let mut reader = DumpReader::new(&dump[..]).unwrap();
        let restored = transfer(|each| reader.read_rows(each).map(drop), &mut *directory).unwrap();
        assert_eq!((rows(&mut *directory), restored), (expected, summary), "{url}");
    }
}

#[test]
fn removed_rows_are_news_to_a_server_that_runs() {
    for kind in KINDS {
        let at = fresh(kind);
        let mut directory = open(&at.url).unwrap();
        add(&mut *directory, "alice");
        directory.has_foreign_changes().unwrap();
        open_rows(&at.url, Opening::Transfer).unwrap().remove_rows().unwrap();
        assert!(directory.has_foreign_changes().unwrap(), "{kind}");
    }
}

#[test]
fn a_row_that_is_there_already_is_refused() {
    let (_folder, urls) = empty_stores();
    for url in &urls {
        add(&mut *open(url).unwrap(), "alice");
        let mut directory = open_rows(url, Opening::Transfer).unwrap();
        let mut all: Vec<StoredRow> = Vec::new();
        directory
            .read_rows(&mut |row| {
                all.push(row);
                Ok(())
            })
            .unwrap();
        assert!(directory.write_rows(&all).is_err(), "{url}");
    }
}

/// Returns what a row is, without its values that change.
fn key(row: &StoredRow) -> String {
    match row {
        StoredRow::Account(row) => format!("account {}", row.name),
        StoredRow::Session(row) => format!("session {:?}", row.id),
        StoredRow::Share(row) => format!("share {}", row.id),
        StoredRow::Network(row) => format!("network {} {:?}", row.account, row.network),
        StoredRow::Link(row) => format!("link {}", row.id),
        StoredRow::Lock(row) => format!("lock {}", row.id),
    }
}

fn keys(url: &str) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let mut directory = open_rows(url, Opening::Inspect).unwrap();
    directory
        .read_rows(&mut |row| {
            keys.insert(key(&row));
            Ok(())
        })
        .unwrap();
    assert!(directory.is_of_one_moment());
    keys
}

/// Returns the accounts that a row refers to.
fn owners(row: &StoredRow) -> Vec<i64> {
    match row {
        StoredRow::Account(row) => vec![row.id],
        StoredRow::Session(row) => vec![row.account],
        StoredRow::Share(row) => vec![row.owner, row.holder],
        StoredRow::Network(row) => vec![row.account],
        StoredRow::Link(row) => vec![row.owner],
        StoredRow::Lock(row) => vec![row.owner, row.holder],
    }
}

fn log_in(directory: &mut dyn Directory, account: &Account, number: u32) {
    let mut id = [7; 32];
    id[..4].copy_from_slice(&number.to_be_bytes());
    let expires = NOW + 1000 + u64::from(number);
    let id = SessionId::from_hash(id);
    let new = NewSession { id, account: account.id, version: 1, created: NOW, expires };
    directory.add_session(&new, 9).unwrap().unwrap();
}

fn give(directory: &mut dyn Directory, owner: &Account, with: &Account, expires: u64) {
    let share = GivenShare {
        id: format!("{} {}", owner.id, with.id),
        owner: owner.id,
        with: with.id,
        path: b"a".to_vec(),
        permission: Permission::Read,
        created: NOW,
        expires: Some(expires),
    };
    directory.add_share(&share, 9).unwrap().unwrap();
}

/// Servers end the first sessions, have shares end in another order, remove an account and create another.
fn change_rows(directory: &mut dyn Directory, accounts: &[Account]) {
    for account in &accounts[..150] {
        assert!(directory.set_password(account.id, 1, "another", None).unwrap());
    }
    for (number, pair) in (0..).zip(accounts.windows(2)).skip(250) {
        give(directory, &pair[0], &pair[1], NOW + 1 + number);
    }
    let (last, third) = (&accounts[accounts.len() - 1], &accounts[2]);
    assert!(directory.remove_account(last.id).unwrap());
    let again = add(directory, &last.name);
    log_in(directory, &again, ACCOUNTS);
    give(directory, &again, third, NOW + 2);
    give(directory, third, &again, NOW + 3);
}

#[test]
fn rows_that_stay_are_dumped_once_and_whole_while_servers_change_others() {
    for kind in KINDS {
        let at = fresh(kind);
        let mut directory = open(&at.url).unwrap();
        let accounts: Vec<Account> =
            (0..ACCOUNTS).map(|number| add(&mut *directory, &format!("name{number}"))).collect();
        for (number, account) in (0..).zip(&accounts) {
            log_in(&mut *directory, account, number);
            let network = NetworkHash::from_bytes([number.to_be_bytes()[3]; 32]);
            directory.add_network(account.id, network, NOW, 9).unwrap();
        }
        for (number, pair) in (0..).zip(accounts.windows(2)) {
            give(&mut *directory, &pair[0], &pair[1], NOW + 1000 + number);
        }
        let before = keys(&at.url);
        let (mut dumped, mut is_changed) = (Vec::new(), false);
        let mut rows = open_rows(&at.url, Opening::Inspect).unwrap();
        rows.read_rows(&mut |row| {
            // Some rows of the kind that is read first after the accounts were received, and others were
            // not.
            if !is_changed && !matches!(row, StoredRow::Account(_)) {
                is_changed = true;
                change_rows(&mut *directory, &accounts);
            }
            dumped.push(row);
            Ok(())
        })
        .unwrap();
        assert_eq!(rows.is_of_one_moment(), kind != "redis");
        let once: BTreeSet<String> = dumped.iter().map(key).collect();
        assert_eq!(once.len(), dumped.len(), "{kind}: a row is there twice");
        let stayed = &before & &keys(&at.url);
        assert!(stayed.len() > 1000, "{}", stayed.len());
        let missing: Vec<_> = stayed.difference(&once).collect();
        assert!(missing.is_empty(), "{kind}: {missing:?}");
        let ids: BTreeSet<i64> = dumped
            .iter()
            .filter_map(|row| if let StoredRow::Account(row) = row { Some(row.id) } else { None })
            .collect();
        for row in &dumped {
            assert!(owners(row).iter().all(|id| ids.contains(id)), "{kind}: {row:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        let file = format!("sqlite:{}", folder.path().join("d.sqlite").display());
        let mut to = open_rows(&file, Opening::Transfer).unwrap();
        transfer(|each| dumped.into_iter().try_for_each(each), &mut *to).unwrap();
    }
}

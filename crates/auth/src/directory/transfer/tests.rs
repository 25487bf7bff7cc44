//! Dumps are read back as they were written, or refused.

use super::*;

fn rows() -> Vec<StoredRow> {
    let account = |id| {
        StoredRow::Account(StoredAccount {
            id,
            name: format!("name{id}"),
            hash: "$argon2id$".to_owned(),
            version: 1,
            quota_bytes: Some(7),
            quota_files: None,
            permissions: 15,
            enabled: id > 1,
            created: 1_800_000_000_123,
        })
    };
    let (id, path) = ("a".to_owned(), b"caf\xe9".to_vec());
    let share = StoredShare { id, owner: 1, holder: 2, path, writes: true, created: 1, expires: None };
    vec![account(1), account(2), StoredRow::Share(share)]
}

fn dump() -> Vec<u8> {
    let schema = Schema { store: "SQLite", version: 3, known: 3, closed: String::new() };
    let mut writer = DumpWriter::new(Vec::new(), &schema, "0.1.0").unwrap();
    rows().iter().for_each(|row| writer.row(row).unwrap());
    writer.end().unwrap().0
}

fn read(dump: &[u8]) -> Result<Vec<StoredRow>, DirectoryError> {
    let mut rows = Vec::new();
    DumpReader::new(dump)?.read_rows(&mut |row| {
        rows.push(row);
        Ok(())
    })?;
    Ok(rows)
}

#[test]
fn a_dump_is_read_back_whole() {
    assert_eq!(read(&dump()), Ok(rows()));
}

#[test]
fn the_digest_depends_on_every_row_and_not_on_their_order() {
    let of = |rows: &[StoredRow]| {
        let mut summary = Summary::default();
        rows.iter().for_each(|row| summary.add(row));
        summary
    };
    let mut reversed = rows();
    reversed.reverse();
    assert_eq!(of(&rows()), of(&reversed));
    assert_ne!(of(&rows()), of(&rows()[..2]));
    reversed[1] = reversed[2].clone();
    assert_ne!(of(&rows()), of(&reversed));
}

#[test]
fn a_dump_that_is_cut_or_changed_is_refused() {
    let whole = dump();
    let ends = (0..whole.len() - 1).filter(|end| read(&whole[..*end]).is_ok());
    assert_eq!(ends.count(), 0);
    let text = String::from_utf8(whole).unwrap();
    for (from, to, why) in [
        ("name1", "name3", "are not those that were dumped"),
        ("\"plimsoll_directory\":3", "\"plimsoll_directory\":4", "a newer plimsoll (0.1.0) made the dump"),
        ("\"holder\"", "\"holders\"", "line 4: "),
        ("{\"plimsoll", "{\"another", "does not begin as a dump"),
    ] {
        let refused = read(text.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
    let refused = read((text.clone() + &text).as_bytes()).unwrap_err().to_string();
    assert!(refused.contains("goes on after its end"), "{refused}");
}

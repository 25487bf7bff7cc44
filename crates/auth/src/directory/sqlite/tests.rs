//! The plans of statements.

use super::*;

#[test]
fn the_first_share_at_a_path_is_found_by_the_index_alone() {
    let folder = tempfile::tempdir().unwrap();
    let directory = SqliteDirectory::open(&folder.path().join("d.sqlite")).unwrap();
    let sql = format!("EXPLAIN QUERY PLAN {}", first_share());
    let at = (0, 1, 2, b"a".as_slice());
    let plan: Vec<String> = all(&directory.connection, &sql, at, |row| row.get(3)).unwrap();
    let plan = plan.join("; ");
    assert!(plan.contains("(owner=? AND holder=? AND path>?)"), "{plan}");
    assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{plan}");
}

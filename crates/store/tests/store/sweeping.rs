//! The cleanup of `pending` when a server starts.

use plimsoll_store::NewUpload;

use super::{any, with_home};

const PENDING: &str = "/data/accounts/alice/pending";
const ID: &str = "000102030405060708090a0b0c0d0e0f";

#[test]
fn remains_of_a_killed_server_are_removed() {
    with_home(|scene| async move {
        let disk = scene.host.disk();
        disk.write(format!("{PENDING}/{ID}"), b"half".to_vec()).unwrap();
        disk.write(format!("{PENDING}/1{}.record", &ID[1..]), b"torn".to_vec()).unwrap();
        disk.write(format!("{PENDING}/2{}.tree/a/b/c", &ID[1..]), b"x".to_vec()).unwrap();
        scene.started_again().await;
        scene.settle().await;
        assert!(scene.pending().is_empty(), "{:?}", scene.pending());
    });
}

#[test]
fn a_foreign_file_among_pending_uploads_stays() {
    with_home(|scene| async move {
        scene.host.disk().write(format!("{PENDING}/notes.txt"), b"the operator's".to_vec()).unwrap();
        scene.started_again().await;
        assert_eq!(scene.pending(), ["notes.txt"]);
    });
}

#[test]
fn a_kept_upload_is_still_there_after_a_start() {
    with_home(|scene| async move {
        let kept = scene
            .home
            .create_resumable(
                &scene.io,
                NewUpload { terms: any("a"), bytes: Some(5), metadata: String::new() },
            )
            .await
            .unwrap();
        let again = scene.started_again().await;
        assert_eq!(again.home.resumable_upload(&again.io, kept.id).await.unwrap(), kept);
    });
}

#[test]
fn a_record_whose_bytes_are_gone_is_no_upload() {
    with_home(|scene| async move {
        let kept = scene
            .home
            .create_resumable(
                &scene.io,
                NewUpload { terms: any("a"), bytes: Some(5), metadata: String::new() },
            )
            .await
            .unwrap();
        scene.host.disk().remove(format!("{PENDING}/{}", kept.id)).unwrap();
        let again = scene.started_again().await;
        assert!(again.home.resumable_uploads(&again.io).await.unwrap().is_empty());
        assert!(again.pending().is_empty());
    });
}

//! suppaftp, as a Rust program uses it.

use std::io::{Cursor, Read as _, Write as _};
use std::time::Duration;

use plimsoll_tests::binary::EngineKind;
use plimsoll_tests::binary::member::PASSWORD;
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;
use suppaftp::types::FileType;
use suppaftp::{FtpError, FtpStream, Mode, Status};

use super::Served;

fn log_in(served: &Served, mode: Mode) -> FtpStream {
    let mut ftp = FtpStream::connect(served.server.ftp_at()).unwrap();
    if mode == Mode::Active {
        ftp = ftp.active_mode(Duration::from_secs(10));
    }
    ftp.set_mode(mode);
    ftp.login("alice", PASSWORD).unwrap();
    ftp.transfer_type(FileType::Binary).unwrap();
    ftp
}

fn go_through(ftp: &mut FtpStream) {
    let bytes = noise(4, 2_000_000);
    assert_eq!(ftp.pwd().unwrap(), "/");
    ftp.mkdir("folder").unwrap();
    ftp.cwd("folder").unwrap();
    ftp.put_file("a b", &mut Cursor::new(&bytes)).unwrap();
    assert!(ftp.retr_as_buffer("a b").unwrap().into_inner() == bytes);
    assert_eq!(ftp.size("a b").unwrap(), bytes.len());
    assert_eq!(ftp.nlst(None).unwrap(), ["a b"]);
    assert_eq!(ftp.list(None).unwrap().len(), 1);
    assert!(ftp.mlsd(None).unwrap()[0].ends_with(" a b"));
    ftp.mdtm("a b").unwrap();
    assert!(ftp.feat().unwrap().contains_key("MLST"));
    ftp.resume_transfer(1_000_000).unwrap();
    assert!(ftp.retr_as_buffer("a b").unwrap().into_inner() == bytes[1_000_000..]);
    ftp.append_file("a b", &mut Cursor::new(b"more")).unwrap();
    assert_eq!(ftp.size("a b").unwrap(), bytes.len() + 4);
    ftp.rename("a b", "c").unwrap();
    // More than the kernel's buffers hold, so that the transfer is in progress when it is aborted.
    ftp.put_file("large", &mut Cursor::new(vec![0; 30_000_000])).unwrap();
    let mut reading = ftp.retr_as_stream("large").unwrap();
    reading.read_exact(&mut [0; 1_000]).unwrap();
    ftp.abort(reading).unwrap();
    ftp.rm("large").unwrap();
    let mut writing = ftp.put_with_stream("d").unwrap();
    writing.write_all(b"half").unwrap();
    ftp.abort(writing).unwrap();
    assert_eq!(ftp.nlst(None).unwrap(), ["c"], "what was stopped is not there");
    match ftp.rm("none") {
        Err(FtpError::UnexpectedResponse(told)) => assert_eq!(told.status, Status::FileUnavailable),
        other => panic!("{other:?}"),
    }
    ftp.rm("c").unwrap();
    ftp.cdup().unwrap();
    ftp.rmdir("folder").unwrap();
}

fn a_program_in_rust_goes_through_it(kind: EngineKind) {
    let served = Served::new(kind);
    for mode in [Mode::Passive, Mode::ExtendedPassive, Mode::Active] {
        let mut ftp = log_in(&served, mode);
        go_through(&mut ftp);
        ftp.quit().unwrap();
    }
    assert!(super::held(&served.home()).is_empty());
}

on_each_engine!(forks: a_program_in_rust_goes_through_it);

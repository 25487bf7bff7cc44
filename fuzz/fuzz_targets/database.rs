//! Responses of a MySQL, PostgreSQL or Redis server while a directory is opened: greeting,
//! authentication, rows and errors.
//!
//! Invariants: no input panics, waits for longer than the server is there, or makes the client take more
//! memory than a message may have. An input without a directory's tables in it never opens one.
#![no_main]

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixListener;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock};

use libfuzzer_sys::fuzz_target;
use plimsoll_auth::directory::open;

/// The name that PostgreSQL's clients append to the folder of the socket.
const SOCKET: &str = ".s.PGSQL.5432";

/// A server that sends given bytes to its next client, and then ends the connection.
struct Server {
    urls: [String; 3],
    sender: Sender<Vec<u8>>,
    is_over: Receiver<()>,
}

impl Server {
    fn start() -> Server {
        let folder = std::env::temp_dir().join(format!("plimsoll-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let path = folder.join(SOCKET);
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).expect("a socket");
        let (sender, to_say) = channel::<Vec<u8>>();
        let (over, is_over) = channel();
        std::thread::spawn(move || {
            for bytes in to_say {
                let (mut client, _) = listener.accept().expect("a client");
                // The client may be gone, because it has had enough.
                let _ = client.write_all(&bytes).and_then(|()| client.shutdown(Shutdown::Write));
                let _ = client.read_to_end(&mut Vec::new());
                over.send(()).expect("the target waits");
            }
        });
        let (folder, path) = (folder.display(), path.display());
        let urls = [
            format!("mysql://me:sesame@/files?socket={path}"),
            format!("postgres://me:sesame@/files?host={folder}"),
            format!("redis+unix://:sesame@{path}"),
        ];
        Server { urls, sender, is_over }
    }
}

// The first byte selects the kind of server; the rest is its bytes.
fuzz_target!(|bytes: &[u8]| {
    static SERVER: OnceLock<Mutex<Server>> = OnceLock::new();
    let Some((selector, bytes)) = bytes.split_first() else { return };
    let server = SERVER.get_or_init(|| Mutex::new(Server::start())).lock().expect("no panic");
    server.sender.send(bytes.to_vec()).expect("the server runs");
    let opened = open(&server.urls[usize::from(*selector) % server.urls.len()]);
    if let Err(error) = &opened {
        assert!(!error.to_string().contains("sesame"), "{error}");
    }
    drop(opened);
    server.is_over.recv().expect("the server runs");
});

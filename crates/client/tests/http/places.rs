//! The addresses that a client connects to.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use plimsoll_client::http::{Client, Error, Resolve};
use plimsoll_io::sim::{Faults, Sim};
use plimsoll_io::{Address, Io, join};

use crate::{Server, answer_once, get, status_and_body};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Runs a client for `url` next to a host that listens at `at`, if that is given.
fn to(url: &str, at: Option<&str>, client: impl AsyncFnOnce(Client, Io) + 'static) {
    let sim = Sim::new(0, Faults::none());
    let (near, far) = (sim.host("client"), sim.host("server"));
    let listener = at.map(|at| far.io().listen(&at.parse::<Address>().unwrap()).unwrap());
    let (io, server_io, url) = (near.io(), far.io(), url.parse().unwrap());
    sim.run(&near, async move {
        let server = async {
            if let Some(listener) = listener {
                answer_once(Server { listener, io: server_io }, OK.to_vec()).await;
            }
        };
        join(client(Client::new(&io, url), io.clone()), server).await;
    });
}

fn resolve(answer: fn() -> io::Result<Vec<core::net::SocketAddr>>) -> (Resolve, Rc<RefCell<Vec<String>>>) {
    let asked = Rc::<RefCell<Vec<String>>>::default();
    let seen = Rc::clone(&asked);
    let resolve: Resolve = Rc::new(move |host, port| {
        seen.borrow_mut().push(format!("{host} {port}"));
        Box::pin(async move { answer() })
    });
    (resolve, asked)
}

#[test]
fn addresses_localhost_and_unix_sockets_need_no_resolver() {
    for (url, at) in [
        ("http://127.0.0.1:8080", "127.0.0.1:8080"),
        ("http://localhost:8080/a", "127.0.0.1:8080"),
        ("http://localhost:8080/a", "[::1]:8080"),
        ("http://[::1]", "[::1]:80"),
        ("unix:/run/plimsoll.sock", "unix:/run/plimsoll.sock"),
    ] {
        to(url, Some(at), async |mut client, _| {
            assert_eq!(status_and_body(client.send(get("/")).await).await.unwrap().0, 200);
        });
    }
}

#[test]
fn a_client_tries_each_address_of_a_resolved_name() {
    to("http://files.example:81", Some("127.0.0.1:8080"), async |client, _| {
        let (resolve, asked) =
            resolve(|| Ok(vec!["127.0.0.1:9".parse().unwrap(), "127.0.0.1:8080".parse().unwrap()]));
        let mut client = client.with_resolve(resolve);
        assert_eq!(status_and_body(client.send(get("/")).await).await.unwrap().0, 200);
        assert_eq!(*asked.borrow(), ["files.example 81"]);
    });
}

#[test]
fn a_name_without_an_address_is_a_resolve_error() {
    to("http://files.example", None, async |mut client, _| {
        let error = status_and_body(client.send(get("/")).await).await.unwrap_err();
        assert!(matches!(error, Error::Resolve { .. }), "no resolver: {error}");
    });
    to("http://files.example", None, async |client, _| {
        let (resolve, _) = resolve(|| Err(io::ErrorKind::NotFound.into()));
        let error = status_and_body(client.with_resolve(resolve).send(get("/")).await).await.unwrap_err();
        assert!(error.to_string().contains("files.example"), "{error}");
    });
    to("http://files.example", None, async |client, _| {
        let (resolve, _) = resolve(|| Ok(Vec::new()));
        let error = status_and_body(client.with_resolve(resolve).send(get("/")).await).await.unwrap_err();
        assert!(matches!(error, Error::Connect { .. }), "{error}");
    });
}

#[test]
fn a_refused_connection_is_an_error_with_advice() {
    to("http://127.0.0.1:8080/a", None, async |mut client, _| {
        let error = status_and_body(client.send(get("/")).await).await.unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("Cannot connect to http://127.0.0.1:8080/a: "), "{text}");
        assert!(text.ends_with("Check that the server is running and that this is its address."), "{text}");
    });
}

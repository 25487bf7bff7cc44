//! A server that accepts TLS 1.3 alone (`--tls-min-version 1.3`), at each of its listeners.

use plimsoll_tests::binary::{EngineKind, free_address};
use plimsoll_tests::on_each_engine;

use super::Secure;

fn every_listener_of_a_server_of_tls_13_alone_refuses_tls_12(kind: EngineKind) {
    // Under the engine `process`, two processes would get a free port if both listened at port 0.
    let ftps = free_address();
    let metrics = free_address();
    let more = ["--ftp", "127.0.0.1:0", "--ftps", &ftps, "--metrics-tls", &metrics];
    for min in ["1.2", "1.3"] {
        let secure = Secure::start(kind, &[&more[..], &["--tls-min-version", min]].concat());
        let (direct, starttls): (&[&str], &[&str]) = (&[], &["-starttls", "ftp"]);
        for (at, options) in [
            (secure.at(), direct),
            (ftps.parse().unwrap(), direct),
            (metrics.parse().unwrap(), direct),
            (secure.server.ftp_at(), starttls),
        ] {
            let newer = super::openssl(at, &[options, &["-tls1_3"]].concat(), "");
            assert!(newer.text().contains("TLSv1.3"), "{at} {options:?}: {} {}", newer.text(), newer.stderr);
            let older = super::openssl(at, &[options, &["-tls1_2"]].concat(), "");
            let is_refused = older.stderr.contains("alert protocol version");
            assert_eq!(is_refused, min == "1.3", "{at} {options:?}: {} {}", older.text(), older.stderr);
        }
        let old = secure.curl(&["--tls-max", "1.2", &secure.url("/healthz")]);
        assert_eq!(old.status.success(), min == "1.2", "{}", old.stderr);
        secure.curl(&["--tlsv1.3", &secure.url("/healthz")]).well();
    }
}

on_each_engine!(forks: every_listener_of_a_server_of_tls_13_alone_refuses_tls_12);

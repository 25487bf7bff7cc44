//! FTP over TLS, with clients that verify the server's certificate: files in both directions, and what each
//! client reads when it is refused.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use plimsoll_tests::binary::member::PASSWORD;
use plimsoll_tests::binary::tool::{self, Done};
use plimsoll_tests::binary::{EngineKind, Member, Server, free_address};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;

use super::lftp::SETTINGS;
use super::{Served, assert_same, fill};

/// Returns a file of the tests' certificates.
pub(super) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/tls").join(name)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Serves explicit and implicit TLS, with the certificate of `localhost`.
pub(super) fn over_tls(kind: EngineKind, more: &[&str]) -> Served {
    let folder = tempfile::tempdir().unwrap();
    // A key that others can read is refused.
    let key = folder.path().join("key.pem");
    std::fs::copy(data("server.key"), &key).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let certificate = data("server.pem");
    let tls = ["--certificate", text(&certificate), "--key", text(&key)];
    // A port that is free now: under the engine `process`, two processes would get it if both listened there.
    let ftps = free_address();
    let at = ["--ftp", "127.0.0.1:0", "--ftps", &ftps];
    let server = Server::on_data(kind, &folder.path().join("data"), &[&tls[..], &at, more].concat());
    let alice = Member::new(&server, "alice");
    Served { server, alice, folder }
}

fn python(kind: EngineKind, reuse: &str) {
    let served = over_tls(kind, &["--ftp-tls-reuse", reuse]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/binary/ftp/tls.py");
    let mut python = served.client("python3");
    python.args([script, &served.port(), "alice", PASSWORD, text(&data("ca.pem")), reuse]);
    let done = tool::run(&mut python).well();
    assert_eq!(done.text(), "done\n", "{}", done.stderr);
}

fn pythons_client_works_as_it_is_and_must_resume_once_it_has(kind: EngineKind) {
    python(kind, "auto");
}

fn pythons_client_is_refused_with_the_reason_where_it_must_resume(kind: EngineKind) {
    python(kind, "require");
}

fn curl(served: &Served, args: &[&str]) -> Done {
    let mut curl = served.client("curl");
    let login = format!("alice:{PASSWORD}");
    curl.args(["-q", "--silent", "--show-error", "--max-time", "30", "--user", &login]);
    tool::run(curl.arg("--cacert").arg(data("ca.pem")).args(args))
}

fn curl_transfers_several_files_in_a_session_of_each_kind(kind: EngineKind) {
    let served = over_tls(kind, &["--ftp-tls", "require"]);
    let (up, bytes) = (served.folder("up"), noise(1, 3_000_000));
    for name in ["a", "b", "c", "d"] {
        std::fs::write(up.join(name), &bytes).unwrap();
    }
    let explicit = format!("ftp://localhost:{}", served.port());
    let implicit = format!("ftps://localhost:{}", served.server.ftps_at().port());
    // Not in active mode, which curl 7.87 and 7.88 do not encrypt.
    for (url, more) in
        [(&explicit, &["--ssl-reqd"][..]), (&explicit, &["--ssl-reqd", "--tls-max", "1.2"]), (&implicit, &[])]
    {
        let to = format!("{url}/");
        curl(&served, &[more, &["-T", "up/{a,b,c,d}", &to]].concat()).well();
        assert_same(&up, &served.home());
        let got = served.folder("got");
        let from = format!("{url}/{{a,b,c,d}}");
        curl(&served, &[more, &["--output", "got/#1", &from]].concat()).well();
        assert_same(&up, &got);
        std::fs::remove_dir_all(got).unwrap();
        for name in ["a", "b", "c", "d"] {
            std::fs::remove_file(served.home().join(name)).unwrap();
        }
    }
    let clear = curl(&served, &["-T", "up/a", &format!("{explicit}/")]);
    assert_eq!(clear.status.code(), Some(67), "a login in clear: {}", clear.stderr);
    let stranger =
        curl(&served, &["--ssl-reqd", "--cacert", text(&data("other.pem")), &format!("{explicit}/")]);
    assert_eq!(stranger.status.code(), Some(60), "an unknown authority: {}", stranger.stderr);
}

fn lftp_mirrors_a_folder_up_and_down(kind: EngineKind) {
    let served = over_tls(kind, &["--ftp-tls", "require"]);
    let (up, down) = (served.folder("up"), served.folder("down"));
    fill(&up);
    let ca = data("ca.pem");
    let explicit = format!("ftp://localhost:{}", served.port());
    let implicit = format!("ftps://localhost:{}", served.server.ftps_at().port());
    for url in [explicit, implicit] {
        let lftp = |script: &str| {
            let tls = "set ftp:ssl-force yes; set ftp:ssl-protect-data yes; set ftp:ssl-protect-list yes";
            let verified = format!("set ssl:verify-certificate yes; set ssl:ca-file {}", text(&ca));
            let open = format!("open -u alice,'{PASSWORD}' {url}");
            let mut lftp = served.client("lftp");
            lftp.arg("-c").arg(format!("{SETTINGS}; {tls}; {verified}; {open}; {script}"));
            tool::run(&mut lftp).well()
        };
        lftp("mirror -R --parallel=3 up mirrored");
        assert_same(&up, &served.home().join("mirrored"));
        lftp("mirror --parallel=3 mirrored down");
        assert_same(&up, &down);
        std::fs::remove_dir_all(&down).unwrap();
        std::fs::remove_dir_all(served.home().join("mirrored")).unwrap();
    }
}

fn openssl_speaks_ftp_and_a_client_of_another_protocol_gets_an_alert(kind: EngineKind) {
    let served = over_tls(kind, &[]);
    let openssl = |more: &[&str], input: &str| {
        let mut openssl = served.client("openssl");
        openssl.args(["s_client", "-starttls", "ftp", "-connect", &format!("127.0.0.1:{}", served.port())]);
        openssl.args(["-verify_return_error", "-verify_hostname", "localhost", "-CAfile"]);
        tool::run(openssl.arg(data("ca.pem")).args(more).stdin(tool::typed(input)))
    };
    let done = openssl(&["-crlf", "-ign_eof", "-alpn", "ftp"], "FEAT\nQUIT\n").well();
    let output = done.text();
    assert!(
        output.contains("Verify return code: 0 (ok)") && output.contains("ALPN protocol: ftp"),
        "{output}"
    );
    assert!(output.contains(" AUTH TLS") && output.contains("221 "), "{output}");
    let http = openssl(&["-alpn", "http/1.1"], "");
    assert!(!http.status.success(), "{}", http.text());
    assert!(http.stderr.contains("no application protocol"), "{}", http.stderr);
}

on_each_engine!(forks:
    pythons_client_works_as_it_is_and_must_resume_once_it_has,
    curl_transfers_several_files_in_a_session_of_each_kind,
    pythons_client_is_refused_with_the_reason_where_it_must_resume,
    lftp_mirrors_a_folder_up_and_down,
    openssl_speaks_ftp_and_a_client_of_another_protocol_gets_an_alert,
);

//! A real ACME server, `pebble`, with its DNS server. Both end with the test.

use std::fs;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::free_port;

const CERTIFICATE: &str = include_str!("../../../../tests/data/tls/server.pem");
const KEY: &str = include_str!("../../../../tests/data/tls/server.key");
/// How long a program may take to listen.
const START_TIME: Duration = Duration::from_secs(20);

/// The id and key of an account at the operator of the server, for an external account binding.
pub(crate) const EXTERNAL: (&str, &str) =
    ("kid-1", "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W");

/// The faults and settings of the server.
#[derive(Default)]
pub(crate) struct Behaviour {
    /// Seconds for which its certificates are valid.
    pub(crate) valid_seconds: u32,
    /// The share of nonces that it refuses, in percent.
    pub(crate) bad_nonces: u32,
    /// The longest time that a validation takes, in seconds.
    pub(crate) slow_seconds: u32,
    /// Whether it requires an external account binding.
    pub(crate) requires_external: bool,
}

/// A running server.
pub(crate) struct Pebble {
    folder: tempfile::TempDir,
    programs: Vec<Child>,
    port: u16,
    management: u16,
}

impl Pebble {
    /// Starts a server that validates every name at this port of this machine.
    pub(crate) fn start(behaviour: &Behaviour, http: u16) -> Pebble {
        let folder = tempfile::tempdir().unwrap();
        let [port, management, dns, dns_management] = [(); 4].map(|()| free_port());
        let [certificate, key] = [("server.pem", CERTIFICATE), ("server.key", KEY)].map(|(name, text)| {
            fs::write(folder.path().join(name), text).unwrap();
            folder.path().join(name)
        });
        let config = serde_json::json!({"pebble": {
            "listenAddress": format!("127.0.0.1:{port}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": certificate,
            "privateKey": key,
            "httpPort": http,
            "tlsPort": http,
            "externalAccountBindingRequired": behaviour.requires_external,
            "externalAccountMACKeys": {(EXTERNAL.0): EXTERNAL.1},
            "certificateValidityPeriod": behaviour.valid_seconds,
        }});
        let file = folder.path().join("pebble.json");
        fs::write(&file, config.to_string()).unwrap();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let mut names = Command::new("pebble-challtestsrv");
        names.args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-defaultIPv6", ""]);
        names.args([
            "-dns01",
            &format!("127.0.0.1:{dns}"),
            "-management",
            &format!("127.0.0.1:{dns_management}"),
        ]);
        let mut pebble = Command::new("pebble");
        pebble.arg("-config").arg(&file).args(["-dnsserver", &format!("127.0.0.1:{dns}")]);
        pebble.env("PEBBLE_WFE_NONCEREJECT", behaviour.bad_nonces.to_string());
        pebble.env("PEBBLE_AUTHZREUSE", "0");
        if behaviour.slow_seconds == 0 {
            pebble.env("PEBBLE_VA_NOSLEEP", "1");
        }
        pebble.env("PEBBLE_VA_SLEEPTIME", behaviour.slow_seconds.to_string());
        let started = [names, pebble].map(|mut command| {
            command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log.try_clone().unwrap());
            command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}; tests/install installs it"))
        });
        let pebble = Pebble { folder, programs: started.into(), port, management };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(began.elapsed() < START_TIME, "pebble does not listen: {}", pebble.log());
            sleep(Duration::from_millis(20));
        }
        pebble
    }

    /// The URL of its directory.
    pub(crate) fn directory(&self) -> String {
        format!("https://localhost:{}/dir", self.port)
    }

    /// The URL of the certificate that vouches for those that it issues.
    pub(crate) fn root(&self) -> String {
        format!("https://localhost:{}/roots/0", self.management)
    }

    /// Returns its log so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        for program in &mut self.programs {
            program.kill().unwrap();
            program.wait().unwrap();
        }
    }
}

//! nginx and lighttpd, as origins of a proxy or in front of it.
//!
//! `tests/install` installs them. They run in the foreground, and end with their values.

use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use plimsoll_tests::binary::tool::{first_installed, kill};
use plimsoll_tests::binary::{free_port, process, tool, until};
use rustix::process::{Pid, Signal, kill_process};

/// The name of the access log in the working folder of a server.
pub(super) const ACCESS_LOG: &str = "access.log";

/// A web server that runs until it is dropped.
pub(super) struct WebServer {
    child: Child,
    pub(super) port: u16,
    scheme: &'static str,
}

impl WebServer {
    /// Starts nginx with these directives of its only server.
    pub(super) fn nginx(work: &Path, server: &str) -> WebServer {
        WebServer::nginx_listening(work, "http", server)
    }

    /// As [`WebServer::nginx`], over TLS, with the certificate of the tests named so, which is copied to the
    /// working folder.
    pub(super) fn nginx_over_tls(work: &Path, certificate: &str, server: &str) -> WebServer {
        copy_certificate(certificate, work);
        let at = work.display();
        let pair = format!("ssl_certificate {at}/tls.pem; ssl_certificate_key {at}/tls.key;");
        WebServer::nginx_listening(work, "https", &format!("{pair} {server}"))
    }

    fn nginx_listening(work: &Path, scheme: &'static str, server: &str) -> WebServer {
        let ssl = if scheme == "https" { " ssl" } else { "" };
        let (port, work) = (free_port(), work.display());
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let paths = paths.map(|name| format!("{name}_temp_path {work}/{name};\n")).concat();
        let text = format!(
            "daemon off;\npid {work}/nginx.pid;\nerror_log stderr;\nevents {{}}\n\
             http {{\naccess_log {work}/{ACCESS_LOG};\n{paths}\
             server {{ listen 127.0.0.1:{port}{ssl}; {server} }}\n}}\n",
        );
        std::fs::write(format!("{work}/nginx.conf"), text).unwrap();
        let mut nginx = tool(&first_installed(&["nginx", "/usr/sbin/nginx"]));
        nginx.args(["-p", &work.to_string(), "-e", "stderr", "-c", &format!("{work}/nginx.conf")]);
        WebServer::spawn(nginx, port, scheme)
    }

    /// Starts nginx with the files of `root`.
    pub(super) fn nginx_with_files(work: &Path, root: &Path) -> WebServer {
        permit_all(root);
        WebServer::nginx(work, &format!("root {};", root.display()))
    }

    /// As [`WebServer::nginx_with_files`], over TLS.
    pub(super) fn nginx_with_files_over_tls(work: &Path, root: &Path) -> WebServer {
        permit_all(root);
        WebServer::nginx_over_tls(work, "server", &format!("root {};", root.display()))
    }

    /// Starts lighttpd with the files of `root`.
    pub(super) fn lighttpd(work: &Path, root: &Path) -> WebServer {
        let (port, work, root) = (free_port(), work.display(), root.display());
        let text = format!(
            "server.modules = (\"mod_accesslog\")\nserver.document-root = \"{root}\"\n\
             server.bind = \"127.0.0.1\"\nserver.port = {port}\n\
             accesslog.filename = \"{work}/{ACCESS_LOG}\"\nmimetype.assign = (\".txt\" => \"text/plain\")\n",
        );
        std::fs::write(format!("{work}/lighttpd.conf"), text).unwrap();
        let mut lighttpd = tool(&first_installed(&["lighttpd", "/usr/sbin/lighttpd"]));
        lighttpd.args(["-D", "-f", &format!("{work}/lighttpd.conf")]);
        WebServer::spawn(lighttpd, port, "http")
    }

    fn spawn(mut command: Command, port: u16, scheme: &'static str) -> WebServer {
        command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("tests/install brings it");
        until("the web server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        WebServer { child, port, scheme }
    }

    /// Returns the URL of a path that begins with a slash.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}://127.0.0.1:{}{path}", self.scheme, self.port)
    }

    /// Makes nginx read its certificate again. Its earlier worker accepts connections until it has ended.
    pub(super) fn reload(&self) {
        // It misses a signal that comes before it has started one.
        until("nginx has a worker", || !process::children(self.child.id()).is_empty());
        let before = process::children(self.child.id());
        kill_process(Pid::from_child(&self.child), Signal::HUP).unwrap();
        until("the earlier workers have ended", || !before.iter().any(|worker| process::is_running(*worker)));
    }

    /// Ends the server, so that its log is complete.
    pub(super) fn end(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        until("the web server ends", || self.child.try_wait().unwrap().is_some());
    }
}

/// Returns the path of a file among the certificates of the tests.
pub(super) fn certificate_file(name: &str) -> String {
    format!("{}/data/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Copies a certificate of the tests and its key, as those of a web server.
pub(super) fn copy_certificate(name: &str, work: &Path) {
    for kind in ["pem", "key"] {
        let from = certificate_file(&format!("{name}.{kind}"));
        std::fs::copy(from, work.join(format!("tls.{kind}"))).unwrap();
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        kill(&mut self.child);
        let _ = self.child.wait();
    }
}

/// Permits all accounts to list a folder: nginx may serve files as another user.
pub(super) fn permit_all(folder: &Path) {
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
}

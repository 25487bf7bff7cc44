//! nginx and lighttpd, as origins of a proxy or in front of it.
//!
//! `tests/install` installs them. They run in the foreground, and end with their values.

use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use plimsoll_tests::binary::tool::{first_installed, kill};
use plimsoll_tests::binary::{tool, until};
use rustix::process::{Pid, Signal, kill_process};

use super::reverse_proxy::free_port;

/// The name of the access log in the working folder of a server.
pub(super) const ACCESS_LOG: &str = "access.log";

/// A web server that runs until it is dropped.
pub(super) struct WebServer {
    child: Child,
    pub(super) port: u16,
}

impl WebServer {
    /// Starts nginx with these directives of its only server.
    pub(super) fn nginx(work: &Path, server: &str) -> WebServer {
        let (port, work) = (free_port(), work.display());
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let paths = paths.map(|name| format!("{name}_temp_path {work}/{name};\n")).concat();
        let text = format!(
            "daemon off;\npid {work}/nginx.pid;\nerror_log stderr;\nevents {{}}\n\
             http {{\naccess_log {work}/{ACCESS_LOG};\n{paths}\
             server {{ listen 127.0.0.1:{port}; {server} }}\n}}\n",
        );
        std::fs::write(format!("{work}/nginx.conf"), text).unwrap();
        let mut nginx = tool(&first_installed(&["nginx", "/usr/sbin/nginx"]));
        nginx.args(["-p", &work.to_string(), "-e", "stderr", "-c", &format!("{work}/nginx.conf")]);
        WebServer::spawn(nginx, port)
    }

    /// Starts nginx with the files of `root`.
    pub(super) fn nginx_with_files(work: &Path, root: &Path) -> WebServer {
        permit_all(root);
        WebServer::nginx(work, &format!("root {};", root.display()))
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
        WebServer::spawn(lighttpd, port)
    }

    fn spawn(mut command: Command, port: u16) -> WebServer {
        command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("tests/install brings it");
        until("the web server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        WebServer { child, port }
    }

    /// Returns the URL of a path that begins with a slash.
    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Ends the server, so that its log is complete.
    pub(super) fn end(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        until("the web server ends", || self.child.try_wait().unwrap().is_some());
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        kill(&mut self.child);
        let _ = self.child.wait();
    }
}

/// Permits all accounts to list a folder: nginx may serve files as another user.
fn permit_all(folder: &Path) {
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
}

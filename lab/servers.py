"""Servers of a folder's files, for the measurements beside this: plimsoll under an engine, or nginx.

It measures nothing. A server has one worker, logs no requests, and ends with the block that it is served in.
"""
import contextlib
import pathlib
import resource
import socket
import subprocess
import time

NGINX = """worker_processes 1; daemon off; pid {dir}/nginx.pid; error_log {dir}/nginx.log crit; worker_rlimit_nofile {files};
events {{ worker_connections {files}; }}
http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; keepalive_timeout 600;
  open_file_cache max=20000; client_body_temp_path {dir}/body;
  server {{ {listen} root {root}; }} }}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def command_of(name, options, folder, root, port):
    """How to start nginx, or plimsoll under the engine `name`."""
    addresses = getattr(options, "addresses", ["127.0.0.1"])
    if name == "nginx":
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 100
        configuration = pathlib.Path(folder) / "nginx.conf"
        listen = " ".join(f"listen {address}:{port} backlog=20000;" for address in addresses)
        configuration.write_text(NGINX.format(dir=folder, listen=listen, root=root, files=files))
        return [options.nginx, "-p", str(folder), "-c", str(configuration)]
    command = [options.plimsoll, "serve", "--accounts", "false", "--site", f"/={root}", "--access-log", "off"]
    command += ["--threads", "1", "--engine", name]
    return command + [word for address in addresses for word in ("--http", f"{address}:{port}")]


def until_it_listens(port, command):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise SystemExit(f"it does not listen: {command}")


@contextlib.contextmanager
def serving(name, options, folder, root, core=None):
    """Serves `root`, on one core if that is said: the process and its port. `folder` is for its own files."""
    port = free_port()
    command = command_of(name, options, folder, root, port)
    pinned = [] if core is None else ["taskset", "-c", core]
    server = subprocess.Popen([*pinned, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until_it_listens(port, command)
        yield server, port
    finally:
        server.terminate()
        server.wait(60)

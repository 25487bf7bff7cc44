#!/usr/bin/env python3
"""The memory that a server keeps after bursts of log-ins and of uploads.

It prints the resident memory (RSS, MiB) at the start, after each burst, and while the server is idle. Every download is
compared with its upload. The allocator is chosen by variables of the server's environment.

  lab/memory.py --plimsoll PATH [--engine NAME] [--seconds S] [--env NAME=VALUE ...]

  lab/memory.py --plimsoll PATH                                       the heap as the server bounds it
  lab/memory.py --plimsoll PATH --env MALLOC_PERTURB_=0               glibc's defaults: any MALLOC_ variable restores them
  lab/memory.py --plimsoll PATH --env MALLOC_PERTURB_=0 LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libjemalloc.so.2
"""
import argparse
import http.client
import json
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import time

PASSWORD = "correct horse battery"
LOG_IN_CLIENTS, UPLOAD_CLIENTS, SMALL_CLIENTS = 60, 64, 100
LARGE_BYTES, LARGE_FILES, SMALL_FILES = 4 << 20, 6, 60
IDLE_SECONDS = (5, 25, 30)


def resident_mib(pid):
    rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"^Rss:\s+(\d+)", rollup, re.M)[1]) / 1024


def at_once(count, act):
    threads = [threading.Thread(target=act, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Client:
    def __init__(self, port, token=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", port)
        self.fields = {"Authorization": f"Bearer {token}"} if token else {}

    def ask(self, method, path, body=None):
        self.connection.request(method, path, body, self.fields)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def log_in(self):
        status, body = self.ask("POST", "/api/sessions", json.dumps({"name": "alice", "password": PASSWORD}))
        return json.loads(body)["token"] if status == 201 else None


def measure(pid, port, seconds):
    rows, log_ins = [("start", resident_mib(pid))], []

    def log_in(_):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if Client(port).log_in():
                log_ins.append(1)

    at_once(LOG_IN_CLIENTS, log_in)
    rows.append((f"after {len(log_ins)} log-ins of {LOG_IN_CLIENTS} clients", resident_mib(pid)))
    token, large = Client(port).log_in(), os.urandom(LARGE_BYTES)

    def upload(number):
        client = Client(port, token)
        for _ in range(LARGE_FILES):
            assert client.ask("PUT", f"/files/large{number}", large)[0] in (201, 204)
            assert client.ask("GET", f"/files/large{number}")[1] == large

    at_once(UPLOAD_CLIENTS, upload)
    rows.append((f"after {UPLOAD_CLIENTS * LARGE_FILES} files of 4 MiB, up and down", resident_mib(pid)))

    def upload_small(number):
        client = Client(port, token)
        for file in range(SMALL_FILES):
            assert client.ask("PUT", f"/files/small{number}-{file}", b"x" * 1000)[0] == 201

    at_once(SMALL_CLIENTS, upload_small)
    rows.append((f"after {SMALL_CLIENTS * SMALL_FILES} files of 1 KB", resident_mib(pid)))
    idle = 0
    for pause in IDLE_SECONDS:
        time.sleep(pause)
        idle += pause
        rows.append((f"after {idle} s without a request", resident_mib(pid)))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plimsoll", required=True)
    parser.add_argument("--engine", default="epoll")
    parser.add_argument("--seconds", type=int, default=15, help="of the burst of log-ins (15)")
    parser.add_argument("--env", nargs="*", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    environment = os.environ | dict(pair.split("=", 1) for pair in options.env)
    with tempfile.TemporaryDirectory() as folder:
        data = ["--data", f"{folder}/data"]
        add = [options.plimsoll, "account", "add", "alice", *data]
        subprocess.run(add, env=os.environ | {"PLIMSOLL_PASSWORD": PASSWORD}, check=True, stdout=subprocess.DEVNULL)
        serve = [options.plimsoll, "serve", *data, "--http", "127.0.0.1:0", "--engine", options.engine,
                 "--access-log", "off", "--transfer-log", "off"]
        server = subprocess.Popen(serve, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            found = (re.search(r"http://127\.0\.0\.1:(\d+)", line) for line in server.stdout)
            port = int(next(match for match in found if match)[1])
            for what, mib in measure(server.pid, port, options.seconds):
                print(f"{mib:6.0f} MiB  {what}", flush=True)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()

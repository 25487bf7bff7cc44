#!/usr/bin/env python3
"""The memory that a server keeps after bursts of log-ins and of uploads, or during minutes of mixed load.

It prints the resident memory (RSS, MiB) at the start, after each burst, and while the server is idle; or, with
--minutes, after each twelfth of the load, a minute after its end, and at most. Every download is compared with its upload.
The allocator is chosen by variables of the server's environment.

  lab/memory.py --plimsoll PATH [--engine NAME] [--seconds S | --minutes M] [--env NAME=VALUE ...]

  lab/memory.py --plimsoll PATH                                       the heap as the server bounds it
  lab/memory.py --plimsoll PATH --env MALLOC_PERTURB_=0               glibc's defaults: any MALLOC_ variable restores them
  lab/memory.py --plimsoll PATH --env MALLOC_PERTURB_=0 LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libjemalloc.so.2
"""
import argparse
import http.client
import json
import os
import pathlib
import random
import re
import subprocess
import tempfile
import threading
import time

PASSWORD = "correct horse battery"
LOG_IN_CLIENTS, UPLOAD_CLIENTS, SMALL_CLIENTS = 60, 64, 100
LARGE_BYTES, LARGE_FILES, SMALL_FILES = 4 << 20, 6, 60
IDLE_SECONDS = (5, 25, 30)
# The mixed load: clients, the names of each, the largest file (sizes are spread evenly on a logarithmic scale), the
# part of the requests that are log-ins, and each client's pause behind a request.
MIXED_CLIENTS, MIXED_NAMES, MIXED_BYTES_MAX, MIXED_LOG_INS, MIXED_PAUSE_SECONDS = 16, 8, 4 << 20, 0.05, 0.05
MIXED_SAMPLES = 12


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


def measure_mixed_load(pid, port, minutes):
    yield "start", resident_mib(pid)
    begun = time.monotonic()
    token, done, failures = Client(port).log_in(), [0] * MIXED_CLIENTS, []

    def load(number):
        try:
            client, choose, kept = Client(port, token), random.Random(number), {}
            while time.monotonic() < begun + minutes * 60:
                path = f"/files/mixed{number}-{choose.randrange(MIXED_NAMES)}"
                act = choose.random()
                if act < MIXED_LOG_INS:
                    # It logs out again: an account has a limited number of sessions, and a new one ends the oldest.
                    # A log-in that the server refuses as one of too many has no token.
                    own = Client(port).log_in()
                    assert own is None or Client(port, own).ask("DELETE", "/api/sessions/current")[0] == 204
                elif act < 0.5:
                    kept[path] = choose.randbytes(int(MIXED_BYTES_MAX ** choose.random()))
                    status = client.ask("PUT", path, kept[path])[0]
                    assert status in (201, 204), status
                elif path in kept and act < 0.9:
                    status, body = client.ask("GET", path)
                    assert (status, body) == (200, kept[path]), f"{path}: {status}"
                elif path in kept:
                    assert client.ask("DELETE", path)[0] == 204, path
                    del kept[path]
                else:
                    assert client.ask("GET", "/files/?after=&limit=100")[0] == 200
                done[number] += 1
                time.sleep(MIXED_PAUSE_SECONDS)
        except Exception as failure:
            failures.append(f"client {number}: {failure!r}")

    clients = [threading.Thread(target=load, args=(number,), daemon=True) for number in range(MIXED_CLIENTS)]
    for client in clients:
        client.start()
    for sample in range(1, MIXED_SAMPLES + 1):
        time.sleep(max(0, begun + minutes * 60 * sample / MIXED_SAMPLES - time.monotonic()))
        if failures:
            raise SystemExit("lab/memory.py: " + "; ".join(failures))
        yield f"after {minutes * sample / MIXED_SAMPLES:g} minutes and {sum(done)} requests", resident_mib(pid)
    for client in clients:
        client.join()
    if failures:
        raise SystemExit("lab/memory.py: " + "; ".join(failures))
    time.sleep(60)
    yield "after 60 s without a request", resident_mib(pid)
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    yield "at most", int(re.search(r"^VmHWM:\s+(\d+)", status, re.M)[1]) / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plimsoll", required=True)
    parser.add_argument("--engine", default="epoll")
    parser.add_argument("--seconds", type=int, default=15, help="of the burst of log-ins (15)")
    parser.add_argument("--minutes", type=float, help="of mixed load, instead of the bursts")
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
            rows = (measure_mixed_load(server.pid, port, options.minutes) if options.minutes
                    else measure(server.pid, port, options.seconds))
            for what, mib in rows:
                print(f"{mib:6.0f} MiB  {what}", flush=True)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()

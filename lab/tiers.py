#!/usr/bin/env python3
"""What the tiers cost, and what kept connections are worth: ratios of two ways to serve the same.

Each case has two sides that are asked the same by the load generator, in turn, round after round, so that
whatever else the machine does hits both alike; a ratio is of the same round. A process can be faster or slower than
another of the same program for as long as it lives (where its memory lies), so the servers are started anew every few
rounds. All servers of a side, its database among them, share one core; the generator has another. It verifies what
comes, and an error ends the run. It is a benchmark and decides nothing: read the table, which has the median of the
ratios and the least and the greatest, of requests a second and of requests for each second of the servers' processor
time. Where the generator was the limit, the second is the one to read.

  lab/tiers.py --plimsoll PATH [--rounds N] [--each N] [--seconds S] [--only CASE,CASE] [--users N]

  basic           1 KB of an account, with its password at each request, by the same of a site
  classic-get     1 KB by classic from accounts on Redis, by the same of the servers of document 000: thread engine,
                  authentication server apart, a connection to it and to the database for each request
  classic-new     accounts made by classic on Redis, by the same of those servers, with fast hashes on both sides
  classic-durable accounts made by classic on MariaDB that syncs each commit, by one connection for each of them
  store           1 MB through a front from a storage server, by a server that keeps its files itself
  table-3-LOAD    table 3 of document 000: the same servers, on MariaDB, whose authentication server has a thread for
                  each connection, by a process for each; LOAD is new, 1K, 10K, 100K, 1M or 10M (a file that is got)

Redis and MariaDB are servers of its own (tests/database), which end with it.
"""
import argparse
import contextlib
import functools
import json
import os
import pathlib
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent.parent
PASSWORD = "a password of the laboratory"
SERVERS, GENERATOR = "0", "1"


class Side:
    """Servers that are one way to serve, and where they are asked."""

    all = []

    def __init__(self, program, core=SERVERS):
        self.program, self.core = program, core
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="plimsoll-tiers."))
        self.running, self.programs = contextlib.ExitStack(), []
        Side.all.append(self)
        secret = self.folder / "secret"
        secret.write_text(secrets.token_hex(32) + "\n")
        secret.chmod(0o600)

    def database(self, kind, *how):
        """An empty database of a server of its own: its URL."""
        command = ["taskset", "-c", self.core, str(HERE / "tests/database"), kind, *how]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.programs.append(server.pid)
        self.running.callback(server.wait)
        self.running.callback(server.stdin.close)
        assert server.stdout.readline() == "ready\n", f"{kind} did not start"
        server.stdin.write("fresh\n")
        server.stdin.flush()
        return server.stdout.readline().strip()

    def serve(self, *args, what="serve", lab=()):
        """Starts a server; the lines of its greeting that are addresses."""
        number = len(list(self.folder.glob("log.*")))
        environment = dict(os.environ, PLIMSOLL_LAB_NO_ATTEMPT_LIMITS="true")
        environment.update({f"PLIMSOLL_LAB_{name}": "true" for name in lab})
        command = ["taskset", "-c", self.core, self.program, what, "--data", str(self.folder / f"data.{number}")]
        command += ["--secret-file", str(self.folder / "secret"), *args]
        if what == "serve":
            command += ["--http", "127.0.0.1:0", "--access-log", "off", "--transfer-log", "off", "--signup", "open"]
        log = open(self.folder / f"log.{number}", "w")
        server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
        self.programs.append(server.pid)
        self.running.callback(server.wait)
        self.running.callback(server.terminate)
        found = {}
        for line in server.stdout:
            scheme, _, place = line.strip().partition("://")
            if scheme in ("http", "classic") and place and " " not in place:
                found.setdefault(scheme, place)
            if line.startswith("To end:") or "Type in another terminal" in line:
                break
        if not found and server.poll() is not None:
            sys.exit(f"{' '.join(command)}\nended: {(self.folder / f'log.{number}').read_text()}")
        if "http" in found and what == "serve":
            until_ready(found["http"])
        return found

    def processor_time(self):
        """Seconds that its programs, and what they have started, have had so far."""
        ticks, children = {}, {}
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                # Behind the name, which may have anything in it (proc(5)).
                fields = stat.read_text().rpartition(")")[2].split()
                pid = int(stat.parent.name)
                ticks[pid] = sum(map(int, fields[11:15]))
                children.setdefault(int(fields[1]), []).append(pid)
        total, waiting = 0, list(self.programs)
        while waiting:
            pid = waiting.pop()
            total += ticks.get(pid, 0)
            waiting += children.get(pid, [])
        return total / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.running.close()
        subprocess.run(["rm", "-rf", str(self.folder)], check=True)


def until_ready(at):
    for _ in range(200):
        with contextlib.suppress(OSError):
            ask(at, "GET", "/readyz", None)
            return
        time.sleep(0.05)
    sys.exit(f"the server at {at} does not become ready")


def ask(at, method, path, body, **fields):
    request = urllib.request.Request(f"http://{at}{path}", data=body, method=method, headers=fields)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read()


def with_files(at, size):
    """Makes the account alice, with a file of so many bytes."""
    who = json.dumps({"name": "alice", "password": PASSWORD}).encode()
    ask(at, "POST", "/api/accounts", who, **{"Content-Type": "application/json"})
    session = json.loads(ask(at, "POST", "/api/sessions", who, **{"Content-Type": "application/json"}))
    ask(at, "PUT", "/files/a.bin", os.urandom(size), Authorization=f"Bearer {session['token']}")


def basic(program, users):
    ours, plain = Side(program), Side(program)
    at = ours.serve(lab=["FAST_PASSWORDS"])["http"]
    with_files(at, 1000)
    site = plain.folder / "site"
    site.mkdir()
    (site / "a.bin").write_bytes(os.urandom(1000))
    plainly = plain.serve("--accounts", "false", "--site", f"/={site}")["http"]
    yield ours, [f"http://{at}/files/a.bin", "--account", "alice", "-u", users]
    yield plain, [f"http://{plainly}/a.bin", "-u", users]


def documents(program, url, lab, engine="thread"):
    """The servers of document 000: a front and an authentication server, which connect for each request."""
    lab = ["CONNECT_EACH", *lab]
    side = Side(program)
    socket = f"unix:{side.folder}/auth.sock"
    side.serve("--engine", engine, "--listen", socket, "--directory", url(side), what="auth", lab=lab)
    for _ in range(200):
        if os.path.exists(f"{side.folder}/auth.sock"):
            break
        time.sleep(0.05)
    return side, side.serve("--engine", "thread", "--auth", socket, "--classic", "127.0.0.1:0", lab=lab)


def ours_on(program, url, lab, *args):
    side = Side(program)
    return side, side.serve("--directory", url(side), "--classic", "127.0.0.1:0", *args, lab=lab)


def classic_get(program, users):
    redis = lambda side: side.database("redis")
    for side, at in [ours_on(program, redis, ["FAST_PASSWORDS"]), documents(program, redis, ["FAST_PASSWORDS"])]:
        with_files(at["http"], 1000)
        yield side, [f"classic://{at['classic']}/a.bin", "--account", "alice", "-u", users]


def classic_new(program, users):
    redis = lambda side: side.database("redis")
    for side, at in [ours_on(program, redis, ["FAST_PASSWORDS"]), documents(program, redis, ["FAST_PASSWORDS"])]:
        yield side, ["-X", "NEW", f"classic://{at['classic']}", "-u", users]


def classic_durable(program, users):
    mysql = lambda side: side.database("mysql", "durable")
    for lab in (["FAST_PASSWORDS"], ["FAST_PASSWORDS", "CONNECT_EACH"]):
        side, at = ours_on(program, mysql, lab)
        yield side, ["-X", "NEW", f"classic://{at['classic']}", "-u", users]


def store(program, users):
    apart, alone = Side(program), Side(program)
    socket = f"unix:{apart.folder}/store.sock"
    apart.serve("--listen", socket, what="store")
    through = apart.serve("--store", socket, lab=["FAST_PASSWORDS"])["http"]
    here = alone.serve(lab=["FAST_PASSWORDS"])["http"]
    for side, at in [(apart, through), (alone, here)]:
        with_files(at, 1_000_000)
        yield side, [f"http://{at}/files/a.bin", "--account", "alice", "-u", users]


def table_3(program, users, size):
    mysql = lambda side: side.database("mysql")
    for engine in ("thread", "process"):
        side, at = documents(program, mysql, ["FAST_PASSWORDS"], engine)
        if size is None:
            yield side, ["-X", "NEW", f"classic://{at['classic']}", "-u", users]
        else:
            with_files(at["http"], size)
            yield side, [f"classic://{at['classic']}/a.bin", "--account", "alice", "-u", users]


CASES = {
    "basic": basic,
    "classic-get": classic_get,
    "classic-new": classic_new,
    "classic-durable": classic_durable,
    "store": store,
}
for load, size in {"new": None, "1K": 10**3, "10K": 10**4, "100K": 10**5, "1M": 10**6, "10M": 10**7}.items():
    CASES[f"table-3-{load}"] = functools.partial(table_3, size=size)


def measure(program, side, args, seconds):
    """Requests a second and for each second of the side's processor time; whether the generator was the limit."""
    command = ["taskset", "-c", GENERATOR, program, "load", *args, "-d", f"{round(seconds * 1000)}ms", "--json", "--quiet"]
    before = side.processor_time()
    done = subprocess.run(command, env=dict(os.environ, PLIMSOLL_PASSWORD=PASSWORD), stdout=subprocess.PIPE)
    time_taken = side.processor_time() - before
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nhad errors: {done.stdout.decode()}")
    told = json.loads(done.stdout)
    return (told["requests_per_second"], told["requests"] / max(time_taken, 0.001)), told["generator"]["is_the_limit"]


def rounds_of(name, options, count, first):
    """Starts the servers of a case, and has so many rounds of them: the rates of both sides in each."""
    try:
        sides = list(CASES[name](options.plimsoll, str(options.users)))
        for side, args in sides:
            measure(options.plimsoll, side, args, min(0.5, options.seconds))
        for at in range(first, first + count):
            order = sides if at % 2 == 0 else sides[::-1]
            rates, limited = {}, False
            for side, args in order:
                rates[side], is_limit = measure(options.plimsoll, side, args, options.seconds)
                limited |= is_limit
            yield [rates[side] for side, _ in sides], limited
    finally:
        while Side.all:
            Side.all.pop().end()


def run(name, options):
    rounds, limited = [], False
    for first in range(0, options.rounds, options.each):
        for rates, is_limit in rounds_of(name, options, min(options.each, options.rounds - first), first):
            rounds.append(rates)
            limited |= is_limit
    ours, others = (statistics.median(rate for rate, _ in column) for column in zip(*rounds))
    note = "  the generator was the limit" if limited else ""
    print(f"{name:<16} {ours:>10.0f} {others:>10.0f}  {ratio(rounds, 0)}  {ratio(rounds, 1)}{note}", flush=True)


def ratio(rounds, which):
    """The median of the ratios of each round, the least and the greatest, by one of the two figures."""
    ratios = sorted(ours[which] / other[which] for ours, other in rounds)
    return f"{statistics.median(ratios):>6.2f} [{ratios[0]:.2f}, {ratios[-1]:.2f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plimsoll", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--each", type=int, default=3, help="rounds of the same servers")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--users", type=int, default=64)
    parser.add_argument("--only", default=",".join(CASES))
    options = parser.parse_args()
    heads = f"{'ratio':>6} [least, most]  {'by processor time':>6}"
    print(f"{'case':<16} {'this/s':>10} {'by/s':>10}  {heads}, of {options.rounds} rounds", flush=True)
    for name in options.only.split(","):
        run(name, options)


if __name__ == "__main__":
    main()

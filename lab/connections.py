#!/usr/bin/env python3
"""What many connections cost a server, what an idle one does, and what the load generator costs beside wrk.

The server has one core and the generator the other; contenders have their rounds in turn, so that whatever else the
machine does hits all alike. It is a benchmark and decides nothing: read what it prints.

  lab/connections.py --plimsoll PATH [--nginx PATH] [--wrk PATH] [--many N] [--rounds N] [--seconds S] [--only CASE,CASE]

  many       1 KB at N kept connections by 1 KB at 64: requests a second, and requests for each second of the server's
             own processor time
  idle       memory for each kept connection on which nothing is under way: what the server's share of all memory (PSS)
             grows by from 1,000 connections to N, over all its processes
  generator  requests for each second of the generator's own processor time, at 1 KB and at 1 MB: plimsoll load by wrk

One address may have half of a server's connections, and each takes two descriptors: N connections take a limit of
open files (ulimit -n) of four times N and some. From two addresses, it is twice N and some:

  ip address add 127.0.0.2/32 dev lo
  lab/connections.py --plimsoll PATH --only many --many 8000 --addresses 127.0.0.1,127.0.0.2
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from servers import serving

SERVER, GENERATOR = "0", "1"
FEW = 64


def processes(server):
    children = pathlib.Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    return [server.pid, *map(int, children)]


def cpu_seconds(server):
    ticks = 0
    for pid in processes(server):
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def kib(server):
    maps = [pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in processes(server)]
    return sum(int(re.search(r"^Pss:\s+(\d+)", text, re.M).group(1)) for text in maps)


def start_load(options, address, port, path, users, seconds):
    """A generator at `address`: who connects to an address of this machine is there, too."""
    command = ["taskset", "-c", GENERATOR, options.plimsoll, "load", "-u", str(users), "-d", f"{round(seconds * 1000)}ms"]
    command += ["--warm-up", "1500ms", "--json", "--quiet", f"http://{address}:{port}{path}"]
    return command, subprocess.Popen(command, stdout=subprocess.PIPE)


def loads(options, port, path, users, seconds):
    """What the generators tell, one for each address, and their own processor time."""
    count = len(options.addresses)
    running = [start_load(options, address, port, path, users // count, seconds) for address in options.addresses]
    told = []
    for command, generator in running:
        out, _ = generator.communicate()
        if generator.returncode != 0:
            sys.exit(f"{' '.join(command)}\nhad errors; is the limit of open files high enough?\n{out.decode()}")
        told.append(json.loads(out))
    return told


def told(ratios):
    ratios = sorted(ratios)
    return f"{statistics.median(ratios):.2f} [{ratios[0]:.2f}, {ratios[-1]:.2f}]"


def many(name, options, folder):
    counts, ratios, by_cpu = (FEW, options.many), [], []
    with serving(name, options, folder, folder / "root", SERVER) as (server, port):
        for at in range(options.rounds):
            rates = {}
            for users in counts if at % 2 == 0 else counts[::-1]:
                before = cpu_seconds(server)
                told_by_each = loads(options, port, "/1K/0", users, options.seconds)
                rate = sum(one["requests_per_second"] for one in told_by_each)
                # What the warm-up took is in both.
                rates[users] = rate, rate / (cpu_seconds(server) - before)
            ratios.append(rates[options.many][0] / rates[FEW][0])
            by_cpu.append(rates[options.many][1] / rates[FEW][1])
    print(f"many       {name:<8} {options.many} by {FEW}: {told(ratios)}; by the server's processor time {told(by_cpu)}", flush=True)


def idle(name, options, folder):
    with serving(name, options, folder, folder / "root", SERVER) as (server, port), contextlib.ExitStack() as held:
        def connect(count):
            for _ in range(count):
                visitor = held.enter_context(socket.create_connection(("127.0.0.1", port)))
                visitor.sendall(b"GET /1K/0 HTTP/1.1\r\nHost: lab\r\n\r\n")
                got = 0
                while got < 1000:
                    got += len(visitor.recv(4096))
            time.sleep(1)

        connect(1000)
        before = kib(server)
        connect(options.many - 1000)
        grown = (kib(server) - before) / (options.many - 1000)
    print(f"idle       {name:<8} {grown:.2f} KiB for each of {options.many} connections beyond 1,000", flush=True)


def by_wrk(options, port, path, seconds):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = ["taskset", "-c", GENERATOR, options.wrk, "-t1", f"-c{FEW}", f"-d{seconds}s", f"http://127.0.0.1:{port}{path}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return int(re.search(r"(\d+) requests in", done.stdout).group(1)) / used


def by_ours(options, port, path, seconds):
    told_by_each = loads(options, port, path, FEW, seconds)
    shares = sum(one["generator"]["share"] for one in told_by_each)
    return sum(one["requests_per_second"] for one in told_by_each) / shares


def generator(options, folder):
    with serving("epoll", options, folder, folder / "root", SERVER) as (_, port):
        for path in ("/1K/0", "/1M/0"):
            ratios = []
            for at in range(options.rounds):
                rates = {}
                for side in (by_ours, by_wrk) if at % 2 == 0 else (by_wrk, by_ours):
                    rates[side] = side(options, port, path, round(options.seconds))
                ratios.append(rates[by_ours] / rates[by_wrk])
            print(f"generator  {path[1:3]:<8} plimsoll load by wrk, for each second of its own: {told(ratios)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plimsoll", required=True)
    parser.add_argument("--nginx")
    parser.add_argument("--wrk")
    parser.add_argument("--many", type=int, default=4000)
    parser.add_argument("--addresses", type=lambda text: text.split(","), default=["127.0.0.1"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--only", default="many,idle,generator")
    options = parser.parse_args()
    names = ["epoll", "uring", *(["nginx"] if options.nginx else [])]
    with tempfile.TemporaryDirectory(prefix="plimsoll-connections.") as folder:
        folder = pathlib.Path(folder)
        folder.chmod(0o755)
        for size, bytes_ in {"1K": 1000, "1M": 1_000_000}.items():
            (folder / "root" / size).mkdir(parents=True)
            (folder / "root" / size / "0").write_bytes(os.urandom(bytes_))
        for case in options.only.split(","):
            if case == "generator":
                if options.wrk:
                    generator(options, folder)
                continue
            for name in names:
                {"many": many, "idle": idle}[case](name, options, folder)


if __name__ == "__main__":
    main()

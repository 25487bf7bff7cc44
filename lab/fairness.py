#!/usr/bin/env python3
"""How long an account waits for a small listing beside accounts that keep the server at long work.

Eight hostile accounts have a folder of 50,000 entries each. Each lists it in a loop on five connections and hangs up after
0.2 s, or reads the listing; or copies a file of 512 MB in a loop on two connections. An honest account lists a home of a
few files meanwhile, and, beside copies, copies 7 bytes. It prints medians, 90th percentiles and maxima in milliseconds.

  lab/fairness.py --plimsoll PATH [--engine NAME] [--work hangup|read|copy] [--seconds S]
"""
import argparse
import asyncio
import collections
import http.client
import json
import multiprocessing
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

PASSWORD = "correct horse battery"
HOSTILE_ACCOUNTS, LISTING_CLIENTS, COPYING_CLIENTS = 8, 5, 2
ENTRIES, LARGE_BYTES = 50_000, 512 << 20
HANG_UP_SECONDS = 0.2


def ask(port, method, path, token=None, body=None, fields=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    fields = dict(fields or {}) | ({"Authorization": f"Bearer {token}"} if token else {})
    start = time.monotonic()
    connection.request(method, path, body, fields)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content, 1000 * (time.monotonic() - start)


def account(port, name):
    body = json.dumps({"name": name, "password": PASSWORD})
    assert ask(port, "POST", "/api/accounts", body=body)[0] == 201
    status, content, _ = ask(port, "POST", "/api/sessions", body=body)
    assert status == 201
    return json.loads(content)["token"]


async def keep_at_it(port, token, number, work, until, ended):
    fields = f"Host: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n"
    request = f"GET /files/large/?format=json HTTP/1.1\r\n{fields}\r\n"
    if work == "copy":
        request = f"COPY /files/large.bin HTTP/1.1\r\n{fields}Destination: /files/copy{number}\r\n\r\n"
    while time.monotonic() < until:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request.encode())
            if work == "hangup":
                await asyncio.sleep(HANG_UP_SECONDS)
                writer.transport.abort()
                ended["hung up"] += 1
                continue
            content = await reader.read()
            writer.close()
            ended[content[9:12].decode() or "cut off"] += 1
            if content[9:12] == b"503":
                await asyncio.sleep(0.5)
        except OSError as error:
            ended[type(error).__name__] += 1
            await asyncio.sleep(0.05)


def be_hostile(port, tokens, work, seconds):
    ended = collections.Counter()

    async def all_at_once():
        until, clients = time.monotonic() + seconds, COPYING_CLIENTS if work == "copy" else LISTING_CLIENTS
        await asyncio.gather(*(keep_at_it(port, token, number, work, until, ended)
                               for token in tokens for number in range(clients)))

    asyncio.run(all_at_once())
    print(f"hostile requests      {dict(ended)}", flush=True)


def show(what, times, refused):
    times.sort()
    print(f"{what:21} n {len(times)}, median {statistics.median(times):.0f} ms, p90 {times[int(0.9 * len(times))]:.0f}, "
          f"max {times[-1]:.0f}, refused {refused}", flush=True)


def measure(port, data, work, seconds):
    tokens = [account(port, f"hostile{number}") for number in range(HOSTILE_ACCOUNTS)]
    honest = account(port, "honest")
    for number, token in enumerate(tokens):
        assert ask(port, "MKCOL", "/files/large", token)[0] == 201
        home = pathlib.Path(data) / f"accounts/hostile{number}/files"
        if work == "copy":
            (home / "large.bin").write_bytes(os.urandom(1 << 20) * (LARGE_BYTES >> 20))
        else:
            for entry in range(ENTRIES):
                (home / f"large/some file {entry:05}.txt").touch()
    os.sync()
    for name in range(10):
        assert ask(port, "PUT", f"/files/{name}", honest, b"7 bytes")[0] == 201
    attack = multiprocessing.Process(target=be_hostile, args=(port, tokens, work, seconds + 2))
    attack.start()
    time.sleep(2)
    times, refused, until = {"honest listings": [], "honest copies": []}, collections.Counter(), time.monotonic() + seconds
    while time.monotonic() < until:
        status, content, took = ask(port, "GET", "/files/?format=json", honest)
        times["honest listings"].append(took)
        refused["honest listings"] += status != 200
        if work == "copy":
            status, _, took = ask(port, "COPY", "/files/1", honest, fields={"Destination": "/files/seven"})
            times["honest copies"].append(took)
            refused["honest copies"] += status not in (201, 204)
        time.sleep(0.05)
    for what, each in times.items():
        if each:
            show(what, each, refused[what])
    attack.join(120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plimsoll", required=True)
    parser.add_argument("--engine", default="epoll")
    parser.add_argument("--work", choices=("hangup", "read", "copy"), default="hangup")
    parser.add_argument("--seconds", type=float, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        serve = [options.plimsoll, "serve", "--data", data, "--http", "127.0.0.1:0", "--engine", options.engine,
                 "--signup", "open", "--access-log", "off"]
        server = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            found = (re.search(r"http://127\.0\.0\.1:(\d+)", line) for line in server.stdout)
            port = int(next(match for match in found if match)[1])
            measure(port, data, options.work, options.seconds)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()

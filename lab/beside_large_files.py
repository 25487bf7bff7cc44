#!/usr/bin/env python3
"""How long a small hot file takes while others read large files, and whether these have equal shares.

Some processes read files of 1 MB, each its part of them once a round; another asks for a file of 1 KB that is
always in memory, again and again, and notes how long each answer takes. Before a round, the large files are put
out of the system's cache; with --warm they stay there, and are read --warm times. The servers have their rounds
in turn, so that whatever else the machine does hits all alike. It is a benchmark and decides nothing: read the
table. "fair" is Jain's index of the readers' rates: 1 where all have the same, 1/N where one of N has all (Jain,
Chiu and Hawe, "A Quantitative Measure of Fairness and Discrimination", 1984).

  lab/beside_large_files.py --plimsoll PATH [--nginx PATH] [--folder DIR] [--rounds N] [--files N] [--readers N]
                            [--warm TIMES]

DIR must be on a real disk: what is in memory anyway cannot be cold. Files are put out of the cache one by one
(posix_fadvise), so nothing else on the machine loses its own, and nobody needs to be root.
"""
import argparse
import contextlib
import http.client
import multiprocessing
import os
import tempfile
import time

from servers import serving

LARGE_BYTES = 1_000_000


def make_files(root, count):
    with open(f"{root}/hot", "wb") as file:
        file.write(os.urandom(1000))
    for at in range(count):
        with open(f"{root}/large{at}", "wb") as file:
            file.write(os.urandom(LARGE_BYTES))
            os.fsync(file.fileno())


def chill(root, count):
    for at in range(count):
        with open(f"{root}/large{at}", "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_large(port, names, taken):
    # Whoever asks for the hot file must not wait for a core that these have: the servers are what is measured.
    os.nice(19)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    begun = time.monotonic()
    for name in names:
        connection.request("GET", f"/{name}")
        assert len(connection.getresponse().read()) == LARGE_BYTES
    taken.put(len(names) * LARGE_BYTES / (time.monotonic() - begun))


def fairness(rates):
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))


def one_round(port, count, readers, repeats):
    """The times of the hot file while the large ones are read, in seconds, how long that took, and the rates."""
    names = [f"large{at}" for at in range(count)]
    shares = [names[at::readers] * repeats for at in range(readers)]
    taken = multiprocessing.Queue()
    others = [multiprocessing.Process(target=read_large, args=(port, share, taken)) for share in shares]
    hot = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    begun, times = time.monotonic(), []
    for other in others:
        other.start()
    while any(other.is_alive() for other in others):
        before = time.perf_counter()
        hot.request("GET", "/hot")
        assert len(hot.getresponse().read()) == 1000
        times.append(time.perf_counter() - before)
    assert all(other.exitcode == 0 for other in others), "a large file did not arrive"
    return times, time.monotonic() - begun, [taken.get() for _ in others]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plimsoll", required=True)
    parser.add_argument("--nginx")
    parser.add_argument("--folder", default=".")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--warm", type=int, default=0, metavar="TIMES")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=wanted.folder) as folder:
        os.chmod(folder, 0o755)
        root = f"{folder}/www"
        os.mkdir(root)
        make_files(root, wanted.files)
        with contextlib.ExitStack() as held:
            serve = lambda engine: held.enter_context(serving(engine, wanted, folder, root))[1]
            ports = {"plimsoll": serve("epoll"), **({"nginx": serve("nginx")} if wanted.nginx else {})}
            for number in range(wanted.rounds):
                # In turn forwards and backwards.
                for name in sorted(ports, reverse=number % 2 == 1):
                    if not wanted.warm:
                        chill(root, wanted.files)
                    repeats = max(1, wanted.warm)
                    times, took, rates = one_round(ports[name], wanted.files, wanted.readers, repeats)
                    times.sort()
                    p50, p99 = (1000 * times[int(len(times) * part)] for part in (0.5, 0.99))
                    rate = wanted.files * repeats * LARGE_BYTES / took / 1e6
                    print(f"{name:9} hot: {len(times):6} answers, p50 {p50:7.2f} ms, p99 {p99:7.2f} ms, "
                          f"longest {1000 * times[-1]:7.2f} ms; large: {rate:6.0f} MB/s, "
                          f"fair {fairness(rates):.3f}", flush=True)


if __name__ == "__main__":
    main()

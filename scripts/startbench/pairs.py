#!/usr/bin/env python3
"""Compares builds of atip-exec: pairs.py ROUNDS COPIES "ARGUMENTS" BUILD...

Each build is written COPIES times, in turn, as the pages of one file lie in the page cache otherwise than those of
the next, which is worth a fifth of a start. Rounds are interleaved in random order. Prints the mean of the medians of
the copies in ms, wall and CPU, and the difference to the first build with its standard error. Every build must have
been built with HOME as the home (any_home of scripts/lib.sh).
"""
import os
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def run(home, argv):
    null = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    os.chdir(home + "/ws")
    began = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, {"HOME": home, "PATH": "/usr/local/bin:/usr/bin:/bin"}, file_actions=null)
    _, status, used = os.wait4(pid, 0)
    took = time.perf_counter() - began
    if status:
        sys.exit(f"{shlex.join(argv)} ended with {status}")
    return took * 1e3, (used.ru_utime + used.ru_stime) * 1e3


def main():
    rounds, copies, args, builds = int(sys.argv[1]), int(sys.argv[2]), shlex.split(sys.argv[3]), sys.argv[4:]
    builds = [os.path.abspath(b) for b in builds]
    top = tempfile.mkdtemp()
    places = []
    for i in range(copies):
        for k, build in enumerate(builds):
            home = f"{top}/{k}.{i}"
            subprocess.run(["git", "init", "-q", home + "/ws"], check=True)
            with open(build, "rb") as old, open(home + "/atip-exec", "wb") as new:
                new.write(old.read())
            os.chmod(home + "/atip-exec", 0o755)
            places.append((k, i, home))
    took = {place: [] for place in places}
    for n in range(rounds + 2):
        for place in random.sample(places, len(places)):
            measured = run(place[2], [place[2] + "/atip-exec", *args])
            if n >= 2:  # warm
                took[place].append(measured)
    for at, what in enumerate(("wall", "cpu")):
        medians = [[statistics.median(t[at] for t in took[p]) for p in places if p[0] == k] for k in range(len(builds))]
        for k, build in enumerate(builds):
            less = [a - b for a, b in zip(medians[k], medians[0])]
            error = statistics.stdev(less) / len(less) ** 0.5 if len(less) > 1 else 0
            print(f"{what:5}{statistics.mean(medians[k]):8.3f}  {statistics.mean(less):+.3f} ± {error:.3f}  {build}")
    shutil.rmtree(top)


main()

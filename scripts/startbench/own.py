"""Measures what a command that runs by itself adds to a string, beside the same command alone.

usage: own.py ATIP_EXEC ROUNDS, in a workspace, with HOME set."""

import hashlib, os, resource, shutil, statistics, subprocess, sys, time

program, rounds = sys.argv[1], int(sys.argv[2])
home = os.environ["HOME"]
tools = home + "/tools"
os.makedirs(tools, exist_ok=True)
shutil.copy("/bin/true", tools + "/gh")
with open(tools + "/gh", "rb") as f:
    digest = hashlib.sha256(f.read()).hexdigest()
os.makedirs(home + "/.config/agent-tools", exist_ok=True)
policy = home + "/.config/agent-tools/policy.json"
with open(policy, "w") as f:
    f.write('{"version":1,"trust":{"pins":{"gh":["sha256:%s"]}}}' % digest)
with open("code.sh", "w") as f:
    f.write("#!/bin/sh\n:\n")
os.chmod("code.sh", 0o755)
env = {"HOME": home, "PATH": tools + ":" + os.environ["PATH"]}
forms = {"alone": ["--", "gh", "pr", "list"], "with": ["-c", "./code.sh; gh pr list"], "without": ["-c", "./code.sh; :"]}
took, spent = {name: [] for name in forms}, {name: [] for name in forms}


def processors():
    """The processor time of all children that have ended, in ms."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


for i in range(rounds + 1):
    for name, words in forms.items():
        began, before = time.perf_counter(), processors()
        subprocess.run([program, *words], env=env, stdin=subprocess.DEVNULL, check=True)
        if i > 0:
            took[name].append((time.perf_counter() - began) * 1000)
            spent[name].append(processors() - before)
os.remove(policy)
os.remove("code.sh")
for what, of in ("time", took), ("processors", spent):
    alone = statistics.median(of["alone"])
    added = statistics.median(a - b for a, b in zip(of["with"], of["without"]))
    print(f"{what}: alone {alone:.1f} ms, added to a string {added:.1f} ms (alone + 2 ms)")

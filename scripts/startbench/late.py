"""Measures starts that are decided when they happen, and own runs that fetch: late.py ATIP-EXEC ROUNDS.

One program of the workspace starts 300 others, with and without a policy that restricts what may start,
in turns. The rule of "gated" names another tool, so that the answer hangs on the file alone; that of
"compared" names an option of this one, so that it hangs on the words. Both are compared after the exec, as
the path in memory can change, too. Prints medians beside their limits."""

import json
import os
import statistics
import subprocess
import sys
import time

wrapper, rounds = sys.argv[1], int(sys.argv[2])
home, count = os.environ["HOME"], 300
config = home + "/.config/agent-tools"
os.makedirs(config, exist_ok=True)
open("starts.py", "w").write("import os, sys\nfor i in range(%d):\n    os.spawnv(os.P_WAIT, '/bin/true', ['true', str(i) if sys.argv[1] == 'each' else 'x'])\n" % count)
deny = {"version": 1, "rules": [{"id": "no", "decision": "deny", "when": {"tool": "terraform", "command": ["destroy"]}}]}
words = {"version": 1, "rules": [{"id": "no", "decision": "deny", "when": {"tool": "true", "option": {"never": True}}}]}
rows = {(name, which): [] for name in ("free", "gated", "compared") for which in ("same", "each")}
policies = {"free": {"version": 1, "rules": []}, "gated": deny, "compared": words}
for _ in range(rounds + 1):
    for (name, which), took in rows.items():
        with open(config + "/policy.json", "w") as f:
            json.dump(policies[name], f)
        began = time.perf_counter()
        subprocess.run([wrapper, "--", "python3", "starts.py", which], check=True, stdout=subprocess.DEVNULL)
        took.append(time.perf_counter() - began)
median = {key: statistics.median(took[1:]) for key, took in rows.items()}  # the first one warms up
for name, which, what, limit in (("gated", "same", "the same start again", 60 + 120), ("gated", "each", "other words that cannot matter", 60 + 120), ("compared", "same", "the same words that matter", 60 + 120), ("compared", "each", "other words that matter", 250 + 120)):
    free = median["free", which]
    print(f"{what:30} {(median[name, which] - free) / count * 1e6:7.1f} µs more (limit {limit})   {median[name, which] / free:5.2f} × {count} starts without a gate (limit 1.15)")
os.remove(config + "/policy.json")

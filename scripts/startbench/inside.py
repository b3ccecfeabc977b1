"""Times work inside a run against the same work outside, in interleaved rounds:
inside.py ATIP_EXEC ROUNDS, in a scratch workspace. The start of the run is not in it."""
import os, statistics, subprocess, sys

WORK = {
    "300 fork+exec": "for _ in range(300): subprocess.run(['/bin/true'])",
    "tar of 20,000 files": "subprocess.run(['tar', '-cf', 'all.tar', 'files'], check=True)",
}
TEXT = "import subprocess, time\nt = time.perf_counter()\n%s\nprint(time.perf_counter() - t)"


def timed(prefix, work):
    out = subprocess.run(prefix + ["python3", "-c", TEXT % work], stdout=subprocess.PIPE, check=True, stdin=subprocess.DEVNULL)
    return float(out.stdout)


def main():
    program, rounds = sys.argv[1], int(sys.argv[2])
    for d in range(100):
        os.makedirs("files/%d" % d)
        for f in range(200):
            with open("files/%d/%d" % (d, f), "w") as out:
                out.write("%d\n" % f * 40)
    tiers = {"T2": [program, "--policy", "t2.json", "--"], "T3": [program, "--policy", "t3.json", "--"]}
    for tier, prefix in tiers.items():
        with open(prefix[2], "w") as out:
            out.write('{"version":1,"sandbox":{"tier":"%s"}}' % tier)
    for name, work in WORK.items():
        ratios = {tier: [] for tier in tiers}
        for _ in range(rounds + 1):
            outside = timed([], work)
            for tier, prefix in tiers.items():
                ratios[tier].append(timed(prefix, work) / outside)
        for tier, list_ in ratios.items():
            print("%-20s %s / outside %.3f" % (name, tier, statistics.median(list_[1:])))


main()

"""Times work inside a run against the same work outside, in interleaved rounds:
inside.py ATIP_EXEC ROUNDS, in a scratch workspace. The start of the run is not in it.
"Landlock" is the part of it that no sandbox made of Landlock could save: two rules, and
nothing else."""
import ctypes, os, statistics, struct, subprocess, sys

WORK = {
    "300 fork+exec": "for _ in range(300): subprocess.run(['/bin/true'])",
    "tar of 20,000 files": "subprocess.run(['tar', '-cf', 'all.tar', 'files'], check=True)",
}
TEXT = "import subprocess, time\nt = time.perf_counter()\n%s\nprint(time.perf_counter() - t)"


def timed(prefix, work):
    out = subprocess.run(prefix + ["python3", "-c", TEXT % work], stdout=subprocess.PIPE, check=True, stdin=subprocess.DEVNULL)
    return float(out.stdout)


def landlock(argv):
    """Executes argv where everything is readable and the working directory is writable."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    handled = (1 << 15) - 1  # all rights of Linux 6.2
    rules = call(444, ctypes.c_char_p(struct.pack("Q", handled)), ctypes.c_size_t(8), 0)
    for path, rights in ("/", 1 | 1 << 2 | 1 << 3), (".", handled):
        fd = os.open(path, os.O_PATH)
        if call(445, rules, 1, ctypes.c_char_p(struct.pack("=Qi", rights, fd)), 0) != 0:
            sys.exit("no Landlock rule: %s" % os.strerror(ctypes.get_errno()))
    ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
    if call(446, rules, 0) != 0:
        sys.exit("no Landlock: %s" % os.strerror(ctypes.get_errno()))
    os.execvp(argv[0], argv)


def main():
    if sys.argv[1] == "landlock":
        landlock(sys.argv[2:])
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
    tiers["Landlock"] = [sys.executable, os.path.abspath(__file__), "landlock"]
    for name, work in WORK.items():
        ratios = {tier: [] for tier in tiers}
        for _ in range(rounds + 1):
            outside = timed([], work)
            for tier, prefix in tiers.items():
                ratios[tier].append(timed(prefix, work) / outside)
        for tier, list_ in ratios.items():
            print("%-20s %-8s / outside %.3f" % (name, tier, statistics.median(list_[1:])))


main()

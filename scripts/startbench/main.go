// Command startbench times the start of one command through several wrappers, in
// rounds: each round runs every contestant once, in random order, so that a
// machine whose speed drifts slows all of them alike. It prints medians and
// per-round ratios with a bootstrap interval, and never judges.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type contestant struct {
	name   string
	argv   []string
	stdin  string
	wall   []float64 // ms, one a round
	cpu    []float64
	maxRSS int64
	faults int64
}

func main() {
	rounds := flag.Int("rounds", 300, "counted rounds")
	warm := flag.Int("warm", 20, "rounds before counting")
	bin := flag.String("bin", "bin", "directory of atip-exec, goexec and floor")
	child := flag.String("child", "/bin/true", "the command to start")
	flag.Parse()
	if err := bench(*rounds, *warm, *bin, strings.Fields(*child)); err != nil {
		fmt.Fprintln(os.Stderr, "startbench:", err)
		os.Exit(1)
	}
}

func bench(rounds, warm int, bin string, child []string) error {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return err
	}
	all := contestants(bin, child)
	printMachine()
	order := rand.Perm(len(all))
	for round := -warm; round < rounds; round++ {
		rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, i := range order {
			if err := all[i].once(round >= 0); err != nil {
				return fmt.Errorf("%s: %w", all[i].name, err)
			}
		}
	}
	report(all)
	return initTrace(filepath.Join(bin, "atip-exec"), child)
}

func contestants(bin string, child []string) []*contestant {
	with := func(name string, argv ...string) *contestant {
		return &contestant{name: name, argv: append(argv, child...)}
	}
	all := []*contestant{with("goexec", filepath.Join(bin, "goexec")), with("atip-exec", filepath.Join(bin, "atip-exec"), "--")}
	for _, c := range []*contestant{
		with("composed", filepath.Join(bin, "composed")),
		with("T3", filepath.Join(bin, "atip-exec"), "--policy", filepath.Join(bin, "t3.json"), "--"),
	} {
		if exec.Command(c.argv[0], c.argv[1:]...).Run() == nil {
			all = append(all, c)
		}
	}
	if _, err := os.Stat(filepath.Join(bin, "floor")); err == nil {
		all = append(all, with("floor", filepath.Join(bin, "floor")))
	}
	if bwrap, err := exec.LookPath("bwrap"); err == nil {
		cwd, _ := os.Getwd()
		c := with("bwrap", bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--bind", cwd, cwd, "--")
		if exec.Command(c.argv[0], c.argv[1:]...).Run() == nil {
			all = append(all, c)
		}
	}
	return append(all, hooks(filepath.Join(bin, "atip-exec"), child)...)
}

// hooks are what an agent waits for before a command, and the plan alone, which is most of it: the
// program's answer, and the same through the file that the agent starts. None if that is not installed.
func hooks(program string, child []string) []*contestant {
	file := filepath.Join(os.Getenv("HOME"), ".local/share/agent-tools/libexec/hook")
	if _, err := os.Stat(file); err != nil {
		return nil
	}
	cwd, _ := os.Getwd()
	command := strings.Join(child, " ")
	event := fmt.Sprintf(`{"session_id":"bench","cwd":%q,"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":%q},"tool_use_id":"1"}`, cwd, command)
	return []*contestant{
		{name: "plan", argv: []string{program, "--dry-run", "-o", "json", "-c", command}},
		{name: "hook", argv: []string{program, "hook", "claude"}, stdin: event},
		{name: "hook file", argv: []string{file, "claude"}, stdin: event},
	}
}

func (c *contestant) once(count bool) error {
	cmd := exec.Command(c.argv[0], c.argv[1:]...)
	cmd.Stdin = strings.NewReader(c.stdin)
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return err
	}
	wall := time.Since(began)
	if !count {
		return nil
	}
	c.wall = append(c.wall, float64(wall.Microseconds())/1000)
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return fmt.Errorf("no resource usage")
	}
	c.cpu = append(c.cpu, float64(cmd.ProcessState.UserTime().Microseconds()+cmd.ProcessState.SystemTime().Microseconds())/1000)
	c.maxRSS = max(c.maxRSS, int64(usage.Maxrss))
	c.faults = int64(usage.Minflt)
	return nil
}

func printMachine() {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	fmt.Printf("kernel %s, %d CPUs, %s %s/%s\n\n", strings.TrimSpace(string(kernel)), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func report(all []*contestant) {
	byName := map[string]*contestant{}
	fmt.Printf("%-10s %8s %8s %8s %8s %8s %8s\n", "", "median", "p10", "p90", "cpu", "peak KiB", "faults")
	for _, c := range all {
		byName[c.name] = c
		fmt.Printf("%-10s %8.3f %8.3f %8.3f %8.3f %8d %8d\n", c.name, quantile(c.wall, .5), quantile(c.wall, .1), quantile(c.wall, .9), quantile(c.cpu, .5), c.maxRSS, c.faults)
	}
	fmt.Println()
	for _, pair := range [][2]string{{"atip-exec", "goexec"}, {"atip-exec", "floor"}, {"atip-exec", "bwrap"}, {"T3", "bwrap"}, {"composed", "goexec"}} {
		if a, b := byName[pair[0]], byName[pair[1]]; a != nil && b != nil {
			printRatio(a, b)
		}
	}
	for _, pair := range [][2]string{{"hook", "plan"}, {"hook file", "hook"}} {
		if a, b := byName[pair[0]], byName[pair[1]]; a != nil && b != nil {
			more := make([]float64, len(a.wall))
			for i := range more {
				more[i] = a.wall[i] - b.wall[i]
			}
			fmt.Printf("%-9s - %-7s %.3f ms\n", a.name, b.name, quantile(more, .5))
		}
	}
}

func printRatio(a, b *contestant) {
	ratios := make([]float64, len(a.wall))
	for i := range ratios {
		ratios[i] = a.wall[i] / b.wall[i]
	}
	medians := make([]float64, 1000)
	sample := make([]float64, len(ratios))
	for i := range medians {
		for j := range sample {
			sample[j] = ratios[rand.Intn(len(ratios))]
		}
		medians[i] = quantile(sample, .5)
	}
	fmt.Printf("%-9s / %-7s %.3f  (95 %% %.3f to %.3f)\n", a.name, b.name, quantile(ratios, .5), quantile(medians, .025), quantile(medians, .975))
}

func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := append([]float64{}, values...)
	sort.Float64s(sorted)
	return sorted[int(q*float64(len(sorted)-1)+.5)]
}

// initTrace prints the sum of package initialisation, the median of 21 runs.
func initTrace(program string, child []string) error {
	var sums []float64
	for range 21 {
		cmd := exec.Command(program, append([]string{"--"}, child...)...)
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
		sums = append(sums, sumInit(stderr.String()))
	}
	fmt.Printf("\ninit sum   %.3f ms (median of %d)\n", quantile(sums, .5), len(sums))
	return nil
}

// sumInit adds the "clock" column of "init PKG @T ms, N ms clock, …" lines.
func sumInit(trace string) float64 {
	sum := 0.0
	for _, line := range strings.Split(trace, "\n") {
		_, rest, ok := strings.Cut(line, " ms, ")
		if !ok || !strings.HasPrefix(line, "init ") {
			continue
		}
		number, _, _ := strings.Cut(rest, " ms clock")
		if ms, err := strconv.ParseFloat(number, 64); err == nil {
			sum += ms
		}
	}
	return sum
}

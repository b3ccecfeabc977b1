package undo

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain is also the process that TestKilled kills: it makes checkpoints, changes files
// and undoes, over and over.
func TestMain(m *testing.M) {
	if top := os.Getenv("ATIP_UNDO_VICTIM"); top != "" {
		victim(top)
		return
	}
	os.Exit(m.Run())
}

// finished is what the victim prints for each run that it has finished.
const finished = "finished"

func victim(top string) {
	p := Place{Root: filepath.Join(top, "ws"), Base: filepath.Join(top, "store", "atip-exec", "undo"), UID: os.Getuid(), Limits: Defaults(), unsynced: true}
	for n := 0; ; n++ {
		id := fmt.Sprintf("r%d-%d", os.Getpid(), n)
		s, err := Open(p, true)
		if err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		c, err := s.Before(Run{Run: id}, false)
		s.Close()
		if err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		for i := range 5 {
			os.WriteFile(filepath.Join(p.Root, fmt.Sprint("f", (n+i)%30)), []byte(strings.Repeat(id, 1+n%9_000)), 0o644)
		}
		os.Remove(filepath.Join(p.Root, fmt.Sprint("f", n%30)))
		s, err = Open(p, true)
		if err != nil {
			os.Exit(3)
		}
		s.After(id, c.Seq)
		fmt.Println(finished)
		if n%3 == 2 {
			s.Undo(Request{ID: id + "u", Run: id})
		}
		s.Close()
	}
}

// verify reads everything that the store says it has.
func (s *Store) verify() error {
	for _, r := range s.Runs() {
		m, err := s.load(r.Before)
		if err != nil {
			return fmt.Errorf("%s: %w", r.Run, err)
		}
		for i := range m.entries {
			e := &m.entries[i]
			if !e.known || e.kind != file {
				continue
			}
			at, err := os.MkdirTemp("", scratchName)
			if err != nil {
				return err
			}
			d, err := os.Open(at)
			if err == nil {
				err = s.extract(e, int(d.Fd()), "x")
				d.Close()
			}
			os.RemoveAll(at)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", r.Run, e.path, err)
			}
		}
	}
	return nil
}

// TestKilled kills the process at random moments: whatever was finished is whole, and what
// was not is not taken for it. ATIP_TEST_WHOLE=1 does it 200 times.
func TestKilled(t *testing.T) {
	kills := tries(40, 200)
	p := world(t)
	for i := range 30 {
		if err := os.WriteFile(filepath.Join(p.Root, fmt.Sprint("f", i)), []byte(strings.Repeat(strconv.Itoa(i), 100*i*i)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// How long a run takes differs by ten between machines, and again under the race detector.
	var span time.Duration
	for n := range kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "ATIP_UNDO_VICTIM="+filepath.Dir(p.Root))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != finished+"\n" {
				t.Fatalf("the victim finished no run: %v %s", err, line)
			}
			// Each third run is undone as well.
			span = 5 * time.Since(begin)
		} else {
			time.Sleep(rand.N(span))
		}
		cmd.Process.Kill()
		said, _ := io.ReadAll(out)
		if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("kill %d: the victim ended by itself: %v %s", n, err, said)
		}
		if n%20 != 19 {
			continue
		}
		s := open(t, p)
		if err := s.verify(); err != nil {
			t.Fatalf("kill %d: %v", n, err)
		}
		runs := s.Runs()
		s.Close()
		if len(runs) == 0 {
			t.Fatal("no run was finished: the test proves nothing")
		}
		// A completed checkpoint restores exactly.
		pick := runs[rand.IntN(len(runs))]
		undo(t, p, Request{Run: pick.Run, Force: true})
		s = open(t, p)
		m, err := s.load(pick.Before)
		if err != nil {
			t.Fatal(err)
		}
		now, _, err := s.checkpoint(false)
		s.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes(m, now) {
			t.Errorf("kill %d: %s differs after the undo of %s", n, c.path, pick.Run)
		}
	}
}

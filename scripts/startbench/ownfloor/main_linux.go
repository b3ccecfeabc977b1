// Command ownfloor is what an own step starts beside its run and cannot save: a stand-in, here of this very
// program, which does what a Go program must before its first line, hands three descriptors over a socket and
// ends with the status that it is told. ownfloor N prints the median time of N of them, and of N starts of
// /bin/true, each from fork to end. Nothing confines, decides or records anything.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"sort"
	"strconv"
	"syscall"
	"time"
)

// init is as early as a program can be.
func init() {
	if len(os.Args) > 1 && os.Args[1] == "stand" {
		stand()
	}
}

func stand() {
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	must(err)
	must(syscall.Sendmsg(3, []byte("own"), syscall.UnixRights(ends[1], 0, 1, 2), nil, 0))
	must(syscall.Close(ends[1]))
	buf := make([]byte, 16)
	n, err := syscall.Read(ends[0], buf)
	must(err)
	status, err := strconv.Atoi(string(buf[:n]))
	must(err)
	os.Exit(status)
}

func main() {
	n := 51
	if len(os.Args) > 1 {
		var err error
		n, err = strconv.Atoi(os.Args[1])
		must(err)
	}
	var stands, trues []float64
	for range n {
		trues = append(trues, timed(func() { must(exec.Command("/bin/true").Run()) }))
		stands = append(stands, timed(once))
	}
	fmt.Printf("a stand-in that does nothing %.2f ms, /bin/true %.2f ms\n", median(stands), median(trues))
}

// once starts a stand-in and answers it.
func once() {
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	must(err)
	theirs := os.NewFile(uintptr(ends[1]), "run")
	cmd := exec.Command("/proc/self/exe", "stand")
	cmd.ExtraFiles = []*os.File{theirs}
	must(cmd.Start())
	theirs.Close()
	buf, oob := make([]byte, 16), make([]byte, syscall.CmsgSpace(16))
	_, oobn, _, _, err := syscall.Recvmsg(ends[0], buf, oob, syscall.MSG_CMSG_CLOEXEC)
	must(err)
	messages, err := syscall.ParseSocketControlMessage(oob[:oobn])
	must(err)
	fds, err := syscall.ParseUnixRights(&messages[0])
	must(err)
	_, err = syscall.Write(fds[0], []byte("0"))
	must(err)
	must(cmd.Wait())
	for _, fd := range append(fds, ends[0]) {
		must(syscall.Close(fd))
	}
}

func timed(f func()) float64 {
	began := time.Now()
	f()
	return float64(time.Since(began).Microseconds()) / 1000
}

func median(list []float64) float64 {
	sort.Float64s(list)
	return list[len(list)/2]
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "ownfloor:", err)
		os.Exit(1)
	}
}

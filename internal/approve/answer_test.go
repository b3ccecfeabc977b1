package approve

import (
	"reflect"
	"testing"
	"time"
)

func TestChanged(t *testing.T) {
	a := bound("git", "push")
	for _, row := range []struct {
		edit func(m map[string]any)
		want []string
	}{
		{func(m map[string]any) {}, nil},
		{func(m map[string]any) { m["cwd"] = "/" }, []string{"cwd"}},
		{func(m map[string]any) { delete(m, "cwd"); m["new"] = 1 }, []string{"cwd", "new"}},
		{func(m map[string]any) { m["argv"] = []any{"git", "pull"} }, []string{"argv[1]"}},
		{func(m map[string]any) { m["argv"] = []any{"git"} }, []string{"argv"}},
		{func(m map[string]any) { m["steps"].([]any)[0].(map[string]any)["binary"] = "sha256:01" }, []string{"steps[0].binary"}},
		{func(m map[string]any) { m["uid"] = int64(1000) }, nil},
	} {
		b := bound("git", "push")
		row.edit(b)
		if got := Changed(a, b); !reflect.DeepEqual(got, row.want) {
			t.Errorf("got %v, want %v", got, row.want)
		}
		x, _ := Digest(a)
		y, _ := Digest(b)
		if (x == y) != (len(row.want) == 0) {
			t.Errorf("%v: digest and list of changes disagree", row.want)
		}
	}
}

func TestApart(t *testing.T) {
	init := Process{PID: 1, SID: 1, Start: "1", Name: "systemd"}
	terminals := Process{PID: 20, SID: 20, Start: "5", Name: "gnome-terminal-"}
	agentShell := Process{PID: 30, SID: 30, TTY: 34816, Start: "6", Name: "bash"}
	agent := Process{PID: 31, SID: 30, TTY: 34816, Start: "7", Name: "node"}
	asks := Requester{PID: 40, SID: 30, TTY: "34816", Ancestry: []string{"40:9", agent.Key(), agentShell.Key(), terminals.Key(), init.Key()}}
	me := func(sid, tty int, rest ...Process) []Process {
		return append([]Process{{PID: 50, SID: sid, TTY: tty, Start: "12", Name: "atip"}}, rest...)
	}
	for name, row := range map[string]struct {
		own  []Process
		want bool
	}{
		"another window":               {me(60, 34817, terminals, init), true},
		"the same session":             {me(30, 34817, terminals, init), false},
		"the same terminal":            {me(60, 34816, terminals, init), false},
		"a child of the agent":         {me(60, 34817, agent, agentShell, terminals, init), false},
		"a child of the shell":         {me(60, 34817, agentShell, terminals, init), false},
		"a reused number":              {me(60, 34817, Process{PID: 31, SID: 60, Start: "99", Name: "bash"}, terminals, init), true},
		"a terminal on a terminal":     {me(60, 34817, Process{PID: 30, SID: 30, TTY: 34816, Start: "6", Name: "tmux: server"}, init), false},
		"an unknown daemon they share": {me(60, 34817, Process{PID: 31, SID: 31, Start: "7", Name: "node"}, init), false},
	} {
		if err := asks.Apart(row.own); (err == nil) != row.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpened(t *testing.T) {
	init := Process{PID: 1, SID: 1, Name: "systemd"}
	terminals := Process{PID: 20, SID: 20, Name: "gnome-terminal-"}
	shell := Process{PID: 30, SID: 30, TTY: 7, Name: "bash"}
	agent := Process{PID: 31, SID: 30, TTY: 7, Name: "node"}
	own := func(sid int, rest ...Process) []Process {
		return append([]Process{{PID: 50, SID: sid, TTY: 8, Name: "atip"}}, rest...)
	}
	leader := Process{PID: 40, SID: 40, TTY: 8, Name: "bash"}
	for name, row := range map[string]struct {
		own  []Process
		want bool
	}{
		"a window":                        {own(40, leader, terminals, init), true},
		"below an agent in a window":      {own(30, agent, shell, terminals, init), true}, // it is asked on the window
		"a terminal of an agent":          {own(40, leader, agent, shell, terminals, init), false},
		"an agent that leads it itself":   {own(50, agent, shell, terminals, init), false},
		"whose opener has gone":           {own(40, leader, init), false},
		"an agent that is PID 1":          {own(40, leader, Process{PID: 1, SID: 1, Name: "node"}), false},
		"the first process":               {own(1, Process{PID: 1, SID: 1, TTY: 8, Name: "bash"}), true},
		"put into a container":            {own(40, leader), true},
		"ssh":                             {own(40, leader, Process{PID: 21, SID: 21, Name: "sshd-session"}, init), true},
		"sudo with a terminal of its own": {own(41, Process{PID: 41, SID: 41, TTY: 9, Name: "sudo"}, Process{PID: 42, SID: 40, TTY: 8, Name: "sudo"}, leader, terminals, init), true},
		"sudo of an agent":                {own(41, Process{PID: 41, SID: 41, TTY: 9, Name: "sudo"}, Process{PID: 42, SID: 40, TTY: 8, Name: "sudo"}, leader, agent, shell, terminals, init), false},
		"a session led by another":        {own(99, leader, terminals, init), false},
	} {
		if err := Opened(row.own); (err == nil) != row.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDenied(t *testing.T) {
	dir := t.TempDir()
	id, _, err := WriteRequest(dir, Request{Bound: bound("x")})
	if err != nil {
		t.Fatal(err)
	}
	r, err := ReadRequest(dir, id)
	if err != nil || Denied(dir, r.Digest) {
		t.Fatalf("%v", err)
	}
	if err := Deny(dir, r); err != nil || !Denied(dir, r.Digest) {
		t.Errorf("not denied: %v", err)
	}
	if _, err := ReadRequest(dir, id); err == nil {
		t.Error("the request is still open")
	}
	if list, err := List(dir); err != nil || len(list) != 0 {
		t.Errorf("%v %v", list, err)
	}
	Undeny(dir, r.Digest)
	if Denied(dir, r.Digest) {
		t.Error("still denied")
	}
	if _, err := ReadRequest(dir, "../../x"); err == nil {
		t.Error("a path was taken as an id")
	}
}

func TestPending(t *testing.T) {
	me, dir := newSigner(1, false), grantDir(t)
	approvers := []Approver{{"me", me.line(), 1}}
	g := NewGrant(Request{Digest: "sha256:00"}, "me", 1)
	store(t, dir, me, g)
	other := NewGrant(Request{Digest: "sha256:01"}, "nobody", 1)
	store(t, dir, me, other)
	late := testGrant()
	late.Created = time.Now().Add(-time.Hour)
	store(t, dir, me, late)
	if got := Pending(dir, approvers); len(got) != 1 || got[0].ID != g.ID {
		t.Errorf("%+v", got)
	}
	if err := g.Spend(dir); err != nil {
		t.Fatal(err)
	}
	if got := Pending(dir, approvers); len(got) != 0 {
		t.Errorf("a spent grant: %+v", got)
	}
}

func TestApprovers(t *testing.T) {
	me, touch, dir := newSigner(1, false), newSigner(2, true), grantDir(t)
	file := dir + "/approvers.json"
	if list, err := ReadApprovers(file); err != nil || list != nil {
		t.Errorf("missing file: %v %v", list, err)
	}
	for _, a := range []Approver{{"me", me.line(), 3}, {"key", touch.line(), 3}} {
		if err := AddApprover(file, a); err != nil {
			t.Fatal(err)
		}
	}
	list, err := ReadApprovers(file)
	if err != nil || len(list) != 2 || list[0].Level != 1 || list[1].Level != 3 {
		t.Errorf("a key in a file is at most level 1: %+v %v", list, err)
	}
	if AddApprover(file, Approver{"me", touch.line(), 1}) == nil {
		t.Error("two keys under one id")
	}
	if AddApprover(file, Approver{"rsa", "ssh-rsa AAAA", 1}) == nil {
		t.Error("a key of another type")
	}
}

// Package approvals holds the verbs by which a person answers requests: requests, approve, deny
// and delegate, on a terminal of their own.
package approvals

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/quote"
)

// Answers is where requests and the answers to them are kept.
type Answers struct {
	Dirs             place.Dirs
	Requests, grants string
}

// Open opens the requests and the keys of this user.
func Open() (Answers, error) {
	dirs, err := caller.Here().Dirs()
	if err != nil {
		return Answers{}, err
	}
	return Answers{Dirs: dirs, Requests: filepath.Join(dirs.State, "requests"), grants: filepath.Join(dirs.State, "grants")}, nil
}

// RequestsVerb lists what waits for a person.
func RequestsVerb(c *cli.Console, v *cli.Values) (int, error) {
	a, err := Open()
	if err != nil {
		return 0, err
	}
	if len(v.Rest) > 0 {
		return 0, fault.New(errcode.Arguments, "requests takes no arguments").WithFix("name a request to `atip approve`", "atip approve ID")
	}
	return 0, a.list(c, v)
}

func (a Answers) list(c *cli.Console, v *cli.Values) error {
	open, err := approve.List(a.Requests)
	if err != nil {
		return fault.New(errcode.NoInputFile, err.Error())
	}
	end := ""
	if len(open) == 0 {
		open, end = []approve.Request{}, "no request is open\n"
	}
	return answer.List(c, v, map[string]any{"kind": "atip-exec.requests/1", "requests": open}, open, func(r approve.Request) string {
		return fmt.Sprintf("%s  %s ago  %s\n", r.ID, time.Since(r.Created).Round(time.Second), answer.Visible(quote.Words(answer.Texts(r.Bound["argv"]))))
	}, end)
}

// DenyVerb answers "no". It asks for no key: it only makes things stricter.
func DenyVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) != 1 {
		return 0, fault.New(errcode.Arguments, "deny: name one request").WithFix("`atip requests` lists them", "atip deny ID")
	}
	a, err := Open()
	if err != nil {
		return 0, err
	}
	r, err := a.Request(v.Rest[0])
	if err != nil {
		return 0, err
	}
	return 0, a.deny(c, r)
}

func (a Answers) deny(c *cli.Console, r approve.Request) error {
	if err := approve.Deny(a.Requests, r); err != nil {
		return Refused(err.Error())
	}
	return c.Answer(map[string]any{"kind": "atip-exec.answer/1", "request": r.ID, "answer": "deny"}, "denied "+r.ID+"\n")
}

// Request is the open request of that id.
func (a Answers) Request(id string) (approve.Request, error) {
	r, err := approve.ReadRequest(a.Requests, id)
	if err != nil {
		return r, fault.New(errcode.NoInputFile, "no open request "+answer.Visible(id)).WithFix("`atip requests` lists them", "atip requests")
	}
	return r, nil
}

// Refused says that this process may not answer for a person.
func Refused(why string) *fault.Fault {
	return fault.New(errcode.Denied, "not answered: "+why).WithFix("answer on a terminal of your own, outside of what asks", "")
}

// ApproveVerb answers "yes", on a person's own terminal and with the person's key.
func ApproveVerb(c *cli.Console, v *cli.Values) (int, error) {
	a, err := Open()
	if err != nil {
		return 0, err
	}
	switch {
	case v.Has("init"):
		if len(v.Rest) > 0 {
			return 0, fault.New(errcode.Arguments, "approve --init takes no request")
		}
		return 0, a.init(c, v.Get("key"))
	case len(v.Rest) == 0:
		return 0, a.list(c, v)
	case len(v.Rest) > 1:
		return 0, fault.New(errcode.Arguments, "approve: one request at a time, as each must be read").WithFix("name one request", "atip approve ID")
	}
	r, err := a.Request(v.Rest[0])
	if err != nil {
		return 0, err
	}
	if v.Has("deny") {
		return 0, a.deny(c, r)
	}
	if v.Has("propose") {
		return 0, a.propose(c, r)
	}
	times := 1
	if v.Has("times") {
		times = v.IntOf("times")
	}
	if v.Has("session") {
		if v.Has("times") {
			return 0, fault.New(errcode.Arguments, "approve: --session and --times exclude each other")
		}
		times = 0
	}
	return 0, a.approve(r, times, v.Get("key"))
}

// approve signs a grant for so many runs; 0 stands for a session.
func (a Answers) approve(r approve.Request, times int, keyFile string) error {
	t, err := a.OwnTerminal()
	if err != nil {
		return err
	}
	defer t.Close()
	if err := r.Requester.Apart(approve.Ancestry(os.Getpid())); err != nil {
		return Refused(err.Error())
	}
	needs := needsOf(r)
	if times > approve.MaxTimes {
		return fault.New(errcode.FlagValue, fmt.Sprintf("--times: at most %d", approve.MaxTimes))
	}
	if times > 1 && (needs.OnceOnly || !needs.Idempotent) {
		return fault.New(errcode.FlagValue, "--times: this command must be looked at each time: it is not stated to be idempotent and harmless").WithFix("approve it once", "atip approve "+r.ID)
	}
	scope, ok := approve.ScopeOf(r.Bound)
	if times == 0 && (!ok || needs.OnceOnly) {
		return fault.New(errcode.FlagValue, "--session: this command must be looked at each time: only commands that are known to the word, in a session that has a name, and that write, delete, use the network or change something remote, count for a session").WithFix("approve it once", "atip approve "+r.ID)
	}
	if times == 0 {
		needs.Scope = scope
	}
	if needs.Approvers, err = plan.Approvers(caller.Here()); err != nil {
		return err
	}
	if needs.MaxAge, err = plan.MaxGrantAge(caller.Here()); err != nil {
		return err
	}
	key, err := a.signingKey(keyFile, needs.Approvers)
	if err != nil {
		return err
	}
	if err := t.show(r, times, needs.MaxAge); err != nil {
		return err
	}
	if yes, err := t.confirm(r); err != nil || !yes {
		if err == nil {
			err = Refused("nothing was approved")
		}
		return err
	}
	g := approve.NewGrant(r, key.approver, times)
	if times == 0 {
		g = approve.NewSessionGrant(scope, key.approver)
	}
	g.Limit(needs.MaxAge)
	if err := key.sign(&g, t); err != nil {
		return err
	}
	if err := approve.CheckGrant(g, needs); err != nil {
		return Refused("the grant would not count: " + err.Error())
	}
	approve.Undeny(a.Requests, r.Digest)
	if err := approve.WriteGrant(a.grants, g); err != nil {
		return Refused(err.Error())
	}
	if times == 0 {
		approve.Done(a.Requests, r.Digest)
		return t.Say(fmt.Sprintf("Approved for the session, until %s. The command has to be run again.\n", g.Expires.Local().Format("15:04:05")))
	}
	return t.Say(fmt.Sprintf("Approved, until %s. The command has to be run again, exactly as it was.\n", g.Expires.Local().Format("15:04:05")))
}

// needsOf reads from a request what its plan demands of a grant.
func needsOf(r approve.Request) approve.Rules {
	needs, _ := r.Bound["needs"].(map[string]any)
	level, _ := needs["level"].(int64)
	idempotent, _ := needs["idempotent"].(bool)
	once, stated := needs["onceOnly"].(bool)
	return approve.Rules{MinLevel: int(level), OnceOnly: once || !stated, Idempotent: idempotent}
}

// OwnTerminal checks that a person can be the one who answers here: this process runs
// outside our sandboxes, may write grants, and stands on a terminal of its own.
func (a Answers) OwnTerminal() (*Terminal, error) {
	for _, name := range [...]string{"ATIP_EXEC_SANDBOX", "ATIP_EXEC_PARENT"} {
		if os.Getenv(name) != "" {
			return nil, Refused("this process runs inside atip-exec ($" + name + ")")
		}
	}
	t, err := OpenTerminal()
	if err != nil {
		return nil, Refused(err.Error())
	}
	if err := approve.PrepareGrants(a.grants); err != nil {
		t.Close()
		return nil, Refused(err.Error())
	}
	return t, nil
}

var errNoKey = errors.New("none of the approvers has a key here")

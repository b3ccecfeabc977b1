// Package prove holds the verbs that need a signature library: verify, sign, attest, and the
// parts of trust that read roots. They are in a program of their own, because linking these
// libraries costs its start 4 ms.
package prove

import (
	"os"
	"slices"

	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
)

type verb func(c *cli.Console, v *cli.Values) (int, error)

func verbs(name string) verb {
	switch name {
	case "verify":
		return verifyVerb
	case "sign":
		return signVerb
	case "attest":
		return attestVerb
	case "trust":
		return trustVerb
	}
	return nil
}

// Main is atip-verify. It returns the exit status.
func Main(argv []string) (status int) {
	if len(argv) == 4 && slices.Equal(argv[1:], []string{"verify", "--request", "-"}) {
		return answer(os.Stdin, os.Stdout)
	}
	c := cli.NewConsole()
	defer func() {
		if r := recover(); r != nil {
			status = c.Fail(cli.Panicked(r, c))
		}
	}()
	at := slices.IndexFunc(argv[1:], func(word string) bool { return verbs(word) != nil })
	if at < 0 {
		return c.Fail(fault.New(errcode.Arguments, "atip-verify is started by atip and atip-exec").WithFix("call atip", "atip verify --help"))
	}
	at++
	spec, _ := cli.SpecOf(argv[at])
	v, err := cli.Parse(spec, append(append([]string{}, argv[1:at]...), argv[at+1:]...), os.Getenv)
	if err != nil {
		return c.Fail(err)
	}
	c.Apply(v)
	if v.Has("help") {
		if err := c.Text(cli.Help(spec)); err != nil {
			return c.Fail(err)
		}
		return 0
	}
	code, err := verbs(argv[at])(c, v)
	if err != nil {
		return c.Fail(err)
	}
	return code
}

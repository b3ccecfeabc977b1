// Package scan looks at the executables of a machine: which are safe to look at, what
// metadata they have, and, where that is allowed, what they say about themselves.
package scan

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/shims"
)

// Config is config.json of the configuration directory.
type Config struct {
	Paths  []string      // directories beyond the usual ones
	Allow  []string      // names to look at, nothing else
	Skip   []string      // names to leave out
	Probe  string        // auto, listed, never
	MaxAge time.Duration // of what a tool said about itself
}

const (
	defaultMaxAge = 30 * 24 * time.Hour
	badConfig     = errcode.MetadataStructure
)

// ReadConfig reads DIR/config.json; a missing file is the default. Keys that other
// programs keep there are left alone, ours are read strictly.
func ReadConfig(dir string) (Config, error) {
	c := Config{Probe: "auto", MaxAge: defaultMaxAge}
	if dir == "" {
		return c, nil
	}
	file := dir + "/config.json"
	root, err := shims.ReadSettings(file, badConfig)
	if root == nil || err != nil {
		return c, err
	}
	r := configReader{file: file}
	r.read(root, &c)
	return c, r.err
}

// configReader keeps the first thing that is wrong.
type configReader struct {
	file string
	err  error
}

func (r *configReader) bad(n *atip.Node, msg string) {
	if r.err == nil {
		r.err = &shims.SettingsError{Code: badConfig, File: r.file, Line: n.Line, Col: n.Col, Msg: msg}
	}
}

func (r *configReader) read(root *atip.Node, c *Config) {
	if scan := root.Get("scan"); scan != nil {
		if scan.Kind != atip.KindObject {
			r.bad(scan, "scan is not an object")
		}
		c.Paths, c.Allow, c.Skip = r.texts(scan.Get("paths")), r.texts(scan.Get("allow")), r.texts(scan.Get("skip"))
	}
	if probe := root.Get("probe"); probe != nil {
		switch probe.Text {
		case "auto", "listed", "never":
			c.Probe = probe.Text
		default:
			r.bad(probe, "probe: "+strconv.Quote(probe.Text)+" is not auto, listed or never")
		}
	}
	if age := root.Get("nativeMaxAge"); age != nil {
		d, err := Days(age.Text)
		if err != nil {
			r.bad(age, "nativeMaxAge: "+err.Error())
		}
		c.MaxAge = d
	}
}

func (r *configReader) texts(n *atip.Node) []string {
	if n == nil {
		return nil
	}
	if n.Kind != atip.KindArray {
		r.bad(n, n.Key+" is not an array")
	}
	var out []string
	for _, m := range n.Items {
		if m.Kind != atip.KindString || m.Text == "" {
			r.bad(m, n.Key+" holds something else than names")
			return nil
		}
		out = append(out, m.Text)
	}
	return out
}

// Days reads a duration such as 30d, 12h or 90m.
func Days(s string) (time.Duration, error) {
	if n, ok := strings.CutSuffix(s, "d"); ok {
		days, err := strconv.Atoi(n)
		if err != nil || days < 0 || days > 3650 {
			return 0, errors.New(strconv.Quote(s) + " is not a number of days up to 3650d")
		}
		return time.Duration(days) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, errors.New(strconv.Quote(s) + " is not a duration such as 24h or 7d")
	}
	return d, nil
}

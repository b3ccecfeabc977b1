package redact

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/policy"
)

func part(layer policy.Layer, text string) policy.RawPart {
	return policy.RawPart{Layer: layer, File: "policy.json", JSON: []byte(text)}
}

func TestLayers(t *testing.T) {
	const off, tools = `{"enabled":false}`, `{"tools":{"gh":{"disable":["x"],"maxBytes":"1KiB"}}}`
	gh := []Tool{{Name: "gh"}}
	for name, c := range map[string]struct {
		parts []policy.RawPart
		tools []Tool
		check func(Rules) bool
		code  string
	}{
		"a user turns it off":            {[]policy.RawPart{part(policy.LayerUser, off)}, gh, func(r Rules) bool { return r.Config.Disabled }, ""},
		"locked by the managed policy":   {[]policy.RawPart{part(policy.LayerManaged, `{"locked":true}`), part(policy.LayerUser, off)}, gh, func(r Rules) bool { return !r.Config.Disabled && len(r.Notes) == 1 }, ""},
		"a project turns it off":         {[]policy.RawPart{part(policy.LayerProject, off)}, gh, nil, errcode.PolicyLayer},
		"a project names known values":   {[]policy.RawPart{part(policy.LayerProject, `{"knownValues":{"env":["A"]}}`)}, gh, nil, errcode.PolicyLayer},
		"a project adds names":           {[]policy.RawPart{part(policy.LayerProject, `{"names":["A"]}`)}, gh, func(r Rules) bool { return len(r.Config.Names) == 1 }, ""},
		"what a tool is let do":          {[]policy.RawPart{part(policy.LayerUser, tools)}, gh, func(r Rules) bool { return len(r.Config.DisableRules) == 1 && r.Most == 1024 && r.Config.Tool == "gh" }, ""},
		"a file of the workspace is not": {[]policy.RawPart{part(policy.LayerUser, tools)}, []Tool{{"gh", true}}, func(r Rules) bool { return len(r.Config.DisableRules) == 0 && r.Most == 1024 && r.Config.Tool == "" }, ""},
		"an unknown key":                 {[]policy.RawPart{part(policy.LayerUser, `{"unknown":1}`)}, gh, nil, errcode.PolicySyntax},
		"no size":                        {[]policy.RawPart{part(policy.LayerUser, `{"tools":{"gh":{"maxBytes":"x"}}}`)}, gh, nil, errcode.PolicySyntax},
		"a rule that does not compile":   {[]policy.RawPart{part(policy.LayerUser, `{"rules":[{"id":"x","regex":"("}]}`)}, gh, nil, errcode.RedactionRule},
	} {
		r, err := Of(policy.OutputPolicy{Redact: c.parts}, c.tools)
		var bad *policy.ParseError
		switch {
		case c.code != "":
			if !errors.As(err, &bad) || bad.Code != c.code {
				t.Errorf("%s: %v, want %s", name, err, c.code)
			}
		case err != nil || !c.check(r):
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func TestCleaner(t *testing.T) {
	dir := t.TempDir()
	values := filepath.Join(dir, "values")
	if err := os.WriteFile(values, []byte("from-the-file-of-values\r\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	caller := filter.Sources{Env: []string{"MY_TOKEN=from-the-environment", "OTHER=from-another-variable"}, Home: dir}
	clean := func(opt Options) string {
		t.Helper()
		c, err := New(Rules{}, opt, caller, func() filter.TagKey { return filter.TagKey{} }, filepath.Join(dir, "saved"))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		report, err := c.Copy(strings.NewReader("a from-the-environment b from-another-variable c from-the-file-of-values d\n"), &out, "x")
		if err != nil || len(report.Findings) == 0 {
			t.Errorf("%+v, %v", report, err)
		}
		return out.String()
	}
	for name, c := range map[string]struct {
		opt  Options
		left []bool // of the three values: whether it is still there
	}{
		"as output":       {Options{Values: values}, []bool{false, true, false}},
		"no environment":  {Options{NoEnv: true, Values: values}, []bool{true, true, false}},
		"named variables": {Options{NoEnv: true, Env: []string{"OTHER"}}, []bool{true, false, true}},
	} {
		out := clean(c.opt)
		for i, value := range []string{"from-the-environment", "from-another-variable", "from-the-file-of-values"} {
			if strings.Contains(out, value) != c.left[i] {
				t.Errorf("%s: %s in %s", name, value, out)
			}
		}
	}
	if out := clean(Options{Check: true, Values: values}); out != "" {
		t.Errorf("a check wrote %s", out)
	}
	if _, err := New(Rules{}, Options{Values: dir}, caller, nil, dir); err == nil {
		t.Error("a directory was read as a file of values")
	}
}

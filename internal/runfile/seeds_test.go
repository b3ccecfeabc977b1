package runfile

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

func seed(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestRFC003Section3_1 reads the example of @desc.
func TestRFC003Section3_1(t *testing.T) {
	f := mustParse(t, "# @desc Restarts the docker containers and tails the logs\nrestart() { ... }\n")
	if f.Functions[0].Desc != "Restarts the docker containers and tails the logs" {
		t.Errorf("%+v", f.Functions[0])
	}
}

// TestRFC003Section4_1 describes the function of section 3.2 as section 4.1 prints it, but
// for the texts, which the RFC shortens.
func TestRFC003Section4_1(t *testing.T) {
	f := mustParse(t, seed(t, "rfc003-section3.2.Runfile"))
	list, err := f.Offered(false, false)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(f.Inspect(list, "run"))
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	json.Unmarshal(raw, &got)
	json.Unmarshal([]byte(seed(t, "rfc003-section4.1.json")), &want)
	var plain func(v any)
	plain = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if s, ok := v["description"].(string); ok {
				v["description"] = strings.SplitN(s, " (", 2)[0]
			}
			for _, e := range v {
				plain(e)
			}
		case []any:
			for _, e := range v {
				plain(e)
			}
		}
	}
	plain(got)
	plain(want)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s", raw)
	}
	// Section 5.1: named parameters become positions.
	words, err := f.Functions[0].BindNamed(map[string]json.RawMessage{"service": json.RawMessage(`"api"`), "replicas": json.RawMessage("3")})
	if err != nil || !reflect.DeepEqual(words, []string{"api", "3"}) {
		t.Errorf("%q %v", words, err)
	}
}

// TestRFC003Section7 makes both functions of the workflow ready to run, unchanged.
func TestRFC003Section7(t *testing.T) {
	f := mustParse(t, seed(t, "rfc003-section7.Runfile"))
	search, err := f.Script(f.function("search"), []string{"TODO"}, "bash")
	if err != nil || search.Interpreter != "python" || !strings.Contains(search.Code, "\nimport sys, os, re\npattern = sys.argv[1]\n") {
		t.Errorf("%v %+v", err, search)
	}
	deploy, err := f.Script(f.function("deploy"), []string{"staging"}, "bash")
	if err != nil || !strings.Contains(deploy.Code, "./scripts/deploy.sh $1") || !reflect.DeepEqual(deploy.Args, []string{"staging"}) {
		t.Errorf("%v %+v", err, deploy)
	}
}

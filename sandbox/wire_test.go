package sandbox

import (
	"reflect"
	"testing"
)

func TestPlanSurvivesTheWire(t *testing.T) {
	p := &stagePlan{V: wireVersion, Tier: T3, ABI: 7, Path: "/bin/x", FD: -1, Argv: [][]byte{[]byte("a\xff"), {}}, Env: [][]byte{},
		Profile: Profile{Workspace: "/w", Net: Net{Mode: NetLoopback}, Write: []Grant{{"/w", true, Read | Write | Remove | List | Ioctl, "workspace"}}}}
	data, err := encodePlan(p)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodePlan(data)
	if err != nil || !reflect.DeepEqual(got, p) {
		t.Errorf("%+v, %v; want %+v", got, err, p)
	}
	for name, bad := range map[string]string{
		"empty": ``, "unknown": `{"v":3,"tier":"T3","argv":["YQ=="],"x":1}`, "version": `{"v":2,"tier":"T3","argv":["YQ=="]}`,
		"unconfined": `{"v":3,"tier":"T0","argv":["YQ=="]}`, "none": `{"v":3,"tier":"T3","argv":["YQ=="],"profile":{"Confine":1}}`,
		"trailing": string(data) + "{}", "no argv": `{"v":3,"tier":"T3"}`, "tier": `{"v":3,"tier":"T9","argv":["YQ=="]}`,
	} {
		if _, err := decodePlan([]byte(bad)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	p.Profile.Write[0].Path = "/\xff"
	if _, err := encodePlan(p); err == nil {
		t.Error("a path that JSON changes is sent")
	}
}

// FuzzDecodePlan: what is accepted confines, and is written back to the same plan.
func FuzzDecodePlan(f *testing.F) {
	f.Add([]byte(`{"v":3,"tier":"T3","argv":["YQ=="]}`))
	f.Add([]byte(`{"v":3,"tier":"T1","try":true,"profile":{"Read":[{"path":"/a","rights":"read,exec","why":""}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := decodePlan(data)
		if err != nil {
			return
		}
		if p.Tier == T0 || p.Profile.Confine != ConfineKernel {
			t.Errorf("%+v", p)
		}
		again, err := encodePlan(p)
		if err != nil {
			return
		}
		if q, err := decodePlan(again); err != nil || q.Path != p.Path || len(q.Argv) != len(p.Argv) {
			t.Errorf("%+v, %v", q, err)
		}
	})
}

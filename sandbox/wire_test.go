package sandbox

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// TestEveryFieldIsSent fills each field of what the stage and the wrapper tell each other, so
// that one which is added to a type and not to its description fails here.
func TestEveryFieldIsSent(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		var plan stagePlan
		fill(t, reflect.ValueOf(&plan).Elem(), random)
		plan.V, plan.Tier, plan.Profile.Confine = wireVersion, T1+Tier(seed%3), ConfineKernel
		plan.Profile.Net.Mode, plan.Profile.Tmp, plan.Profile.Forced, plan.Profile.Ceiling = NetMode(seed%4), Tmp(seed%3), Tier(seed%4), Ceiling(seed%4)
		data, err := encodePlan(&plan)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodePlan(data)
		if err != nil || !reflect.DeepEqual(got, &plan) {
			t.Fatalf("%+v, %v; want %+v", got, err, plan)
		}
		var m stageMessage
		fill(t, reflect.ValueOf(&m).Elem(), random)
		m.fd = -1 // they come beside the bytes, as the files of listeners do
		if got, err := decodeMessage(m.encode()); err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("%+v, %v; want %+v", got, err, m)
		}
	}
}

// fill gives every field a value that is not zero.
func fill(t *testing.T, v reflect.Value, random *rand.Rand) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(string([]byte{byte(random.Uint32()), 0xff, 0, 'x'}))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(random.Int64() - random.Int64() | 1)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(random.Uint64()>>(64-v.Type().Bits()) | 1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+random.IntN(3), 3))
		for i := range v.Len() {
			fill(t, v.Index(i), random)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 1 + random.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, key, random)
			fill(t, value, random)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				fill(t, v.Field(i), random)
			}
		}
	case reflect.Pointer: // an open file is passed beside the message
	default:
		t.Fatalf("%s: a kind that no message has", v.Type())
	}
}

func TestBadPlansAreRefused(t *testing.T) {
	plan := func(change func(*stagePlan)) []byte {
		p := &stagePlan{V: wireVersion, Tier: T3, Argv: []string{"a"}}
		change(p)
		data, err := encodePlan(p)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	good := plan(func(*stagePlan) {})
	if _, err := decodePlan(good); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{
		"empty": nil, "trailing": append(plan(func(*stagePlan) {}), 0), "version": plan(func(p *stagePlan) { p.V-- }),
		"unconfined": plan(func(p *stagePlan) { p.Tier = T0 }), "none": plan(func(p *stagePlan) { p.Profile.Confine = ConfineNone }),
		"no argv": plan(func(p *stagePlan) { p.Argv = nil }), "tier": plan(func(p *stagePlan) { p.Tier = 9 }),
		"network": plan(func(p *stagePlan) { p.Profile.Net.Mode = 4 }), "tmp": plan(func(p *stagePlan) { p.Profile.Tmp = 3 }),
	} {
		if _, err := decodePlan(bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for n := range good {
		if _, err := decodePlan(good[:n]); err == nil {
			t.Errorf("accepted when cut at %d of %d", n, len(good))
		}
	}
}

// FuzzDecodePlan: what is accepted confines, and is written back to the same plan.
func FuzzDecodePlan(f *testing.F) {
	for _, p := range []*stagePlan{
		{V: wireVersion, Tier: T3, Argv: []string{"a"}},
		{V: wireVersion, Tier: T1, Try: true, Profile: Profile{Read: []Grant{{Path: "/a", Rights: Read | Exec}}, Env: map[string]string{"A": "b"}}},
	} {
		data, err := encodePlan(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
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
		if q, err := decodePlan(again); err != nil || !reflect.DeepEqual(p, q) {
			t.Errorf("%+v, %v; want %+v", q, err, p)
		}
	})
}

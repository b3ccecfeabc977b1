package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/internal/ip"
)

// record is one record of an answer; a name of "@" points at the question.
func record(name string, kind uint16, data []byte) []byte {
	b := []byte{0xc0, 12}
	if name != "@" {
		b = nil
		for label := range strings.SplitSeq(name, ".") {
			b = append(append(b, byte(len(label))), label...)
		}
		b = append(b, 0)
	}
	return append(append(b, byte(kind>>8), byte(kind), 0, classIN, 0, 0, 0, 60, byte(len(data)>>8), byte(len(data))), data...)
}

func wireName(name string) []byte {
	var b []byte
	for label := range strings.SplitSeq(name, ".") {
		b = append(append(b, byte(len(label))), label...)
	}
	return append(b, 0)
}

// reply answers a query with records.
func reply(query []byte, flags uint16, records ...[]byte) []byte {
	b := slices.Clone(query)
	b[2], b[3] = 0x80|byte(flags>>8), byte(flags)
	b[7] = byte(len(records))
	return append(b, bytes.Join(records, nil)...)
}

func TestAnswers(t *testing.T) {
	q := question(7, "api.example", typeA)
	four, other := []byte{8, 8, 4, 4}, []byte{9, 9, 9, 9}
	for name, tc := range map[string]struct {
		msg  []byte
		want string
		err  error
	}{
		"address":         {reply(q, 0, record("@", typeA, four)), "8.8.4.4", nil},
		"spelled out":     {reply(q, 0, record("API.example", typeA, four)), "8.8.4.4", nil},
		"two":             {reply(q, 0, record("@", typeA, four), record("@", typeA, other)), "8.8.4.4 9.9.9.9", nil},
		"alias":           {reply(q, 0, record("@", typeCNAME, wireName("cdn.example")), record("cdn.example", typeA, four)), "8.8.4.4", nil},
		"somebody else's": {reply(q, 0, record("evil.example", typeA, four)), "", nil},
		"of an alias no more": {reply(q, 0, record("@", typeCNAME, wireName("cdn.example")),
			record("@", typeA, other), record("cdn.example", typeA, four)), "8.8.4.4", nil},
		"other type":        {reply(q, 0, record("@", typeAAAA, make([]byte, 16))), "", nil},
		"odd length":        {reply(q, 0, record("@", typeA, four[:3])), "", nil},
		"none":              {reply(q, 0), "", nil},
		"no such name":      {reply(q, 3), "", errNoName},
		"server failure":    {reply(q, 2), "", errServer},
		"cut off":           {reply(q, 0x0200), "", errCut},
		"other id":          {reply(question(8, "api.example", typeA), 0, record("@", typeA, four)), "", errAnswer},
		"other question":    {reply(question(7, "evil.example", typeA), 0, record("@", typeA, four)), "", errAnswer},
		"other kind":        {reply(question(7, "api.example", typeAAAA), 0), "", errAnswer},
		"a question itself": {q, "", errAnswer},
		"short":             {reply(q, 0, record("@", typeA, four))[:40], "", errAnswer},
		"loop":              {reply(q, 0, append([]byte{0xc0, 29}, record("@", typeA, four)[2:]...)), "", errAnswer},
		"a dot in a label":  {reply(q, 0, append(append([]byte{11}, "api.example"...), record("", typeA, four)[1:]...)), "", errAnswer},
	} {
		got, err := answers(tc.msg, 7, "api.example", typeA)
		var text []string
		for _, a := range got {
			text = append(text, a.String())
		}
		if strings.Join(text, " ") != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%s: %v %v, want %q %v", name, text, err, tc.want, tc.err)
		}
	}
}

func TestHostsAndServers(t *testing.T) {
	text := "127.0.0.1 localhost\n# 9.9.9.9 api.example\n8.8.4.4\tother API.example # api.example\n\nx api.example\n::1 api.example\n8.8.4.4\n"
	if got := fmt.Sprint(hostsFile(text, "api.example")); got != "[8.8.4.4 ::1]" {
		t.Error(got)
	}
	if got := hostsFile(text, "example"); got != nil {
		t.Error(got)
	}
	if got := fmt.Sprint(nameServers("search corp\nnameserver 10.0.0.1\nnameserver x\n nameserver fd00::1 # y\nnameserver 1.1.1.1\nnameserver 2.2.2.2\n")); got != "[10.0.0.1 fd00::1 1.1.1.1]" {
		t.Error(got)
	}
	if got := fmt.Sprint(nameServers("")); got != "[127.0.0.1]" {
		t.Error(got)
	}
}

// TestLookup asks servers of the test: the second where the first fails, and by stream
// where the answer is cut off.
func TestLookup(t *testing.T) {
	first, second := ip.V4(10, 0, 0, 1), ip.V4(10, 0, 0, 2)
	var log []string
	lock := make(chan struct{}, 1)
	send := func(_ context.Context, server ip.Addr, query []byte, stream bool) ([]byte, error) {
		lock <- struct{}{}
		defer func() { <-lock }()
		kind := uint16(query[len(query)-3])
		if kind == typeA {
			log = append(log, server.String()+" "+strconv.FormatBool(stream))
		}
		switch {
		case server == first:
			return nil, errors.New("nobody there")
		case !stream:
			return reply(query, 0x0200), nil
		case kind == typeAAAA:
			return reply(query, 0, record("@", typeAAAA, append([]byte{0x20, 1, 0x48, 0x60}, make([]byte, 12)...))), nil
		}
		return reply(query, 0, record("@", typeA, []byte{8, 8, 4, 4})), nil
	}
	got, err := lookupDNS(context.Background(), []ip.Addr{first, second}, "api.example", send)
	if err != nil || fmt.Sprint(got) != "[8.8.4.4 2001:4860::]" {
		t.Errorf("%v %v", got, err)
	}
	if want := []string{"10.0.0.1 false", "10.0.0.2 false", "10.0.0.2 true"}; !slices.Equal(log, want) {
		t.Errorf("%v, want %v", log, want)
	}
	none := func(_ context.Context, _ ip.Addr, query []byte, _ bool) ([]byte, error) { return reply(query, 3), nil }
	if _, err := lookupDNS(context.Background(), []ip.Addr{first}, "api.example", none); !errors.Is(err, errNoName) {
		t.Error(err)
	}
	dead := func(context.Context, ip.Addr, []byte, bool) ([]byte, error) { return nil, errors.New("dead") }
	if _, err := lookupDNS(context.Background(), []ip.Addr{first}, "api.example", dead); err == nil {
		t.Error("no server, no error")
	}
}

// TestDatagrams: a reply that is not to the query is waited past.
func TestDatagrams(t *testing.T) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		buf := make([]byte, 512)
		n, from, err := server.ReadFrom(buf)
		if err == nil {
			_, _ = server.WriteTo(reply(question(1, "x", typeA), 0), from)
			_, _ = server.WriteTo(reply(buf[:n], 0, record("@", typeA, []byte{8, 8, 4, 4})), from)
		}
	}()
	c, err := datagramTo(ip.V4(127, 0, 0, 1), server.LocalAddr().(*net.UDPAddr).Port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	q := question(0x4242, "api.example", typeA)
	got, err := askDatagram(c, q, time.Now().Add(10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if list, err := answers(got, 0x4242, "api.example", typeA); err != nil || fmt.Sprint(list) != "[8.8.4.4]" {
		t.Errorf("%v %v", list, err)
	}
	// And it does not wait for ever.
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c2, err := datagramTo(ip.V4(127, 0, 0, 1), silent.LocalAddr().(*net.UDPAddr).Port)
	if err != nil {
		t.Fatal(err)
	}
	defer c2.Close()
	if _, err := askDatagram(c2, q, time.Now().Add(50*time.Millisecond)); err == nil {
		t.Error("no answer, no error")
	}
}

func TestOwnAddresses(t *testing.T) {
	want, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ownAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range want {
		a := ip.Addr(w.(*net.IPNet).IP.To16())
		if !slices.Contains(got, a) {
			t.Errorf("%s is missing in %v", a, got)
		}
	}
}

func TestDial(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	c, err := dialAddr(context.Background(), ip.V4(127, 0, 0, 1), port)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	l.Close()
	if _, err := dialAddr(context.Background(), ip.V4(127, 0, 0, 1), port); err == nil {
		t.Error("connected to nobody")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if c, err := dialAddr(ctx, ip.V4(127, 0, 0, 1), port); err == nil {
		c.Close()
		t.Error("connected although it was cancelled")
	}
}

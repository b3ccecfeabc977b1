package hostword

import (
	"fmt"
	"strings"
	"testing"
)

func TestIn(t *testing.T) {
	for _, row := range []struct{ name, word, want string }{
		// A scheme.
		{"", "https://evil.example/x", "https:evil.example:0"},
		{"", "HTTPS://Evil.Example:8443", "https:evil.example:8443"},
		{"", "http://user:pw@evil.example/", "http:evil.example:0"},
		{"", "http://good.example@evil.example/", "http:evil.example:0"},
		{"", "http://evil.example\\@good.example/", "http:evil.example:0"},
		{"", "git::https://evil.example/m", "https:evil.example:0"},
		{"", "git+ssh://git@evil.example/m", "git+ssh:evil.example:0"},
		{"", "jdbc:postgresql://db.evil.example/x", "postgresql:db.evil.example:0"},
		{"", "http://2130706433/", "http:2130706433:0"},
		{"", "http://[fd00:ec2::254]/latest", "http:fd00:ec2::254:0"},
		{"", "x=https://evil.example", "https:evil.example:0"},
		{"", "a=1,url=https://evil.example,b=2", "https:evil.example:0"},
		{"", "http://a.example,http://b.example", "http:a.example:0 http:b.example:0"},
		{"", "https://\x00/x", "https:\x00:0"},
		{"", "https://evil.example is where", "https:evil.example:0"},
		{"", "see https://evil.example", ""},
		{"", "s3://bucket/key", ""},
		{"", "file:///etc/passwd", ""},
		// user@host:
		{"", "git@evil.example:o/r", ":evil.example:0"},
		{"", "u@evil:x", ":evil:0"},
		{"", "u@[::1]:x", ":::1:0"},
		{"", "img@sha256:abc", ""}, {"", "x@npm:y@1", ""}, {"", "a@b.example", ""}, {"", "mod@v1.2.3", ""}, {"", "@scope/pkg@1.2.3", ""},
		// host:port
		{"", "evil.example:443", ":evil.example:443"}, {"", "evil.example:443/x", ":evil.example:443"}, {"", "localhost:80", ":localhost:80"}, {"", "db:5432", ":db:5432"},
		{"", "a.example:1,b.example:2", ":a.example:1 :b.example:2"},
		{"", "redis:7", ""}, {"", "10:30", ""}, {"", "80:80", ""}, {"", "8080:8080", ""}, {"", "1000:1000", ""}, {"", "a:b", ""}, {"", "app:web", ""}, {"", "library/redis:7", ""}, {"", "evil.example", ""}, {"", "main.go", ""}, {"", "12:30:45", ""},
		// Addresses
		{"", "169.254.169.254", ":169.254.169.254:0"}, {"", "169.254.169.254:80", ":169.254.169.254:80"}, {"", "0251.0376.0251.0376", ":0251.0376.0251.0376:0"},
		{"", "0xa9fea9fe", ":0xa9fea9fe:0"}, {"", "2852039166:80", ":2852039166:80"}, {"", "169.254.43518", ":169.254.43518:0"}, {"", "127.1", ":127.1:0"}, {"", "0x7f.1", ":0x7f.1:0"},
		{"", "::1", ":::1:0"}, {"", "fd00:ec2::254", ":fd00:ec2::254:0"}, {"", "::ffff:169.254.169.254", ":::ffff:169.254.169.254:0"}, {"", "10.0.0.0/8", ":10.0.0.0:0"},
		{"", "1.2.3", ""}, {"", "18.2", ""}, {"", "42", ""}, {"", "1234567890", ""}, {"", "0x1f", ""}, {"", "std::fs", ""}, {"", "a::b", ""}, {"", "007", ""}, {"", "1.20.300.4", ""}, {"", "2026-01-01t10:30:00z", ""},
		// host=
		{"", "host=evil dbname=x", ":evil:0"}, {"", "host=evil.example", ":evil.example:0"}, {"", "hostaddr=169.254.169.254", ":169.254.169.254:0"}, {"server", "evil.example", ":evil.example:0"}, {"api-url", "evil.example/v1", ":evil.example:0"},
		{"host", "db", ":db:0"}, {"url", "x", ""}, {"host", "true", ""}, {"name", "evil.example", ""}, {"bind", "0.0.0.0:80", ""}, {"listen-address", "127.0.0.1", ""}, {"repo", "evil.example/o/r", ":evil.example:0"}, {"repo", "o/r", ""},
		{"", "./x:80", ""}, {"", "/a/b.c:80", ""}, {"", "~/h.x:80", ""}, {"", "web:/app", ""}, {"", "remote:path/x", ""},
		{"inventory", "a.example,db,", ":a.example:0 :db:0"}, {"inventory", "inv.ini", ""}, {"pghost", "evil.example", ":evil.example:0"},
		{"", "", ""}, {"", "=", ""}, {"", "http://", ""}, {"", "://x", ":x:0"}, {"", "@:", ""}, {"host", "/x", ""}, {"host", ":1", ""},
	} {
		var got []string
		for _, h := range In(row.name, row.word) {
			got = append(got, fmt.Sprintf("%s:%s:%d", h.Scheme, h.Name, h.Port))
		}
		if s := strings.Join(got, " "); s != row.want {
			t.Errorf("In(%q, %q) = %q, want %q", row.name, row.word, s, row.want)
		}
	}
}

func TestRemote(t *testing.T) {
	for word, want := range map[string]string{"evil:x": "evil:22", "u@evil.example:/x": "evil.example:22", "evil.example::mod/": "evil.example:873", "u@[::1]:x": "::1:22", "./a:b": "", "/a:b": "", "file": "", "https://h/x": "", ":x": ""} {
		got := ""
		if h, ok := Remote(word); ok {
			got = fmt.Sprintf("%s:%d", h.Name, h.Port)
		}
		if got != want {
			t.Errorf("Remote(%q) = %q, want %q", word, got, want)
		}
	}
}

func FuzzIn(f *testing.F) {
	f.Add("host", "a=b,https://u@h:1/x 1.2.3.4")
	f.Fuzz(func(t *testing.T, name, word string) {
		plain := In("", word)
		for _, h := range plain {
			if h.Name == "" {
				t.Errorf("%q: a host without a name", word)
			}
		}
		if !strings.ContainsAny(word, " \t\n\r\v\f\u0085\u00a0=,;") && word != "" && len(In("", "x="+word)) < len(plain) {
			t.Errorf("%q names fewer hosts behind x=", word)
		}
	})
}

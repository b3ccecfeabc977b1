package atip

import "testing"

func TestSQL(t *testing.T) {
	const (
		read = ""
		m    = "m"  // mutates
		d    = "md" // destroys
		o    = "o"  // opaque
	)
	for text, want := range map[string]string{
		"":         read,
		"select 1": read,
		"SELECT a, count(*) FROM t WHERE b IN (1,2) ORDER BY a": read,
		"select 'it''s; DROP TABLE x' from t":                   read,
		"values (1),(2)":                                        read,
		"show tables":                                           read,
		"explain delete from t":                                 read,
		"explain analyze delete from t":                         d,
		"EXPLAIN (ANALYZE, BUFFERS) UPDATE t SET a=1 WHERE b":   m,
		"with x as (select 1) select * from x":                  read,
		"with x as (delete from t returning *) select * from x": d,
		"with x as (select 1) delete from t where a":            d,
		"insert into t (a,b) values (1,2)":                      m,
		"insert into t select * from u":                         m,
		"update t set a=1 where b=2":                            m,
		"update t set a=1":                                      d,
		"delete from t where a=1":                               d,
		"truncate t":                                            d,
		"drop table t":                                          d,
		"alter table t add column a int":                        m,
		"alter table t drop column a":                           d,
		"create table t (a varchar(10) primary key)":            m,
		"create function f() returns int as 'x' language c":     "mo",
		"grant all on t to u":                                   m,
		"select 1; drop table t":                                d,
		"select 1 into outfile '/tmp/x'":                        o,
		"select * into u from t":                                o,
		"select pg_read_file('/etc/passwd')":                    o,
		"select pg_catalog.count(1)":                            o,
		`select "f"(1)`:                                         o,
		"do $$ begin end $$":                                    o,
		"call f()":                                              o,
		"load data infile 'x' into table t":                     o,
		"copy t from program 'sh'":                              o,
		"copy t to '/tmp/x'":                                    o,
		"copy t to stdout":                                      read,
		"copy t from stdin":                                     m,
		`\! sh`:                                                 o,
		`\dt+`:                                                  read,
		`\d t`:                                                  read,
		`\o |sh`:                                                o,
		".shell ls":                                             o,
		"select 1 /*! into outfile 'x' */":                      o,
		"select 1--1\n; drop table t":                           "mdo",
		"select 1 -- comment; drop table t":                     read,
		`select '\'; drop table t; --'`:                         "mdo",
		"select 'open":                                          o,
		"pragma table_info(t)":                                  read,
		"pragma writable_schema = 1":                            o,
		"vacuum into 'x'":                                       "mo",
		"attach 'x' as y":                                       o,
		"begin; commit":                                         read,
		"frobnicate":                                            o,
	} {
		v := classifySQL(text)
		got := ""
		if v.mutates {
			got += "m"
		}
		if v.destroys {
			got += "d"
		}
		if v.opaque || v.calls {
			got += "o"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// FuzzSQL: a statement behind any prefix that leaves the reader certain stays visible.
func FuzzSQL(f *testing.F) {
	for _, s := range []string{"select 1", "select 'a", "/* x", "-- y", `"a`, "with x as (", "select 'a\\'", "$$", "\\d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v := classifySQL(s); v.opaque {
			return
		}
		if v := classifySQL(s + "\n;\ndrop table t"); !v.destroys && !v.opaque {
			t.Fatalf("%q hides a statement", s)
		}
	})
}

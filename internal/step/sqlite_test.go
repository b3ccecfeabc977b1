package step

import (
	"slices"
	"testing"
)

// TestSQLiteWords: SQL that is read becomes a word, but never the one in the place of the database.
func TestSQLiteWords(t *testing.T) {
	const sql = "drop table t;\n"
	for _, words := range [][]string{{"sqlite3", "a.db"}, {"sqlite3", "-csv", "-header", "a.db"}} {
		if got := SQLiteWords(words, sql); !slices.Equal(got, append(slices.Clone(words), sql)) {
			t.Errorf("%q: %q", words, got)
		}
	}
	for _, words := range [][]string{{"sqlite3"}, {"sqlite3", "-batch"}, {"sqlite3", "a.db", "select 1"}, {"sqlite3", "-cmd", "x", "a.db"}} {
		if got := SQLiteWords(words, sql); !slices.Equal(got, words) {
			t.Errorf("%q: %q", words, got)
		}
	}
	if got := SQLiteWords([]string{"sqlite3", "a.db"}, "select 1;\n .shell id\n"); len(got) != 2 {
		t.Errorf("a command of its shell: %q", got)
	}
}

package completions

import (
	"testing"
	"time"
)

// TestCompletionIsBounded: an answer that hangs or breaks is no words, and is not waited for.
func TestCompletionIsBounded(t *testing.T) {
	one := func() ([]candidate, string) { return []candidate{{"word", ""}}, "" }
	hangs := make(chan struct{})
	defer close(hangs)
	for _, tt := range []struct {
		name  string
		limit time.Duration
		ask   func() ([]candidate, string)
		want  int
	}{
		{"an answer", time.Minute, one, 1},
		{"a hang", 50 * time.Millisecond, func() ([]candidate, string) { <-hangs; return one() }, 0},
		{"a panic", time.Minute, func() ([]candidate, string) { panic("broken") }, 0},
	} {
		began := time.Now()
		if got, _ := within(tt.limit, tt.ask); len(got) != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s took %v", tt.name, took)
		}
	}
}

// TestSpecialWordsAreLeftOut: a word that a shell reads in another way is not put on its line.
func TestSpecialWordsAreLeftOut(t *testing.T) {
	for _, r := range " \t\n$`'\"\\;&|<>()[]{}*?!#~=^\u202e\x1b\x00é" {
		if !special(r) {
			t.Errorf("%q would be offered", r)
		}
	}
	for _, r := range "azAZ09_-.:/@+,%" {
		if special(r) {
			t.Errorf("%q would not be offered", r)
		}
	}
}

package builtin

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestOneEntryForAnArgument: of two entries about one argument only the first counts, so a
// second one that says "write" would be a promise that nobody keeps.
func TestOneEntryForAnArgument(t *testing.T) {
	files, err := filepath.Glob("*.json")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d documents, %v", len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc any
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		oneEntry(t, file, "", doc)
	}
}

func oneEntry(t *testing.T, file, at string, v any) {
	switch v := v.(type) {
	case map[string]any:
		entries, _ := v["args"].([]any)
		seen := map[string]bool{}
		for _, e := range entries {
			m, ok := e.(map[string]any)
			if !ok {
				continue
			}
			key := fmt.Sprint(m["name"], m["flag"], m["index"], m["key"])
			if seen[key] {
				t.Errorf("%s: %s/args: two entries for %s", file, at, key)
			}
			seen[key] = true
		}
		for k, member := range v {
			oneEntry(t, file, at+"/"+k, member)
		}
	case []any:
		for i, item := range v {
			oneEntry(t, file, fmt.Sprint(at, "/", i), item)
		}
	}
}

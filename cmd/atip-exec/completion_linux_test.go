package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/internal/require"
)

// completions are lines with one way to go on, and how they stand there after a TAB. zzmytool
// is a command whose completion somebody else wrote.
var completions = []struct{ typed, want string }{
	{"atip-exec --dry", "atip-exec --dry-run"},
	{"atip-exec -o te", "atip-exec -o text"},
	{"atip-exec --output te", "atip-exec --output text"},
	{"atip-exec --output=te", "atip-exec --output=text"},
	{"atip-exec -q --stat", "atip-exec -q --status-f"},
	{"atip-exec -C onlyd", "atip-exec -C onlydir/"},
	{"atip-exec --policy onlyf", "atip-exec --policy onlyfile"},
	{"atip-exec expla", "atip-exec explain"},
	{"atip-exec explain --bat", "atip-exec explain --batch"},
	{"atip-exec zzmyto", "atip-exec zzmytool"},
	{"atip-exec -q -- zzmyto", "atip-exec -q -- zzmytool"},
	{"atip-exec zzmytool be", "atip-exec zzmytool beta"},
	{"atip-exec -q -- zzmytool --x be", "atip-exec -q -- zzmytool --x beta"},
	{"atip-exec --timeout 5 -C /usr zzmytool be", "atip-exec --timeout 5 -C /usr zzmytool beta"},
	{"atip-exec explain zzmytool be", "atip-exec explain zzmytool beta"},
	{"atip-exec explain -o json -- zzmytool be", "atip-exec explain -o json -- zzmytool beta"},
	{"atip-exec -- safety-p", "atip-exec -- safety-p"}, // no verb behind it, and no program has it in its name
	{"atip-exec zzmytool --dry", "atip-exec zzmytool --dry"},
	{"atip-exec zzdoc dep", "atip-exec zzdoc deploy"},
	{"atip-exec -q -- zzdoc dep", "atip-exec -q -- zzdoc deploy"},
	{"atip-exec zzdoc deploy --env", "atip-exec zzdoc deploy --environment"},
	{"atip-exec zzdoc deploy --environment stag", "atip-exec zzdoc deploy --environment staging"},
	{"atip-exec explain zzdoc deploy eu-w", "atip-exec explain zzdoc deploy eu-west"},
	{"atip delegate --tools git -- zzdoc dep", "atip delegate --tools git -- zzdoc deploy"},
	{"atip-exec zzdoc be", "atip-exec zzdoc beta"}, // its document has no such word, and the shell has
	{"atip-exec policy sim", "atip-exec policy simulate"},
	{"atip-exec script onlyf", "atip-exec script onlyfile"},
	{"atip sandbox quar", "atip sandbox quarantine"},
	{"atip sandbox quarantine res", "atip sandbox quarantine restore"},
	{"atip compl", "atip completion"},
	{"atip completion fi", "atip completion fish"},
	{"atip resolve --rank ven", "atip resolve --rank vendor"},
	{"atip run shi", "atip run ship"},
	{"atip-exec run --timeout 5 shi", "atip-exec run --timeout 5 ship"},
	{"atip run ship st", "atip run ship staging"},
	{"atip run db:u", "atip run db:up"},
	{"atip run db:", "atip run db:up"},
	{"atip run db u", "atip run db up"},
	{"atip skill terrafo", "atip skill terraform"},
	{"atip-exec show terrafo", "atip-exec show terraform"},
	{"atip undo firstp", "atip undo firstpoint"},
	{"atip delegate --tools git -- zzmytool be", "atip delegate --tools git -- zzmytool beta"},
}

// zzdoc is the metadata of a command that is not installed.
const zzdoc = `{"atip":{"version":"0.6"},"name":"zzdoc","version":"1","description":"d","commands":{"deploy":{"description":"Ship it",
"arguments":[{"name":"region","type":"enum","enum":["eu-west","us-east"],"description":"where"}],
"options":[{"name":"environment","flags":["--environment"],"type":"enum","enum":["staging","production"],"description":"which"}]},"destroy":{"description":"Remove it"}}}`

// completing is a directory to type in, and its environment.
func completing(t *testing.T) (w world, env []string) {
	t.Helper()
	w = newWorld(t)
	put(t, w.ws, map[string]string{"onlyfile": "", "onlydir/x": "", "Runfile": "# @desc Ship it\nship(target = staging) echo\ndb:up() echo\n"})
	put(t, w.home, map[string]string{"stubs/zzmytool": "#!/bin/sh\n", ".local/share/agent-tools/shims/zzdoc.json": zzdoc})
	if err := os.Chmod(filepath.Join(w.home, "stubs", "zzmytool"), 0o755); err != nil {
		t.Fatal(err)
	}
	made := exec.Command(filepath.Join(bin, "atip"), "checkpoint", "firstpoint")
	made.Dir, made.Env = w.ws, []string{"HOME=" + w.home, "PATH=/usr/bin:/bin"}
	if out, err := made.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return w, []string{"HOME=" + w.home, "ZDOTDIR=" + w.home, "PATH=" + filepath.Join(w.home, "stubs") + ":" + bin + ":/usr/bin:/bin", "TERM=dumb", "LANG=C.UTF-8", "BASH_SILENCE_DEPRECATION_WARNING=1"}
}

func needShell(t *testing.T, name string) {
	t.Helper()
	_, err := exec.LookPath(name)
	require.Feature(t, "shells", err)
}

const bashSettings = `PS1='READY$ '
bind 'set bell-style none'
bind 'set enable-bracketed-paste off'
@MORE@
source <(atip completion bash)
_zzmytool() { [[ $2 == be* ]] && COMPREPLY=(beta); }
complete -F _zzmytool zzmytool zzdoc
__shown() { echo; echo "SHOWN<$((++shown)):$READLINE_LINE>"; READLINE_LINE= READLINE_POINT=0; }
bind -x '"\C-t": __shown'
`

const zshSettings = `PS1='READY$ '
unsetopt beep
autoload -U compinit && compinit -D -u
source <(atip completion zsh)
_zzmytool() { [[ $PREFIX == be* ]] && compadd beta; }
compdef _zzmytool zzmytool zzdoc
__shown() { print; print -r -- "SHOWN<$((++shown)):$BUFFER>"; BUFFER=; }
zle -N __shown
bindkey '^T' __shown
`

// TestCompletion sources the scripts in real shells, on a terminal, and presses TAB.
func TestCompletion(t *testing.T) {
	t.Parallel()
	const library = "/usr/share/bash-completion/bash_completion"
	for _, tt := range []struct {
		name, shell string
		args        []string
		file, text  string
	}{
		{"bash", "bash", []string{"--noprofile", "--rcfile", "rc"}, "rc", strings.Replace(bashSettings, "@MORE@", "", 1)},
		{"bash with bash-completion", "bash", []string{"--noprofile", "--rcfile", "rc"}, "rc", strings.Replace(bashSettings, "@MORE@", "source "+library, 1)},
		{"zsh", "zsh", []string{"-d"}, ".zshrc", zshSettings},
	} {
		t.Run(tt.name, func(t *testing.T) {
			needShell(t, tt.shell)
			if strings.Contains(tt.text, library) {
				_, err := os.Stat(library)
				require.Feature(t, "shells", err)
			}
			w, env := completing(t)
			put(t, w.home, map[string]string{tt.file: tt.text})
			args := append([]string{}, tt.args...)
			if args[len(args)-1] == "rc" {
				args[len(args)-1] = filepath.Join(w.home, "rc")
			}
			cmd := exec.Command(tt.shell, append(args, "-i")...)
			cmd.Dir, cmd.Env = w.ws, env
			s := newScreen(t)
			s.resize(50, 200)
			s.on(cmd)
			timer := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() })
			defer func() {
				cmd.Process.Kill()
				_ = cmd.Wait()
				timer.Stop()
			}()
			if !s.shows("READY$ ") {
				return
			}
			for i, c := range completions {
				if _, err := s.outer.WriteString(c.typed + "\t\x14"); err != nil {
					t.Fatal(err)
				}
				mark := fmt.Sprintf("SHOWN<%d:", i+1)
				if !s.shows(mark) {
					return
				}
				_, line, _ := strings.Cut(s.text(), mark)
				for deadline := time.Now().Add(time.Minute); !strings.Contains(line, ">") && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
					_, line, _ = strings.Cut(s.text(), mark)
				}
				line, _, _ = strings.Cut(line, ">")
				if got := strings.TrimRight(line, " "); got != c.want {
					t.Errorf("%q becomes %q, want %q", c.typed, got, c.want)
				}
			}
		})
	}
}

// TestCompletionOfFish asks fish for what it would offer.
func TestCompletionOfFish(t *testing.T) {
	t.Parallel()
	needShell(t, "fish")
	w, env := completing(t)
	put(t, w.home, map[string]string{"settings.fish": "atip completion fish | source\ncomplete -c zzmytool -f -a beta\ncomplete -c zzdoc -f -a beta\n"})
	for _, c := range completions {
		if strings.HasSuffix(c.want, "--status-f") {
			continue // fish lists what bash and zsh write as far as it is common
		}
		cmd := exec.Command("fish", "--no-config", "-c", "source $HOME/settings.fish; complete -C $argv[1]", c.typed)
		cmd.Dir, cmd.Env = w.ws, env
		out, err := cmd.CombinedOutput()
		var offered []string
		for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
			word, _, _ := strings.Cut(line, "\t")
			offered = append(offered, word)
		}
		word := c.want[strings.LastIndex(c.want, " ")+1:]
		if c.want == c.typed {
			word = ""
		}
		if len(offered) != 1 || offered[0] != word {
			t.Errorf("%q: offered %q, want %q; %v", c.typed, offered, word, err)
		}
	}
}

// TestCompletionOfLines asks as the script for PowerShell does, for the lines whose answer is ours:
// files, programs and what others wrote are the shell's.
func TestCompletionOfLines(t *testing.T) {
	w, env := completing(t)
	ours := 0
	for _, c := range completions {
		word := c.want[strings.LastIndex(c.want, " ")+1:]
		if strings.HasSuffix(word, "--status-f") || strings.Contains(word, "=") || word == "beta" || word == "zzmytool" || strings.HasPrefix(word, "only") || c.want == c.typed {
			continue
		}
		ours++
		words := strings.Fields(c.typed)
		last := len(words) - 1
		cmd := exec.Command(filepath.Join(bin, "atip"), append([]string{"__complete", "line", "begun:" + words[last], "--"}, words[:last]...)...)
		cmd.Dir, cmd.Env = w.ws, env
		out, err := cmd.CombinedOutput()
		offered, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\t")
		if err != nil || offered != word || strings.Count(string(out), "\n") != 1 {
			t.Errorf("%q: offered %q, want %q; %v", c.typed, out, word, err)
		}
	}
	if ours < 20 {
		t.Errorf("only %d lines are ours", ours)
	}
}

// TestCompletionByItself: a word of the line is not run as code.
func TestCompletionByItself(t *testing.T) {
	w, env := completing(t)
	script := `source <(atip completion bash)
_zzmytool() { COMPREPLY=("$2"); }
complete -F _zzmytool zzmytool
for line in 'atip-exec $(touch${IFS}ran)' 'atip-exec --$(touch${IFS}ran)' 'atip-exec --output=$(touch${IFS}ran)' 'atip-exec -o $(touch${IFS}ran)' 'atip $(touch${IFS}ran)' 'atip-exec -- $(touch${IFS}ran) x' 'atip-exec zzmytool $(touch${IFS}ran)' 'atip-exec a[$(touch${IFS}ran)] x' 'atip-exec script $(touch${IFS}ran)'; do
	set -f; COMP_WORDS=($line); set +f
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$line COMP_POINT=${#line}
	__atip_complete 2>/dev/null
done
eval 'touch control'
`
	cmd := exec.Command("bash", "--norc", "-c", script)
	cmd.Dir, cmd.Env = w.ws, env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(w.ws, "ran")); err == nil {
		t.Error("a word of the line was run")
	}
	if _, err := os.Stat(filepath.Join(w.ws, "control")); err != nil {
		t.Error(err)
	}
}

package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestOrdinaryCommands runs what developers run, in a workspace, without network.
func TestOrdinaryCommands(t *testing.T) {
	needLandlock(t, scopeABI)
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		goroot = []byte("/usr/local/go")
	}
	bin := strings.TrimSpace(string(goroot)) + "/bin"
	tiers := []Tier{T2}
	if try("").Namespaces {
		tiers = append(tiers, T3)
	}
	for name, text := range map[string]string{
		"git": `git init -q . && git config user.email a@b && git config user.name a && echo x >f && git add f &&
			git commit -qm m && git status --short && git checkout -q -b b && git worktree list >/dev/null && git log --oneline | wc -l`,
		// Not a build: the private cache is cold, and compiling the runtime takes seconds.
		"go": `mkdir m && cd m && printf 'module m\ngo 1.20\n' >go.mod && printf 'package main\nfunc main(){println("hi")}\n' >main.go &&
			export GOTOOLCHAIN=local && go list ./... && gofmt -l . && go mod edit -json >/dev/null && ls $GOCACHE >/dev/null`,
		"python": `python3 -c 'import tempfile,subprocess,json,ssl; open("x","w").write("y"); tempfile.NamedTemporaryFile(); subprocess.run(["true"],check=True)'`,
		"tar":    `mkdir a && echo 1 >a/1 && tar czf a.tgz a && rm -r a && tar xzf a.tgz && cat a/1`,
		"make":   `printf 'all:\n\techo made\n' >Makefile && make`,
		"shell":  `for i in 1 2 3; do echo $i; done | sort -r | head -1; cat <(echo sub); x=$(mktemp) && echo >$x && rm $x; cat <<<here >/dev/null; echo err >/dev/stderr`,
		"find":   `find . -type f | xargs -r ls -l >/dev/null; sed -i s/a/b/ mine; grep -r x . || true; cp mine c; mv c d; mkdir -p q/w; rm -rf q; touch -d 2020-01-01 d; chmod 600 d`,
		"gcc":    `echo 'int main(){return 0;}' >a.c && gcc -o a a.c && ./a`,
	} {
		tool := name
		if tool == "shell" {
			tool = "bash"
		}
		if tool == "python" {
			tool = "python3"
		}
		if _, err := exec.LookPath(tool); err != nil {
			t.Logf("%s is not installed", tool)
			continue
		}
		for _, tier := range tiers {
			ordinary(t, name, text, bin, tier)
		}
	}
}

func ordinary(t *testing.T, name, text, bin string, tier Tier) {
	w := newWorld(t)
	path := filepath.SplitList(os.Getenv("PATH"))
	p := w.profile(t, func(in *Input) { in.PathDirs, in.Families, in.Policy.Tier = append(path, bin), []string{"go"}, tier })
	j := w.shell(p, "set -e\ncd "+w.ws+"\n"+text)
	j.Env = append(j.Env, "PATH="+strings.Join(path, ":")+":"+bin, "HOME="+w.home)
	for k, v := range p.Env {
		j.Env = append(j.Env, k+"="+v)
	}
	if r := confined(t, j); r.Exit.Code != 0 || r.Err != "" {
		t.Errorf("%s at %s: status %d %s\n%s", name, r.Receipt.Tier, r.Exit.Code, r.Err, r.Out)
	}
}

// everyday are single commands, one a line, that must end with 0 in a workspace without
// network. A first word that is not installed is left out. Lines marked "T3 " need a private root.
const everyday = `
ls -la
ls -R .
cat mine
cp mine a1
mv a1 a2
rm a2
mkdir -p d/e
rmdir d/e
touch d/t
ln -s mine link
ln mine hard
readlink -f link
realpath mine
stat mine
chmod 640 mine
touch -d 2020-01-01 mine
truncate -s 10 trunc
dd if=/dev/zero of=dd bs=1k count=4 status=none
head -c 5 mine
tail -n 1 mine
wc -l mine
sort mine
sort -S 1M -T . mine
uniq mine
cut -c1-3 mine
tr a b <mine
sed -n 1p mine
sed -i s/x/y/ mine
awk {print$1} mine
grep -c . mine
find . -name mine
find . -type f -exec true {} +
xargs -a mine echo
tee teed <mine
diff mine mine
cmp mine mine
comm mine mine
join mine mine
paste mine mine
split -b 4 mine part
csplit -s mine 1
fold -w 10 mine
nl mine
od -c mine
xxd mine
hexdump -C mine
base64 mine
md5sum mine
sha256sum mine
cksum mine
du -sh .
df .
date
date +%s
env
printenv HOME
id
whoami
uname -a
hostname
nproc
pwd
echo hi
printf %s x
seq 3
expr 1 + 1
test -f mine
true
sleep 0
basename /a/b
dirname /a/b
mktemp
mktemp -d
tsort /dev/null
factor 12
numfmt 1000
shuf -n 1 mine
tac mine
rev mine
timeout 5 true
nice true
nohup true
setsid true
stdbuf -oL true
time -p true
which ls
file mine
tar cf t.tar mine
tar xf t.tar
gzip -k mine
gunzip -c mine.gz
bzip2 -k mine
xz -k mine
zip -q z.zip mine
unzip -qo z.zip
bash -c true
sh -c :
dash -c :
bash -c "cat <(echo x) >/dev/null"
bash -c "x=$(echo y); echo $x"
bash -c "coproc cat; echo done"
perl -e print(1)
python3 -c print(1)
python3 -m json.tool /dev/null --json-lines
python3 -m venv --without-pip venv
python3 -m compileall -q .
python3 -c "import sqlite3; sqlite3.connect('x.db').execute('create table t(a)')"
python3 -c "import tempfile,subprocess; subprocess.run(['true'],check=True,stdin=tempfile.TemporaryFile())"
python3 -c "import threading; t=threading.Thread(target=print); t.start(); t.join()"
python3 -c "import asyncio; asyncio.run(asyncio.sleep(0))"
python3 -c "import mmap,os; f=open('mm','wb+'); f.write(b'x'*4096); f.flush(); mmap.mmap(f.fileno(),0)"
python3 -c "import fcntl; fcntl.flock(open('lk','w'),2)"
python3 -c "import socket; socket.socketpair()"
T3 python3 -c "import multiprocessing as m; m.Lock()"
T3 python3 -c "import os; os.openpty()"
T3 python3 -c "import socket; s=socket.socket(socket.AF_UNIX); s.bind('/tmp/s')"
node -e 0
node -e "require('fs').writeFileSync('n','1')"
node -e "require('child_process').execSync('true')"
node -e "new (require('worker_threads').Worker)('0',{eval:true})"
npm --version
git init -q repo
git -C repo status
git -C repo config user.name a
git -C repo config user.email a@example.invalid
git -C repo commit -q --allow-empty -m m
git -C repo log --oneline
git -C repo checkout -q -b b
git -C repo worktree add -q ../wt
git -C repo stash list
git -C repo gc -q
git -C repo fsck
git clone -q repo copy
make --version
gcc --version
gcc -x c -c /dev/null -o o.o
cc -E -x c /dev/null
ld --version
ar rc lib.a o.o
nm lib.a
strip --version
objdump -h o.o
go version
go env GOROOT
gofmt -l .
jq . /dev/null
sqlite3 x2.db .tables
openssl version
openssl rand -hex 4
openssl dgst -sha256 mine
ps
ps -e
strace -o st true
rsync -a mine rs
patch --version
m4 /dev/null
bc --version
T3 ed -s mine
vi --version
less --version
locale
getconf PAGE_SIZE
ldd /bin/true
man --version
apt-cache --version
dpkg -l bash
cargo --version
ruby -e 1
lua -v
php -m
java -version
java -cp . -XshowSettings:locale -version
javap java.lang.Object
jar --version
mvn -v
emacs --batch --kill
man -P cat ls
dpkg -S /bin/bash
cmake --version
ssh -G localhost
identify -list color
svn --version -q
less mine
more mine
gdb -batch -ex run /bin/true
`

// TestEverydayCommands runs them all in one workspace for each tier, and at least eighty.
func TestEverydayCommands(t *testing.T) {
	needLandlock(t, scopeABI)
	tiers := []Tier{T2}
	if try("").Namespaces {
		tiers = append(tiers, T3)
	}
	for _, tier := range tiers {
		w := newWorld(t)
		text := "cd " + w.ws + "; printf 'one\\ntwo\\n' >mine\n"
		text += "try() { n=$((n+1)); \"$@\" >out.txt 2>err.txt </dev/null || { echo \"FAILED $*: $?\"; tail -3 err.txt; }; }\nn=0\n"
		for line := range strings.Lines(strings.TrimSpace(everyday)) {
			line = strings.TrimSpace(line)
			line, private := strings.CutPrefix(line, "T3 ")
			if private && tier != T3 {
				continue
			}
			name, _, _ := strings.Cut(line, " ")
			if _, err := exec.LookPath(name); err != nil && name != "time" {
				continue
			}
			if name == "cargo" || name == "awk" || name == "perl" || name == "time" {
				// Words that this shell would read otherwise, and a shim that needs its home.
				switch name {
				case "awk":
					line = `awk '{print $1}' mine`
				case "perl":
					line = `perl -e 'print(1)'`
				default:
					continue
				}
			}
			if strings.Contains(line, "print(1)") && name == "python3" {
				line = `python3 -c 'print(1)'`
			}
			text += "try " + line + "\n"
		}
		text += "echo ran $n\n"
		path := filepath.SplitList(os.Getenv("PATH"))
		p := w.profile(t, func(in *Input) { in.PathDirs, in.Families, in.Policy.Tier = path, []string{"go", "npm", "pip"}, tier })
		j := w.shell(p, text)
		j.Path = "/usr/bin/bash"
		j.Argv[0] = "bash"
		j.Env = append(j.Env, "PATH="+strings.Join(path, ":"), "HOME="+w.home, "GOTOOLCHAIN=local", "TERM=dumb")
		for k, v := range p.Env {
			j.Env = append(j.Env, k+"="+v)
		}
		r := confined(t, j)
		ran := 0
		for line := range strings.Lines(r.Out) {
			if n, ok := strings.CutPrefix(strings.TrimSpace(line), "ran "); ok {
				ran, _ = strconv.Atoi(n)
			}
		}
		if strings.Contains(r.Out, "FAILED") || ran < 80 || r.Err != "" {
			t.Errorf("%s: %d ran; %s\n%s", tier, ran, r.Err, r.Out)
		}
		t.Logf("%s: %d commands", tier, ran)
	}
}

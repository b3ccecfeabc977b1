package caller

import "testing"

// TestWrapped: only one call of this program, of constant words and with nothing beside it, is
// passed on to an agent's own shell as it is. Whatever that shell would do for it by itself
// would run unconfined.
func TestWrapped(t *testing.T) {
	m := Machine{Self: "/bin/ae"}
	for _, text := range []string{"/bin/ae -- ls", "/bin/ae -- ls 'a b'", "/bin/ae -c 'ls; id'"} {
		if wrapped, policies := m.Wrapped(text); !wrapped || policies {
			t.Errorf("%s: %v %v", text, wrapped, policies)
		}
	}
	for _, text := range []string{
		"ls", "ae -- ls", "./ae -- ls", "/bin/ae", "/bin/ae --", "/bin/ae -c", "/bin/ae -c ls x", "/bin/ae doctor",
		"/bin/ae -- ls; id", "/bin/ae -- ls & id", "/bin/ae -- ls &", "/bin/ae -- ls | sh", "/bin/ae -- ls && id", "/bin/ae -- ls\nid", "/bin/ae -- ls # x\nid", "! /bin/ae -- ls", "time /bin/ae -- ls",
		"/bin/ae -- ls > ~/.bashrc", "/bin/ae -- ls 2>&1", "/bin/ae -- cat <<< \"$(id)\"", "A=1 /bin/ae -- ls", "LD_PRELOAD=./x.so /bin/ae -- ls",
		"/bin/ae -- echo $(id)", "/bin/ae -- echo `id`", "/bin/ae -- cat <(id)", "/bin/ae -- echo ${x:=$(id)}", "/bin/ae -- $((a[$(id)]))", "/bin/ae -- \"${a[$(id)]}\"", "/bin/ae -- ${x@P}",
		"/bin/ae -- $X", "/bin/ae -- *", "/bin/ae -- {a,b}",
	} {
		if wrapped, _ := m.Wrapped(text); wrapped {
			t.Errorf("%s is passed on", text)
		}
	}
	for _, text := range []string{"/bin/ae --policy x -- ls", "/bin/ae --profile=x -- ls", "id; /bin/ae -q --prime off -c ls"} {
		if _, policies := m.Wrapped(text); !policies {
			t.Errorf("%s: the caller chooses the policy", text)
		}
	}
}

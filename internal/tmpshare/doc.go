// Package tmpshare keeps the /tmp of the runs of a workspace and the machine's /tmp in step.
// A run in a private root has a /tmp of its own, which the next run of that workspace finds
// again; programs that nothing confines, such as the file tools of an agent, have the
// machine's. What they put there is copied in before a run, and what a run leaves is
// copied out after it, as far as neither side takes anything from the other:
//
//   - in go regular files of the user, and small directories of them;
//   - out go regular files and directories under names that are free, or that came out before
//     and have not changed since;
//   - neither way go sockets, pipes, links, files of other users, names that begin with a dot
//     and files of secrets; nor what another workspace has left.
package tmpshare

import "io/fs"

// Share names both sides.
type Share struct {
	Host   string // the machine's directory, /tmp
	Inside string // the directory that stands in its place in a run
	Books  string // directory of the records of what was copied; no run may write there
	ID     string // of the workspace
	UID    int
	// Skip reports a path of Host that leads to something else of a run, such as its workspace.
	Skip func(path string) bool
	// Secret reports a path of Host whose name is that of a secret.
	Secret func(path string) bool
}

// Bounds of one copy in each direction.
const (
	maxNames    = 4096      // entries of a directory that are looked at
	maxLooks    = 1024      // stat calls on the machine's side
	maxTree     = 64        // entries of a directory that is copied in
	maxDepth    = 8         // directories below each other
	maxIn       = 16 << 20  // bytes of a file that is copied in
	maxAllIn    = 32 << 20  // and of all of them
	maxOut      = 256 << 20 // bytes of a file that is copied out
	maxAllOut   = 512 << 20 // and of all of them
	maxBook     = 64 << 20  // bytes of a record, which is more than they come to
	secretBytes = 4 << 10   // of a file are searched for a private key
)

// Left is what Out did not copy.
type Left struct {
	Name string // below the directory
	Why  string
}

// identity tells one state of a file from another; of a directory it is the inode alone.
type identity struct {
	Ino   uint64 `json:"i,omitempty"`
	Size  int64  `json:"s,omitempty"`
	MTime int64  `json:"m,omitempty"` // nanoseconds
	CTime int64  `json:"c,omitempty"`
}

// entry is what is known of a name: how both sides were after the last copy.
type entry struct {
	Host   identity `json:"h"`
	Inside identity `json:"n"`
	Ours   bool     `json:"o,omitempty"` // a run made it
	Apart  bool     `json:"a,omitempty"` // both sides have a file of their own, which was told
	Large  int64    `json:"l,omitempty"` // the time of a directory that is too large to be copied
	// Coming is noted before a copy is made: if nobody got to note more, whatever is inside under this
	// name and is not Inside is that copy, not something that a run has left.
	Coming bool
}

// published is a name that a run of some workspace has put into the machine's directory.
type published struct {
	ID   string   `json:"w"`
	Host identity `json:"h"`
}

const permissions = fs.ModePerm

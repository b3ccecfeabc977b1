// Package standin is what this program does in the place of a command that is a run of its own (an own
// step): it asks the run of its text to start that command, passes signals on and ends as the command does
// (nest has the protocol). It does so before most packages of the program initialise, which is half of what
// a start costs, and imports only what is initialised by then.
package standin

// Variable tells a stand-in where the run of its text hears it and for which names it stands:
// "fd:N/NAME/NAME".
const Variable = "ATIP_EXEC_STANDS"

// What goes over the sockets: first the question, with a socket for the answer and the three descriptors of
// the command. Any other answer than these three is an Outcome of nest.
const (
	Question = `{"kind":"own"}`
	Who      = "who"   // any message is the answer to it
	Exit     = "exit " // and the status
	Keep     = "keep " // and the file that this process becomes
)

var (
	asked bool
	said  []byte
	lost  string
)

// Asked reports whether this process is a stand-in that could not end as its command did: the answer that
// says more, or why there is none.
func Asked() (answer []byte, why string, ok bool) { return said, lost, asked }

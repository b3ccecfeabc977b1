//go:build unix && !linux

package settle

import "syscall"

// changed is the size here: the change time has another name in each of these systems.
func changed(st *syscall.Stat_t) uint64 { return uint64(st.Size) }

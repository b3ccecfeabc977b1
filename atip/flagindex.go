package atip

import "hash/maphash"

// flagIndex finds an option by flag: a scan while there are few, else open
// addressing, which costs a tenth of a map for the hundred options of git log. The
// seed is random, so a document cannot choose its collisions.
type flagIndex struct {
	seed  maphash.Seed
	slots []flagSlot
}

type flagSlot struct {
	flag   string
	option int32 // index + 1; 0 is free
}

const fewFlags = 12

// build indexes options and calls clash for two that share a flag.
func (x *flagIndex) build(options []option, clash func(a, b *option)) {
	total := 0
	for i := range options {
		total += len(options[i].flags)
	}
	if total <= fewFlags {
		for i := range options {
			for _, f := range options[i].flags {
				for j := range options[:i] {
					if options[j].has(f) {
						clash(&options[i], &options[j])
					}
				}
			}
		}
		return
	}
	size := 32
	for size < 2*total {
		size *= 2
	}
	x.seed = maphash.MakeSeed()
	x.slots = make([]flagSlot, size)
	for i := range options {
		for _, f := range options[i].flags {
			s := x.slot(f)
			if s.option != 0 {
				clash(&options[i], &options[s.option-1])
				continue
			}
			s.flag, s.option = f, int32(i+1)
		}
	}
}

// slot is where flag is or would be.
func (x *flagIndex) slot(flag string) *flagSlot {
	mask := uint64(len(x.slots) - 1)
	for i := maphash.String(x.seed, flag) & mask; ; i = (i + 1) & mask {
		if s := &x.slots[i]; s.option == 0 || s.flag == flag {
			return s
		}
	}
}

func (x *flagIndex) find(options []option, flag string) *option {
	if x.slots != nil {
		if s := x.slot(flag); s.option != 0 {
			return &options[s.option-1]
		}
		return nil
	}
	for i := range options {
		if options[i].has(flag) {
			return &options[i]
		}
	}
	return nil
}

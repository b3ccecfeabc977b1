package generate

import (
	"cmp"
	"slices"
)

// Merge adds to a what b, another source about the same tool, knows beside it. Where
// both say how many words an option takes and disagree, nobody knows.
func Merge(a, b Node) Node {
	out := a
	out.Description = cmp.Or(out.Description, b.Description)
	out.Help.Summary = cmp.Or(out.Help.Summary, b.Help.Summary)
	out.Help.Framework = cmp.Or(out.Help.Framework, b.Help.Framework)
	out.Failed = a.Failed && b.Failed
	out.Aliases = a.Aliases
	for _, alias := range b.Aliases {
		if !contains(out.Aliases, alias) {
			out.Aliases = append(out.Aliases[:len(out.Aliases):len(out.Aliases)], alias)
		}
	}
	out.Help.Options = mergeOptions(a.Help.Options, b.Help.Options)
	out.Kids = append([]Node(nil), a.Kids...)
	for _, kid := range b.Kids {
		if i := out.find(kid.Name); i >= 0 {
			out.Kids[i] = Merge(out.Kids[i], kid)
		} else {
			out.Kids = append(out.Kids, kid)
		}
	}
	return out
}

// find is the kid of that name or alias, -1 if there is none.
func (n *Node) find(name string) int {
	return slices.IndexFunc(n.Kids, func(kid Node) bool { return kid.Name == name || contains(kid.Aliases, name) })
}

func mergeOptions(a, b []Option) []Option {
	out := append([]Option(nil), a...)
	at := map[string]int{}
	for i, o := range out {
		for _, f := range o.Flags {
			at[f] = i
		}
	}
	for _, o := range b {
		same := -1
		for _, f := range o.Flags {
			if i, ok := at[f]; ok {
				same = i
				break
			}
		}
		if same < 0 {
			same = len(out)
			out = append(out, o)
		} else {
			mergeOption(&out[same], o)
		}
		for _, f := range o.Flags {
			if _, taken := at[f]; !taken {
				at[f] = same
				if !contains(out[same].Flags, f) {
					out[same].Flags = append(out[same].Flags[:len(out[same].Flags):len(out[same].Flags)], f)
				}
			}
		}
	}
	return out
}

func mergeOption(o *Option, more Option) {
	switch {
	case o.Arity == Unknown:
		o.Arity = more.Arity
	case more.Arity != Unknown && more.Arity != o.Arity:
		o.Arity, o.Enum, o.Metavar = Unknown, nil, ""
		return
	}
	o.Metavar = cmp.Or(o.Metavar, more.Metavar)
	if o.Enum == nil {
		o.Enum = more.Enum
	}
	o.Description = cmp.Or(o.Description, more.Description)
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// indexed is the least size of a document for which an index pays.
const indexed = 8 << 10

// index says where the commands of a document stand, relative to its first byte.
type index struct {
	head, tail int
	parts      []member
	flags      []rootFlag
}

type member struct {
	name       string
	start, end int // of the member with its key
	value      json.RawMessage
}

type rootFlag struct {
	flag string
	n    int
}

// members lists the members of the object that raw is, which must be compact.
func members(raw []byte) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("not an object: %v, %w", t, err)
	}
	var out []member
	for dec.More() {
		start := int(dec.InputOffset())
		if raw[start] == ',' {
			start++
		}
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: t.(string), start: start}
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		m.end = int(dec.InputOffset())
		out = append(out, m)
	}
	return out, nil
}

// parseForms are the conventions that builtin.Entry.Cut has to know of.
type parseForms struct {
	Arity          map[string]any `json:"arity"`
	OptionalValue  []string       `json:"optionalValue"`
	AbbrevCommands bool           `json:"abbrevCommands"`
	BareCluster    bool           `json:"bareCluster"`
	KeyValueArgs   bool           `json:"keyValueArgs"`
	Options        string         `json:"options"`
	ResponseFiles  string         `json:"responseFiles"`
}

// indexOf gives no index where leaving out commands could change how an argv is
// read: abbreviated command names, partial documents, unusual option forms.
func indexOf(raw []byte) (index, error) {
	if len(raw) < indexed {
		return index{}, nil
	}
	root, err := members(raw)
	if err != nil {
		return index{}, err
	}
	var doc struct {
		Partial       bool            `json:"partial"`
		Omitted       json.RawMessage `json:"omitted"`
		Multicall     bool            `json:"x-atip-multicall"`
		GlobalOptions []option        `json:"globalOptions"`
		Options       []option        `json:"options"`
		Ext           struct {
			Parse parseForms `json:"parse"`
		} `json:"x-atip-effects"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return index{}, err
	}
	p := doc.Ext.Parse
	if doc.Partial || doc.Omitted != nil || doc.Multicall || p.AbbrevCommands || p.BareCluster || p.KeyValueArgs || p.Options != "" || p.ResponseFiles != "" {
		return index{}, nil
	}
	var x index
	for _, m := range root {
		if m.name != "commands" {
			continue
		}
		kids, err := members(m.value)
		if err != nil || len(kids) == 0 {
			return index{}, err
		}
		base := m.end - len(m.value)
		x.head, x.tail = base+1, m.end-1
		for _, k := range kids {
			var aka struct {
				Aliases  []string `json:"aliases"`
				XAliases []string `json:"x-atip-aliases"`
			}
			if err := json.Unmarshal(k.value, &aka); err != nil {
				return index{}, err
			}
			for _, name := range append(append([]string{k.name}, aka.Aliases...), aka.XAliases...) {
				same := member{name: name, start: base + k.start, end: base + k.end}
				if name != "" && !slices.ContainsFunc(x.parts, func(o member) bool { return o.name == name && o.start == same.start }) {
					x.parts = append(x.parts, same)
				}
			}
		}
	}
	slices.SortStableFunc(x.parts, func(a, b member) int { return strings.Compare(a.name, b.name) })
	if len(x.parts) > 0 {
		x.flags = flagsOf(append(doc.GlobalOptions, doc.Options...), p)
	}
	return x, nil
}

type option struct {
	Flags []string `json:"flags"`
	Type  string   `json:"type"`
}

// flagsOf lists the options that certainly take one number of words.
func flagsOf(options []option, p parseForms) []rootFlag {
	n := map[string]int{}
	for _, o := range options {
		words := 1
		if o.Type == "boolean" {
			words = 0
		}
		for _, f := range o.Flags {
			if slices.Contains(p.OptionalValue, f) {
				words = 0
			}
		}
		for _, f := range o.Flags {
			if a, stated := p.Arity[f]; stated {
				words = -1
				if k, ok := a.(float64); ok {
					words = int(k)
				}
			}
		}
		for _, f := range o.Flags {
			if have, twice := n[f]; twice && have != words {
				words = -1
			}
			n[f] = words
		}
	}
	var out []rootFlag
	for f, k := range n {
		if k >= 0 {
			out = append(out, rootFlag{f, k})
		}
	}
	slices.SortFunc(out, func(a, b rootFlag) int { return strings.Compare(a.flag, b.flag) })
	return out
}

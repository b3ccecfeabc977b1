package tools

import (
	"strings"

	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/shims"
)

// forgetVerb removes what was fetched or probed, so that it is asked for again. What a
// person wrote is not ours to remove.
func forgetVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) == 0 {
		return 0, fault.New(errcode.Arguments, "forget needs a tool or a digest").WithFix("name what to forget", "atip forget gh")
	}
	_, at, err := answer.Home()
	if err != nil {
		return 0, err
	}
	index, err := shims.ReadIndex(at)
	if err != nil {
		return 0, err
	}
	removed := []string{}
	for _, word := range v.Rest {
		digests := map[string]bool{}
		if hex, ok := answer.DigestOf(word); ok {
			digests[hex] = true
		} else {
			// Both what the last scan saw under this name and what is there now.
			if hex, ok := answer.DigestOf(index.Tools[word].Hash); ok {
				digests[hex] = true
			}
			if s, err := answer.SubjectOf(word); err != nil {
				return 0, err
			} else if s.Digest != "" {
				digests[s.Digest] = true
			}
		}
		for hex := range digests {
			files, err := shims.Forget(at, hex)
			if err != nil {
				return 0, err
			}
			removed = append(removed, files...)
			if err := forgetEntry(at, hex); err != nil {
				return 0, err
			}
		}
	}
	text := "removed " + answer.Plain(strings.Join(removed, "\nremoved ")) + "\n"
	if len(removed) == 0 {
		text = "nothing was fetched or probed for " + answer.Plain(strings.Join(v.Rest, ", ")) + "\n"
	}
	return 0, c.Answer(map[string]any{"kind": "atip-exec.forget/1", "removed": removed}, text)
}

func forgetEntry(at shims.Dirs, hex string) error {
	index, err := shims.ReadIndex(at)
	if err != nil {
		return err
	}
	for _, e := range index.Tools {
		if e.Hash == "sha256:"+hex {
			return shims.UpdateIndex(at, cli.Version, func(x *shims.Index) {
				for name, e := range x.Tools {
					if e.Hash == "sha256:"+hex {
						delete(x.Tools, name)
					}
				}
			})
		}
	}
	return nil
}

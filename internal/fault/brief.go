package fault

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// maxRefusal bounds a refusal on stderr, in bytes with its newline. A model reads every
// refusal of its session again with each turn; status file and envelope have the whole.
const maxRefusal = 600

// maxRules bounds the rules that a refusal on stderr names.
const maxRules = 3

// keptDetails are the details that a caller acts on, the most needed first.
var keptDetails = [...]string{"at", "decision", "rules", "step", "requestId", "lockDigest", "reason", "changed"}

// brief is a Fault on stderr: the same keys, of which the long ones may be missing.
type brief struct {
	Code       string         `json:"code"`
	Category   string         `json:"category"`
	Message    string         `json:"message"`
	Suggestion Suggestion     `json:"suggestion"`
	Retryable  bool           `json:"is_retryable"`
	Details    map[string]any `json:"details,omitempty"`
	Origin     string         `json:"origin"`
	Rendered   string         `json:"rendered,omitempty"`
}

// Refusal reports whether nothing ran because a policy, a grant or trust refused it.
func (f *Fault) Refusal() bool { return f.Category == "auth" }

// Brief is the one-line JSON form for stderr, without a final newline. A refusal is held to
// maxRefusal: texts are cut in the middle, then come as many details as fit. Any other
// error is written as JSON writes it.
func (f *Fault) Brief() []byte {
	if !f.Refusal() {
		return f.JSON()
	}
	var b brief
	size := func() int { return len(b.encode()) + 1 }
	message := f.Message
	rules := list(f.Details["rules"])
	if len(rules) > 0 {
		// The details name them.
		if before, after, found := strings.Cut(message, " ("+rules[0]); found {
			_, after, _ = strings.Cut(after, ")")
			message = before + after
		}
	}
	for limit := 320; ; limit = limit * 9 / 10 {
		b = brief{f.Code, f.Category, middle(message, limit), f.Suggestion, f.Retryable, map[string]any{}, f.Origin, ""}
		b.Suggestion.Fix, b.Suggestion.Example = middle(f.Suggestion.Fix, limit/2), middle(f.Suggestion.Example, limit/2)
		for _, key := range keptDetails {
			if v, ok := f.Details[key]; ok {
				if s, isText := v.(string); isText && (key == "step" || key == "reason") {
					v = middle(s, limit/3)
				}
				if key == "rules" && len(rules) > maxRules {
					v = rules[:maxRules] // by which the message is ordered
				}
				b.Details[key] = v
			}
		}
		if size() <= maxRefusal {
			break
		}
		if limit < 20 { // only a list is left to be long
			delete(b.Details, "changed")
			if size() > maxRefusal {
				delete(b.Details, "rules")
			}
			break
		}
	}
	// The short ones first. Steps are plans of their own, and what they name is in the status, as are requests that ended.
	rest := slices.DeleteFunc(slices.Sorted(maps.Keys(f.Details)), func(key string) bool {
		_, has := b.Details[key]
		return has || key == "steps" || key == "replaced"
	})
	width := func(key string) int { raw, _ := json.Marshal(f.Details[key]); return len(raw) }
	slices.SortStableFunc(rest, func(x, y string) int { return cmp.Compare(width(x), width(y)) })
	for _, key := range rest {
		b.Details[key] = f.Details[key]
		if size() > maxRefusal {
			delete(b.Details, key)
		}
	}
	if b.Rendered = f.Rendered; size() > maxRefusal {
		b.Rendered = ""
	}
	return b.encode()
}

func (b *brief) encode() []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(map[string]*brief{"error": b}); err != nil {
		// A detail of a package that cannot be encoded.
		bare := *b
		bare.Details = nil
		return bare.encode()
	}
	return bytes.TrimRight(out.Bytes(), "\n")
}

// list is a detail that holds texts, as it was given or as it came through a filter.
func list(detail any) []string {
	texts, _ := detail.([]string)
	values, _ := detail.([]any)
	for _, v := range values {
		if s, ok := v.(string); ok {
			texts = append(texts, s)
		}
	}
	return texts
}

// BriefLine is Line, for a refusal held to maxRefusal.
func (f *Fault) BriefLine() string {
	if !f.Refusal() {
		return f.Line()
	}
	head, tail := "atip-exec: ", " ["+f.Code+"]"
	if f.Suggestion.Fix != "" {
		tail += "; " + middle(f.Suggestion.Fix, 200)
	}
	return strings.ReplaceAll(head+middle(f.Message, maxRefusal-130-len(head)-len(tail))+tail, "\n", " ")
}

// middle takes the middle out of a text of more than limit bytes, between words if it can, and marks the place.
func middle(s string, limit int) string {
	const mark = " … "
	if len(s) <= limit {
		return s
	}
	keep := max(limit-len(mark), 2)
	head, tail := s[:keep/2], s[len(s)-keep/2:]
	if at := strings.LastIndexByte(head, ' '); at > len(head)*2/3 {
		head = head[:at]
	}
	if at := strings.IndexByte(tail, ' '); at >= 0 && at < len(tail)/3 {
		tail = tail[at+1:]
	}
	return strings.ToValidUTF8(head, "") + mark + strings.ToValidUTF8(tail, "")
}

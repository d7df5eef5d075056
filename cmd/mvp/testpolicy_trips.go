package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/policies/dryrun"
	"github.com/mixed-version-proxy/mvp/policies/dryrun/roundtrip"
)

// name says which way the objects go.
func (r *tripReport) name() string {
	from, to := r.trip.Version(roundtrip.Client), r.trip.Version(roundtrip.Server)
	if r.side == roundtrip.Server {
		from, to = to, from
	}
	return fmt.Sprintf("%s: %s %s to %s and back", r.trip.Conversion().Policy, from.APIVersion(), from.Resource, to.APIVersion())
}

// outcome says in a few words what became of the objects.
func (r *tripReport) outcome() string {
	switch {
	case r.failure != nil && r.failure.Err != nil:
		return "FAIL: the policy fails" + r.seedText()
	case r.failure != nil:
		return "FAIL: an object comes back as another one" + r.seedText()
	case r.notTried != nil:
		return fmt.Sprintf("not tried: %v", r.notTried)
	case r.refused == r.objects:
		return "FAIL: nothing but refused: " + countObjects(r.objects) + r.seedText()
	}
	if r.objects-r.refused == 1 {
		return "1 object comes back as it was" + r.seedText()
	}
	return fmt.Sprintf("%d objects come back as they were", r.objects-r.refused) + r.seedText()
}

func countObjects(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}

func (r *tripReport) seedText() string {
	if !r.random {
		return ""
	}
	return fmt.Sprintf(" (--seed %d)", r.seed)
}

// notes are what is to be said beside that, a line each.
func (r *tripReport) notes() []string {
	var notes []string
	if r.failure != nil {
		if r.failure.Err != nil {
			notes = append(notes, r.failure.Err.Error())
		}
		for _, change := range r.failure.Changes {
			notes = append(notes, change.String())
		}
		return notes
	}
	if r.refused > 0 {
		notes = append(notes, fmt.Sprintf("refused: %s, such as %v", countObjects(r.refused), r.refusal))
	}
	if len(r.told) > 0 {
		slices.Sort(r.told)
		notes = append(notes, "changed for good, as a rule says: "+strings.Join(r.told, ", "))
	}
	return notes
}

// shown is a body of the failure without what Secrets hold.
func (r *tripReport) shown(body []byte) []byte {
	return dryrun.Redacted(body, r.trip.Version(r.side).Resource)
}

// objectText is the smallest object that fails; "" for none.
func (r *tripReport) objectText() (string, error) {
	if r.failure == nil {
		return "", nil
	}
	text, err := dryrun.YAML(r.shown(r.failure.Object))
	if err != nil {
		return "", err
	}
	return "the smallest object that fails:\n  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  "), nil
}

// text is all that is to be said, for a person.
func (r *tripReport) text() (string, error) {
	object, err := r.objectText()
	if err != nil {
		return "", err
	}
	lines := r.notes()
	if object != "" {
		lines = append(lines, object)
	}
	text := r.outcome()
	for _, line := range lines {
		text += "\n  " + strings.ReplaceAll(line, "\n", "\n  ")
	}
	return text, nil
}

func printTrips(std streams, opts *testPolicyOptions, reports []*tripReport) error {
	suite := &junitSuite{Name: "mvp test-policy", Time: seconds(0)}
	for _, r := range reports {
		text, err := r.text()
		if err != nil {
			return err
		}
		switch opts.output {
		case "json":
			err = r.printJSON(std.out)
		case "junit":
			c := junitCase{Class: "mvp.test-policy", Name: r.name(), Time: seconds(0)}
			if r.passed() {
				c.Out, text = text, ""
			}
			suite.add(c, text)
		default:
			fmt.Fprintf(std.out, "%s: %s\n", r.name(), text)
		}
		if err != nil {
			return err
		}
	}
	if opts.output == "junit" {
		return printJUnit(std.out, suite)
	}
	return nil
}

// tripJSON is one line of -o json for the objects that go one way.
type tripJSON struct {
	Policy   string              `json:"policy"`
	From     string              `json:"from"`
	To       string              `json:"to"`
	Side     roundtrip.Side      `json:"side"`
	Passed   bool                `json:"passed"`
	Objects  int                 `json:"objects"`
	Refused  int                 `json:"refused,omitempty"`
	NotTried string              `json:"notTried,omitempty"`
	Seed     *uint64             `json:"seed,omitempty"` // of the object, or of the first one
	Told     []string            `json:"told,omitempty"`
	Object   json.RawMessage     `json:"object,omitempty"` // the smallest that fails
	Other    json.RawMessage     `json:"converted,omitempty"`
	Back     json.RawMessage     `json:"back,omitempty"`
	Changes  []dryrun.PathChange `json:"changes,omitempty"`
	Error    string              `json:"error,omitempty"`
}

func (r *tripReport) printJSON(w io.Writer) error {
	c := r.trip.Conversion()
	line := tripJSON{
		Policy: c.Policy, From: c.From.APIVersion(), To: c.To.APIVersion(), Side: r.side,
		Passed: r.passed(), Objects: r.objects, Refused: r.refused, NotTried: errorText(r.notTried), Told: r.told,
	}
	if r.random {
		line.Seed = &r.seed
	}
	if f := r.failure; f != nil {
		line.Object, line.Changes, line.Error = r.shown(f.Object), f.Changes, errorText(f.Err)
		if f.Other != nil {
			line.Other = r.shown(f.Other)
		}
		if f.Back != nil {
			line.Back = r.shown(f.Back)
		}
	}
	return printLine(w, line)
}

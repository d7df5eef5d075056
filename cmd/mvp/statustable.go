package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/proxy"
)

// maxStatusRows is how many rows a table has without -o wide: more would push the
// servers off the screen.
const maxStatusRows = 40

// statusTables prints a status. Ages count to the moment of the report, by the clock
// of the MVP that made it.
type statusTables struct {
	out  io.Writer
	wide bool
	now  time.Time
	err  error // the first
}

// printStatus writes tables for people. What does not fit is left to -o wide.
func printStatus(w io.Writer, r *statusReport, wide bool) error {
	t := &statusTables{out: w, wide: wide, now: r.Upstreams.Time}
	t.servers(r.Upstreams.Servers)
	t.problems(r.Upstreams.Servers)
	t.partial(r.Upstreams.Partial)
	t.converted(r.Upstreams.Converted)
	t.policies(&r.Policies)
	t.reload(&r.Policies)
	return t.err
}

func (t *statusTables) servers(servers []proxy.ServerReport) {
	head := []string{"NAME", "VERSION", "STATUS", "SINCE", "INFLIGHT", "STREAMS", "REQUESTS", "ERRORS", "LATENCY", "ONLY"}
	if t.wide {
		head = append(head, "LACKS", "RESOURCES", "EMULATES", "PROBE", "URL")
	}
	rows := [][]string{}
	for i := range servers {
		s := &servers[i]
		row := []string{
			s.Name, or(s.Version), serverStatus(s), t.age(s.Since), strconv.Itoa(s.Inflight), strconv.Itoa(s.Streams),
			count(s.Answers.Total), count(s.Answers.Failures + s.Answers.Classes["5xx"]), latency(s.LatencyMillis), strconv.Itoa(len(s.Only)),
		}
		if t.wide {
			row = append(row, strconv.Itoa(len(s.Lacks)), strconv.Itoa(s.Resources), or(s.Emulation), latency(s.ProbeMillis), s.URL)
		}
		rows = append(rows, row)
	}
	t.all(head, rows)
}

// serverStatus is the state of a server in a word or two, as kubectl joins them.
func serverStatus(s *proxy.ServerReport) string {
	status := "Unhealthy"
	switch {
	case s.Healthy:
		status = "Healthy"
	case s.Since.IsZero():
		status = "NotProbed"
	}
	switch {
	case !s.Synced:
		status += ",Unknown"
	case s.Stale && s.Healthy: // of one that is not, everything is
		status += ",Stale"
	}
	return status
}

// problems says in words what the words of the first table mean.
func (t *statusTables) problems(servers []proxy.ServerReport) {
	rows := [][]string{}
	for i := range servers {
		s := &servers[i]
		if s.Reason != "" {
			rows = append(rows, []string{s.Name, s.Reason})
		}
		if s.Problem != "" {
			rows = append(rows, []string{s.Name, "cannot read what it serves: " + s.Problem})
		}
		if s.CRDsForbidden {
			rows = append(rows, []string{s.Name, "MVP's own credential may not read CustomResourceDefinitions: the types of their fields are not known"})
		}
		if len(s.Unwatched) > 0 {
			rows = append(rows, []string{s.Name, "MVP's own credential may not watch " + strings.Join(s.Unwatched, ", ") + ": their changes are seen seconds later"})
		}
	}
	t.section([]string{"SERVER", "PROBLEM"}, rows)
}

func (t *statusTables) partial(parts []proxy.PartialReport) {
	head := []string{"ONLY SOME SERVE", "VERBS", "SERVERS", "NOW", "REQUESTS", "LATELY"}
	if t.wide {
		head = append(head, "MISSING", "CONVERTED TO", "POLICY")
	}
	rows := [][]string{}
	for _, p := range parts {
		verbs, now := strings.Join(p.Verbs, ","), "served"
		if p.Whole {
			verbs = "all"
		}
		switch {
		case p.Unavailable && p.ConvertedTo != "":
			now = "converted"
		case p.Unavailable:
			now = "unavailable"
		}
		row := []string{p.Resource, verbs, strings.Join(p.Servers, ","), now, count(p.Requests), count(p.Recent)}
		if t.wide {
			row = append(row, strings.Join(p.Missing, ","), or(p.ConvertedTo), or(p.Policy))
		}
		rows = append(rows, row)
	}
	t.section(head, rows)
}

func (t *statusTables) converted(versions []proxy.ConvertedReport) {
	rows := [][]string{}
	for _, c := range versions {
		// What no server has is not converted to: a chain has other ends.
		if len(c.Servers) == 0 && c.Requests == 0 && !t.wide {
			continue
		}
		now := "served"
		if c.Unavailable {
			now = "unavailable"
		}
		rows = append(rows, []string{c.Resource, c.To, strings.Join(c.Servers, ","), now, count(c.Requests), count(c.Recent), c.Policy})
	}
	t.section([]string{"SERVED BY CONVERSION", "TO", "SERVERS", "NOW", "REQUESTS", "LATELY", "POLICY"}, rows)
}

func (t *statusTables) policies(r *policyReport) {
	head := []string{"POLICY", "MODE", "MATCHES", "DENIALS", "CONVERSIONS", "ERRORS", "AUDITED"}
	if t.wide {
		head = append(head, "DOES", "POSITION")
	}
	rows, idle := [][]string{}, 0
	for i := range r.Policies {
		p := &r.Policies[i]
		if p.Origin == engine.OriginLibrary && isIdle(&p.PolicyCounts) && !t.wide {
			idle++
			continue
		}
		row := []string{p.Name, policyMode(p), count(p.Matches), count(p.Denials), count(p.Conversions), count(p.Errors), count(p.Audited)}
		if t.wide {
			row = append(row, strings.Join(p.Roles, ","), p.Position)
		}
		rows = append(rows, row)
	}
	t.section(head, rows)
	if idle > 0 {
		t.print("… and %s that no request has matched (-o wide shows them)\n", some(idle, "shipped policy", "shipped policies"))
	}
}

// isIdle reports whether no request has had to do with the policy.
func isIdle(c *proxy.PolicyCounts) bool {
	return c.Matches == 0 && c.Errors == 0 && c.Audited == 0 && len(c.Ignored) == 0
}

func policyMode(p *policyInfo) string {
	if p.ShadowedBy != "" && len(p.Roles) == 1 { // only a conversion is taken the place of
		return "shadowed"
	}
	return p.Mode
}

// reload says what is live, and why what the files say now is not.
func (t *statusTables) reload(r *policyReport) {
	t.print("\n%s of generation %d, loaded %s ago from %s.\n",
		some(len(r.Policies), "policy", "policies"), r.Generation, t.age(r.Loaded), some(len(r.Files), "file", "files"))
	if r.LastReload == nil {
		return
	}
	t.print("The last reload failed %s ago; the policies above stay live until this is right:\n", t.age(r.LastReload.Failed))
	for i, m := range r.LastReload.Mistakes {
		if i == maxStatusRows && !t.wide {
			t.print("  … and %s (-o wide shows them)\n", some(len(r.LastReload.Mistakes)-i, "more mistake", "more mistakes"))
			return
		}
		for line := range strings.Lines(m.Text) {
			t.print("  %s\n", plain(strings.TrimRight(line, "\n")))
		}
	}
}

// section prints a table below another, nothing without rows.
func (t *statusTables) section(head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	t.print("\n")
	rest := 0
	if !t.wide && len(rows) > maxStatusRows {
		rows, rest = rows[:maxStatusRows], len(rows)-maxStatusRows
	}
	t.all(head, rows)
	if rest > 0 {
		t.print("… and %d more (-o wide shows them)\n", rest)
	}
}

// all prints a table.
func (t *statusTables) all(head []string, rows [][]string) {
	w := tabwriter.NewWriter(t.out, 0, 0, 3, ' ', 0)
	for _, row := range append([][]string{head}, rows...) {
		for i := range row {
			row[i] = plain(row[i])
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	t.note(w.Flush())
}

func (t *statusTables) print(format string, args ...any) {
	_, err := fmt.Fprintf(t.out, format, args...)
	t.note(err)
}

func (t *statusTables) note(err error) {
	if t.err == nil {
		t.err = err
	}
}

// age is how long ago something was, as kubectl writes it.
func (t *statusTables) age(when time.Time) string {
	if when.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(0, t.now.Sub(when)))
}

// some is a number of things: "1 file", "2 files".
func some(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func count(n uint64) string { return strconv.FormatUint(n, 10) }

func latency(millis float64) string {
	if millis == 0 {
		return "-"
	}
	return strconv.FormatFloat(millis, 'f', 1, 64) + "ms"
}

func or(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// plain is s as a terminal may have it: what a server said of itself must not move the
// cursor, and a cell is one line.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}

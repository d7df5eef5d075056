package engine_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/engine/source"
)

var update = flag.Bool("update", false, "rewrite the want parts of testdata")

// TestPolicies runs every archive in testdata; its README says what they hold.
// To add a case, add a file.
func TestPolicies(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := string(txtar.Format(archive))
			runCase(t, archive)
			got := string(txtar.Format(archive))
			if got == want {
				return
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		})
	}
}

// caseFile is what an archive gives beside its policies.
type caseFile struct {
	requests  []string
	body      []byte
	user      *engine.User
	cluster   engine.Cluster
	served    map[string]bool
	upstreams []*engine.Upstream
}

// runCase replaces the want part of archive by what comes out.
func runCase(t *testing.T, archive *txtar.Archive) {
	c, policies := readCase(t, archive)
	part := &archive.Files[len(archive.Files)-1]
	set, err := engine.Compile(policies)
	switch {
	case part.Name == "want.error" && err != nil:
		part.Data = []byte(err.Error() + "\n")
	case part.Name == "want.error":
		t.Fatal("it compiles, and must not")
	case part.Name != "want":
		t.Fatalf("the last part must be want or want.error, not %s", part.Name)
	case err != nil:
		t.Fatal(err)
	default:
		var b strings.Builder
		for _, line := range c.requests {
			fmt.Fprintf(&b, "> %s\n", line)
			c.decide(t, &b, set, line)
		}
		part.Data = []byte(b.String())
	}
}

func readCase(t *testing.T, archive *txtar.Archive) (*caseFile, []engine.Policy) {
	c := &caseFile{served: map[string]bool{}}
	b := builder{t: t, byName: map[string]*engine.Policy{}}
	for _, file := range archive.Files {
		text := strings.TrimSuffix(string(file.Data), "\n")
		switch file.Name {
		case "requests":
			c.requests = strings.Split(text, "\n")
		case "body.json":
			c.body = []byte(text)
		case "user":
			fields := strings.Fields(text)
			c.user = &engine.User{Name: fields[0], UID: "u-1", Groups: fields[1:], Extra: map[string][]string{"team": {"shop"}}}
		case "cluster":
			versions := strings.Fields(text)
			c.cluster = engine.Cluster{Min: version(t, versions[0]), Max: version(t, versions[1])}
			c.cluster.Mixed = c.cluster.Min != c.cluster.Max
		case "served":
			for line := range strings.SplitSeq(text, "\n") {
				c.served[line] = true
			}
		case "upstreams":
			for line := range strings.SplitSeq(text, "\n") {
				c.upstreams = append(c.upstreams, upstream(t, line))
			}
		case "want", "want.error":
		default:
			b.add(file.Name, text)
		}
	}
	return c, b.policies()
}

// builder collects the policy files of an archive.
type builder struct {
	t      *testing.T
	names  []string
	byName map[string]*engine.Policy
}

func (b *builder) add(file, code string) {
	name, role, _ := strings.Cut(file, ".")
	p := b.byName[name]
	if p == nil {
		p = &engine.Policy{Name: name, Origin: engine.OriginFile, Pos: source.Pos{File: file, Line: 1, Col: 1}}
		if shipped, ok := strings.CutPrefix(name, "library/"); ok {
			p.Name, p.Origin = shipped, engine.OriginLibrary
		}
		b.byName[name], b.names = p, append(b.names, name)
	}
	text := &source.Text{Code: code, Start: source.Pos{File: file, Line: 1, Col: 1}}
	switch role {
	case "match.cel":
		p.Match = text
	case "route.cel":
		p.Route = text
	case "deny.cel":
		p.Deny = text
	case "warn.cel":
		p.Warn = text
	case "convert.cel":
		b.convert(p, text)
	case "prefer":
		fields := strings.Fields(code)
		pattern, err := engine.ParseVersionPattern(fields[3])
		if err != nil {
			b.t.Fatal(err)
		}
		p.Prefer = &engine.Preference{Group: fields[0], Resource: fields[1], ClientVersion: strings.Trim(fields[2], "*"), Server: pattern}
	case "mode.cel":
		p.Audit = code == "'audit'"
	case "failure.cel":
		if code == "'ignore'" {
			p.OnFailure = engine.Ignore
		}
	default:
		b.t.Fatalf("unknown part %s", file)
	}
}

func (b *builder) convert(p *engine.Policy, text *source.Text) {
	value, mistake := engine.EvalConstant(text)
	if mistake != nil {
		b.t.Fatal(mistake)
	}
	m := value.(map[string]any)
	of := func(key string) convert.Version {
		group, version, ok := strings.Cut(m[key].(string), "/")
		if !ok {
			group, version = "", group
		}
		return convert.Version{Group: group, Version: version, Resource: m["resource"].(string), Kind: "Thing"}
	}
	p.Convert = &convert.Spec{Pos: text.Start, From: of("from"), To: of("to")}
	if m["when"] == "always" {
		p.When = engine.WhenAlways
	}
}

func (b *builder) policies() []engine.Policy {
	var policies []engine.Policy
	for _, name := range b.names {
		policies = append(policies, *b.byName[name])
	}
	return policies
}

func version(t *testing.T, s string) engine.Version {
	v, err := engine.ParseVersion(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// upstream reads "name version emulated|- inflight latency [serves...]".
func upstream(t *testing.T, line string) *engine.Upstream {
	fields := strings.Fields(line)
	u := &engine.Upstream{Name: fields[0], Version: version(t, fields[1]), Healthy: true}
	if fields[2] != "-" {
		u.Emulation = version(t, fields[2]+".0")
	}
	var err error
	if u.Inflight, err = strconv.Atoi(fields[3]); err != nil {
		t.Fatal(err)
	}
	if u.Latency, err = time.ParseDuration(fields[4]); err != nil {
		t.Fatal(err)
	}
	u.Serves = func(groupVersion, resource string) bool {
		return strings.Contains(line, " "+groupVersion+"/"+resource)
	}
	return u
}

// decide writes what set says about the request of line: method, target, and
// "+body" for one with the body of the case.
func (c *caseFile) decide(t *testing.T, b *strings.Builder, set *engine.Set, line string) {
	fields := strings.Fields(line)
	r, err := engine.ParseRequest(fields[0], fields[1])
	if err != nil {
		t.Fatal(err)
	}
	r.UserAgent, r.ContentType = "kubectl/v1.20.4", "application/json"
	in := &engine.Input{
		Request: &r, Cluster: c.cluster,
		User:   func() (*engine.User, error) { return c.user, nil },
		Caller: func() string { return "0a1b" },
		Served: func(group, version, resource string) bool { return c.served[group+"/"+version+" "+resource] },
	}
	if len(fields) > 2 {
		read := false
		in.Object = func() ([]byte, error) {
			if read {
				t.Error("the body was read twice")
			}
			read = true
			return c.body, nil
		}
	}
	d, err := set.Decide(in)
	if err != nil {
		fmt.Fprintf(b, "error: %v\n", err)
		return
	}
	c.write(t, b, set, in, d)
}

func (c *caseFile) write(t *testing.T, b *strings.Builder, set *engine.Set, in *engine.Input, d *engine.Decision) {
	if len(d.Policies) > 0 {
		fmt.Fprintf(b, "policies: %s\n", strings.Join(d.Policies, ", "))
	}
	if d.Denied != nil {
		fmt.Fprintf(b, "denied by %s: %s\n", d.Denied.Policy, d.Denied.Message)
	}
	for _, warning := range d.Warnings {
		fmt.Fprintf(b, "warning: %s\n", warning)
	}
	if conversion := d.Conversion; conversion != nil {
		to := conversion.To
		target, err := in.Request.WithVersion(to.Group, to.Version, to.Resource, nil)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(b, "converted by %s: %s, body %v\n", conversion.Policy, target, d.ConvertBody)
	}
	for _, a := range d.Audited {
		fmt.Fprintf(b, "audit %s: %s %s\n", a.Policy, a.Effect, a.Detail)
	}
	for _, failed := range d.Ignored {
		fmt.Fprintf(b, "ignored %s: %s: %v\n", failed.Policy, failed.Reason, failed.Err)
	}
	for i, index := range d.Heard() {
		scores, err := d.ScoresWith(i, c.upstreams)
		fmt.Fprintf(b, "with %s: %v, error: %v\n", set.Policies()[index].Name, scores, err)
	}
	if !d.Routes() {
		return
	}
	scores, err := d.Scores(c.upstreams)
	var eval *engine.EvalError
	if errors.As(err, &eval) && eval.Ignore {
		fmt.Fprintf(b, "to be decided without %s: %s\n", set.Policies()[eval.Index].Name, eval.Reason)
		in := *in
		in.Without = []int{eval.Index}
		again, err := set.Decide(&in)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(b, "then warnings %q, routes %v\n", again.Warnings, again.Routes())
		return
	}
	fmt.Fprintf(b, "scores: %v, error: %v\n", scores, err)
	for _, u := range c.upstreams {
		score, ok, err := d.Score(u)
		switch {
		case err != nil:
			fmt.Fprintf(b, "%s: error: %v\n", u.Name, err)
		case !ok:
			fmt.Fprintf(b, "%s: never\n", u.Name)
		default:
			fmt.Fprintf(b, "%s: %v\n", u.Name, score)
		}
	}
}

package oracle_test

import (
	"strings"

	"github.com/mixed-version-proxy/mvp/bench/oracle"
)

// A trial is an experiment on objects of one side.
type trial struct {
	side string // whose objects: "client" or "server"

	// generate makes objects, and what kube-apiserver makes of each.
	generate func(r *route, seed int64, n int) ([][]byte, []oracle.Answer, error)

	// given is what kube-apiserver makes of objects that generate could have made;
	// again makes such ones of any objects first.
	given func(r *route, objects [][]byte) ([]oracle.Answer, error)
	again func(r *route, objects [][]byte) ([][]byte, error)

	// properties are the names of what it finds out, and check finds it out: for each
	// property what is at fault with each object.
	properties []string
	check      func(p *pair, r *route, objects [][]byte, theirs []oracle.Answer) ([][]fault, error)
}

// fault is what is at fault with one object; nothing where it is as it should be.
type fault struct {
	err         error // in place of differences
	differences []oracle.Difference

	refused bool // kube-apiserver does not convert it either
	same    bool // kube-apiserver changes it in the same way
}

// trials are all of them.
//
//   - up: what a server has after a client's create through the policies is what it
//     would have if it still served the client's version.
//   - down: what a client reads through the policies is what it would read if the
//     server still served the client's version.
//   - back: a client that reads through the policies and sends back what it read
//     changes nothing, or what it would change if the server still served its version.
var trials = []trial{
	{
		side:     "client",
		generate: (*route).clients,
		given:    func(r *route, objects [][]byte) ([]oracle.Answer, error) { return r.store(answers(objects)) },
		again:    func(_ *route, objects [][]byte) ([][]byte, error) { return objects, nil },

		properties: []string{"up"},
		check:      checkClients,
	},
	{
		side:       "server",
		generate:   (*route).servers,
		given:      (*route).read,
		again:      defaulted,
		properties: []string{"down", "back"},
		check:      checkServers,
	},
}

// defaulted makes objects what a server answers with that has them.
func defaulted(r *route, objects [][]byte) ([][]byte, error) {
	servers, err := r.stored(answers(objects))
	if err != nil {
		return nil, err
	}
	objects = make([][]byte, len(servers))
	for i, s := range servers {
		if s.Err != nil {
			return nil, s.Err
		}
		objects[i] = s.Object
	}
	return objects, nil
}

func checkClients(p *pair, r *route, objects [][]byte, theirs []oracle.Answer) ([][]fault, error) {
	stored, err := r.stored(p.requests(answers(objects)))
	if err != nil {
		return nil, err
	}
	return [][]fault{compare(stored, theirs)}, nil
}

func checkServers(p *pair, r *route, objects [][]byte, theirs []oracle.Answer) ([][]fault, error) {
	read := p.answers(answers(objects))
	down := compare(read, theirs)
	stored, err := r.stored(p.requests(read))
	if err != nil {
		return nil, err
	}
	back := compare(stored, answers(objects))
	return [][]fault{down, back}, sameAsTheirs(r, back, stored, theirs)
}

// sameAsTheirs notes the faults in what was stored that kube-apiserver's own round
// trip has, too.
func sameAsTheirs(r *route, faults []fault, stored, theirs []oracle.Answer) error {
	var places []int
	var read []oracle.Answer
	for i, f := range faults {
		if theirs[i].Err == nil && len(f.differences) > 0 {
			places, read = append(places, i), append(read, theirs[i])
		}
	}
	if len(read) == 0 {
		return nil
	}
	back, err := r.store(read)
	if err != nil {
		return err
	}
	for k, i := range places {
		faults[i].same = back[k].Err == nil && string(back[k].Object) == string(stored[i].Object)
	}
	return nil
}

// compare tells where got and want differ.
func compare(got, want []oracle.Answer) []fault {
	faults := make([]fault, len(got))
	for i := range got {
		f := &faults[i]
		switch {
		case want[i].Err != nil:
			f.refused = true
		case got[i].Err != nil:
			f.err = got[i].Err
		default:
			f.differences, f.err = oracle.Diff(got[i].Object, want[i].Object)
		}
	}
	return faults
}

// key groups faults of one cause; "" where there is none.
func (f *fault) key() string {
	switch {
	case f.same || f.refused:
		return ""
	case f.err != nil:
		return clean(f.err.Error())
	case len(f.differences) > 0:
		return f.differences[0].Pattern()
	}
	return ""
}

func (f *fault) String() string {
	if f.err != nil {
		return f.err.Error()
	}
	var lines []string
	for _, d := range f.differences {
		lines = append(lines, d.String())
	}
	return strings.Join(lines, "\n      ")
}

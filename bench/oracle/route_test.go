package oracle_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mixed-version-proxy/mvp/bench/oracle"
	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// A route is how kube-apiserver's code converts from a client's version to a
// server's: at once, or over versions between that two releases know each.
type route struct {
	o    *oracles
	hops []hop
}

// hop is what one release converts.
type hop struct {
	release  string
	from, to oracle.Kind
}

func (h hop) up() oracle.Conversion { return oracle.Conversion{Kind: h.from, To: h.to.APIVersion} }

func (h hop) down() oracle.Conversion { return oracle.Conversion{Kind: h.to, To: h.from.APIVersion} }

// route finds the route of a pair, with as few hops as there can be. It may go over
// versions that the pair itself leaves out.
func (o *oracles) route(p *pair) (*route, error) {
	from, to := kindOf(p.from), kindOf(p.to)
	reached := map[oracle.Kind][]hop{from: {}}
	for queue := []oracle.Kind{from}; len(queue) > 0; queue = queue[1:] {
		if hops := reached[queue[0]]; queue[0] == to {
			return &route{o: o, hops: hops}, nil
		}
		for _, h := range o.hopsFrom(queue[0], p) {
			if _, ok := reached[h.to]; !ok {
				reached[h.to] = append(slices.Clip(reached[queue[0]]), h)
				queue = append(queue, h.to)
			}
		}
	}
	return nil, fmt.Errorf("none of the releases %s has %s %s and leads to what it is converted to",
		strings.Join(releases, ", "), from.APIVersion, from.Name)
}

// hopsFrom are the conversions of a kind that any release has, to versions of the
// pair's groups, in an order that is always the same.
func (o *oracles) hopsFrom(kind oracle.Kind, p *pair) (hops []hop) {
	for _, release := range releases {
		if !o.kinds[release][kind] {
			continue
		}
		first := len(hops)
		for other := range o.kinds[release] {
			group, _, _ := strings.Cut(other.APIVersion, "/")
			if other != kind && other.Name == kind.Name && (group == p.from.Group || group == p.to.Group) {
				hops = append(hops, hop{release, kind, other})
			}
		}
		slices.SortFunc(hops[first:], func(a, b hop) int { return strings.Compare(a.to.APIVersion, b.to.APIVersion) })
	}
	return hops
}

func kindOf(v convert.Version) oracle.Kind {
	return oracle.Kind{APIVersion: v.APIVersion(), Name: v.Kind}
}

func (r *route) String() string {
	var names []string
	for _, h := range r.hops {
		names = append(names, h.release)
	}
	return strings.Join(names, ", ")
}

// clients makes objects of the client's version, and what each is in the server's
// once a server has it.
func (r *route) clients(seed int64, n int) (objects [][]byte, stored []oracle.Answer, err error) {
	first := r.hops[0]
	err = r.o.with(first.release, func(one *oracle.Oracle) error {
		objects, stored, err = one.Client(first.up(), seed, n)
		return err
	})
	if err == nil {
		stored, err = r.further(stored, r.hops[1:], (*oracle.Oracle).Store, hop.up)
	}
	return objects, stored, err
}

// servers makes objects of the server's version as it answers, and what clients of
// the other version read. Over several releases these are objects that clients of the
// oldest sent: it does not know newer fields.
func (r *route) servers(seed int64, n int) (objects [][]byte, read []oracle.Answer, err error) {
	if len(r.hops) == 1 {
		err = r.o.with(r.hops[0].release, func(one *oracle.Oracle) error {
			objects, read, err = one.Server(r.hops[0].down(), seed, n)
			return err
		})
		return objects, read, err
	}
	_, stored, err := r.clients(seed, n)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range stored {
		if s.Err == nil {
			objects = append(objects, s.Object)
		}
	}
	read, err = r.read(objects)
	return objects, read, err
}

// back are the hops but for the last, in reverse.
func (r *route) back() (hops []hop) {
	for i := len(r.hops) - 2; i >= 0; i-- {
		hops = append(hops, r.hops[i])
	}
	return hops
}

// store is what a server has of a client's objects, in its version.
func (r *route) store(sent []oracle.Answer) ([]oracle.Answer, error) {
	return r.further(sent, r.hops, (*oracle.Oracle).Store, hop.up)
}

// read is what clients read of a server's objects.
func (r *route) read(objects [][]byte) ([]oracle.Answer, error) {
	hops := append([]hop{r.hops[len(r.hops)-1]}, r.back()...)
	return r.further(answers(objects), hops, (*oracle.Oracle).Read, hop.down)
}

func answers(objects [][]byte) []oracle.Answer {
	all := make([]oracle.Answer, len(objects))
	for i, object := range objects {
		all[i].Object = object
	}
	return all
}

// ask is a method of an oracle.
type ask func(*oracle.Oracle, oracle.Conversion, [][]byte) ([]oracle.Answer, error)

// further takes answers over hops. What is an error stays it.
func (r *route) further(from []oracle.Answer, hops []hop, how ask, which func(hop) oracle.Conversion) ([]oracle.Answer, error) {
	for _, h := range hops {
		var objects [][]byte
		var places []int
		for i, a := range from {
			if a.Err == nil {
				objects, places = append(objects, a.Object), append(places, i)
			}
		}
		err := r.o.with(h.release, func(one *oracle.Oracle) error {
			converted, err := how(one, which(h), objects)
			for i, a := range converted {
				from[places[i]] = a
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return from, nil
}

// stored is what a server has of answers that are sent to it in its own version.
func (r *route) stored(sent []oracle.Answer) ([]oracle.Answer, error) {
	same := func(h hop) oracle.Conversion { return oracle.Conversion{Kind: h.to, To: h.to.APIVersion} }
	return r.further(sent, r.hops[len(r.hops)-1:], (*oracle.Oracle).Store, same)
}

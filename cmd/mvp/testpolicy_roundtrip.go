package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
	"github.com/mixed-version-proxy/mvp/policies"
	"github.com/mixed-version-proxy/mvp/policies/dryrun"
	"github.com/mixed-version-proxy/mvp/policies/dryrun/kindschema"
	"github.com/mixed-version-proxy/mvp/policies/dryrun/policytest"
	"github.com/mixed-version-proxy/mvp/policies/dryrun/randomobject"
	"github.com/mixed-version-proxy/mvp/policies/dryrun/roundtrip"
)

// maxFuzz bounds --fuzz: an hour or so for a large kind.
const maxFuzz = 10_000_000

// tripSet are policies, and the objects that go through their conversions.
type tripSet struct {
	set       *engine.Set
	manifests []dryrun.Manifest
	kinds     *kinds
}

// tripReport is what became of the objects of one side of a conversion.
type tripReport struct {
	trip     *roundtrip.Trip
	side     roundtrip.Side
	objects  int // how many were tried
	random   bool
	seed     uint64 // of the first random object, or of the one that fails
	refused  int
	refusal  error    // of the first that the policy refused
	told     []string // the paths that the policy says it changes for good
	failure  *roundtrip.Failure
	notTried error // why no object was tried
}

func (r *tripReport) passed() bool {
	return r.failure == nil && (r.notTried != nil || r.refused < r.objects)
}

// testRoundTrips takes objects through the conversions and back.
func testRoundTrips(std streams, opts *testPolicyOptions, args []string) error {
	if err := opts.checkRoundTrips(); err != nil {
		return err
	}
	sets, err := opts.tripSets(std, args)
	if err != nil {
		return err
	}
	var reports []*tripReport
	for _, s := range sets {
		for _, c := range s.set.Conversions() {
			trip := roundtrip.New(c)
			for _, side := range []roundtrip.Side{roundtrip.Client, roundtrip.Server} {
				if opts.roundTrip {
					reports = append(reports, s.given(trip, side)...)
				}
				if opts.fuzz > 0 {
					reports = append(reports, s.random(trip, side, opts))
				}
			}
		}
	}
	if err := printTrips(std, opts, reports); err != nil {
		return err
	}
	return tripsError(reports)
}

func (opts *testPolicyOptions) checkRoundTrips() error {
	switch {
	case opts.fuzz < 0 || opts.fuzz > maxFuzz:
		return usageError("cannot use --fuzz %d: want the number of objects, up to %d", opts.fuzz, maxFuzz)
	case !slices.Contains([]string{"diff", "json", "junit"}, opts.output):
		return usageError("cannot print round trips as %s: -o takes diff, json, junit", opts.output)
	case opts.request != "" || opts.response != "" || opts.update || opts.trace || opts.explain || opts.coverage || len(opts.served) > 0:
		return usageError("--round-trip and --fuzz take objects through conversions: leave --request, --response, --served, --update, --trace, --explain and --coverage out")
	}
	if !opts.seeded {
		opts.seed = rand.Uint64N(1 << 32) // short enough to be typed
	}
	return nil
}

// tripsError is why the command fails; nil when all objects come back.
func tripsError(reports []*tripReport) error {
	failed, tried := 0, 0
	for _, r := range reports {
		tried += r.objects
		if !r.passed() {
			failed++
		}
	}
	switch {
	case failed > 0:
		return fmt.Errorf("objects do not come back as they were on %d of %d ways", failed, len(reports))
	case len(reports) == 0:
		return errors.New("nothing to try: no policy converts, or no manifest is of a version that one converts")
	case tried == 0:
		return errors.New("nothing was tried: no schema of any kind is known")
	}
	return nil
}

// tripSets are the policies of --policies and --library with the manifests, or those of
// the cases.
func (opts *testPolicyOptions) tripSets(std streams, args []string) ([]*tripSet, error) {
	bring := len(opts.policies.Dirs) == 0 && len(opts.policies.Library) == 0
	if bring || opts.roundTrip && len(args) == 0 {
		files, err := opts.caseFiles(args)
		switch {
		case err != nil:
			return nil, err
		case files == nil:
			return nil, usageError("no policies: give --policies DIR or --library NAME, or cases")
		}
		return opts.caseTrips(std, files)
	}
	set, err := policies.Load(opts.policies)
	if err != nil {
		return nil, &exitError{exitPolicies, policyErrors(err)}
	}
	in, err := readInput(std.in, &dryrun.Template{}, args)
	if err != nil {
		return nil, err
	}
	newWarner(std.err).tell(policies.Show(set.Warnings(), opts.policies))
	s, err := opts.tripSet(set, in.manifests, nil)
	if err != nil {
		return nil, err
	}
	return []*tripSet{s}, checkFields(set, opts.policies, s.kinds.types)
}

// caseTrips are the policies and objects of the cases in each file.
func (opts *testPolicyOptions) caseTrips(std streams, files []string) ([]*tripSet, error) {
	var sets []*tripSet
	var errs []error
	warn := newWarner(std.err)
	for _, file := range files {
		cases, err := policytest.Load(file)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		var manifests []dryrun.Manifest
		for _, c := range cases {
			objects, err := c.Objects()
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", file, c.Name, err)
			}
			manifests = append(manifests, objects...)
		}
		set, err := cases[0].Set(policytest.Options{Schemas: offlineSchemas, Limits: opts.policies.Limits})
		if err != nil {
			return nil, &exitError{exitPolicies, policyErrors(err)}
		}
		warn.tell(cases[0].Warnings(set))
		s, err := opts.tripSet(set, manifests, cases[0].Resources())
		if err != nil {
			return nil, err
		}
		sets = append(sets, s)
	}
	return sets, errors.Join(errs...)
}

func (opts *testPolicyOptions) tripSet(set *engine.Set, manifests, resources []dryrun.Manifest) (*tripSet, error) {
	kinds, err := opts.kinds(append(resources, manifests...))
	if err != nil {
		return nil, err
	}
	return &tripSet{set: set.WithSchemas(kinds.types), manifests: manifests, kinds: kinds}, nil
}

// given takes the manifests of the side's version there and back; nil when there are
// none.
func (s *tripSet) given(trip *roundtrip.Trip, side roundtrip.Side) []*tripReport {
	r := &tripReport{trip: trip, side: side}
	for i := range s.manifests {
		if m := &s.manifests[i]; isOfVersion(m, trip.Version(side)) && r.failure == nil {
			r.try(m.JSON, nil)
		}
	}
	if r.objects == 0 {
		return nil
	}
	return []*tripReport{r}
}

func isOfVersion(m *dryrun.Manifest, v convert.Version) bool {
	if m.APIVersion != v.APIVersion() {
		return false
	}
	kind := kindschema.Kind{Group: v.Group, Version: v.Version, Kind: m.Kind}
	return m.Kind == v.Kind || v.Kind == "" && kind.Resource() == v.Resource
}

// random takes random objects of the side's version there and back.
func (s *tripSet) random(trip *roundtrip.Trip, side roundtrip.Side, opts *testPolicyOptions) *tripReport {
	r := &tripReport{trip: trip, side: side, random: true, seed: opts.seed}
	kind, known, ok := s.kinds.find(trip.Version(side))
	if !ok {
		r.notTried = fmt.Errorf("no schema of %s %s is known: give its CustomResourceDefinition or OpenAPI document with --schema",
			trip.Version(side).APIVersion(), trip.Version(side).Resource)
		return r
	}
	head := fmt.Sprintf(`"apiVersion":%q,"kind":%q`, trip.Version(side).APIVersion(), kind.Kind)
	options := randomobject.Options{Words: trip.Words(side), Nulls: !known.builtin}
	if side == roundtrip.Client {
		options.Values = trip.Values()
	}
	allowed := func(object []byte) bool {
		violations, err := known.Validate(object)
		return err == nil && len(violations) == 0
	}
	for i := range uint64(opts.fuzz) {
		object, err := randomobject.Make(opts.seed+i, known.Schema, head, options)
		if err != nil {
			r.notTried = err
			return r
		}
		if r.try(object, allowed); r.failure != nil {
			r.seed += i
			break
		}
	}
	return r
}

// try takes one object there and back.
func (r *tripReport) try(object []byte, allowed func([]byte) bool) {
	r.objects++
	failure, told, err := r.trip.Check(r.side, object)
	if err != nil {
		r.refused++
		if r.refusal == nil {
			r.refusal = err
		}
		return
	}
	for _, change := range told {
		path := change.From
		if path == "" {
			path = change.To
		}
		if !slices.Contains(r.told, path) {
			r.told = append(r.told, path)
		}
	}
	if failure != nil {
		r.failure = r.trip.Smallest(failure, allowed)
	}
}

// knownKind is the schema of a kind, and whether it is of a Go type of Kubernetes.
type knownKind struct {
	*kindschema.Schema
	builtin bool
}

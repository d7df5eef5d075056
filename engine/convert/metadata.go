package convert

import (
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// A metadata-only object (PartialObjectMetadata) has an object's metadata and nothing
// else. Of its conversion towards the client only what becomes of labels and annotations
// is left: the rules that name them, and of a jq program the stages that need nothing
// else. What such a stage sees is the same as in the whole object, so that both show the
// client the same labels.

// isMetadataOnly reports whether the two are those of a metadata-only object.
func isMetadataOnly(apiVersion, kind string) bool {
	return kind == "PartialObjectMetadata" && strings.HasPrefix(apiVersion, metaGroup)
}

// isMetadataList is isMetadataOnly for a list of them.
func isMetadataList(apiVersion, kind string) bool {
	return kind == "PartialObjectMetadataList" && strings.HasPrefix(apiVersion, metaGroup)
}

// concernsMetadata reports whether s reads or writes labels or annotations.
func (s *step) concernsMetadata() bool {
	return s.from[0].key == "metadata" || s.to[0].key == "metadata"
}

// convertsMetadata reports whether metadata-only objects have to be looked at.
func (c *Converter) convertsMetadata() bool {
	for _, l := range c.links {
		if l.of.response != nil && l.of.response.metadata != nil {
			return true
		}
	}
	for _, s := range c.steps {
		if s.concernsMetadata() {
			return true
		}
	}
	return false
}

// metadataOnly converts the metadata-only object r in place. A value that a rule takes
// out of the metadata goes: where it goes to is not shown.
func (x *run) metadataOnly(r ref, vars *Vars) error {
	if x.d.kind(r) != kindObject {
		return nil
	}
	had := x.d.members(r)
	x.at = r
	for i := len(x.c.links) - 1; i >= 0; i-- {
		x.of = x.c.links[i].of
		if p := x.of.response; p != nil && p.metadata != nil {
			n := x.c.names(x.d, r)
			if err := x.program(p.metadata, &n, vars); err != nil {
				return err
			}
		}
		if err := x.runSteps(x.c.stepsOf(i), (*step).concernsMetadata); err != nil {
			return err
		}
	}
	for m := x.d.first(r); m != 0; {
		next := x.d.next(m)
		if had.byName[x.d.key(m)] == 0 {
			x.d.unlink(m)
		}
		m = next
	}
	return nil
}

// metadataOf is the part of the program text, which has been compiled before, that is
// about labels and annotations alone; nil when there is none.
func metadataOf(text *source.Text, stages *jqStages) *program {
	var kept []*gojq.Query
	var own, others []*need
	for _, stage := range pipeStages(plainQuery(text.Code)) {
		needs, _ := needsOf(stage)
		if !needs.onlyLabels() {
			others = append(others, needs)
			continue
		}
		kept, own = append(kept, stage), append(own, needs)
	}
	for i := len(kept) - 1; i >= 0; i-- {
		if slices.ContainsFunc(others, own[i].overlaps) {
			kept = slices.Delete(kept, i, i+1)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	p := &program{stages: stages}
	if all := planOf(joined(kept)); all != nil {
		p.parts = &jqParts{first: all, touches: all.touches}
	}
	whole, errs := compileJQ(text, joined(kept)) // which puts guards into them
	if len(errs) > 0 {
		return nil // cannot be: it is a part of what was compiled
	}
	p.whole = whole
	return p
}

// onlyLabels reports whether n, which is not empty, covers nothing but labels and
// annotations.
func (n *need) onlyLabels() bool {
	metadata := n.members["metadata"]
	if n.all || len(n.members) != 1 || metadata == nil || metadata.all {
		return false
	}
	for key := range metadata.members {
		if key != "labels" && key != "annotations" {
			return false
		}
	}
	return len(metadata.members) > 0
}

// overlaps reports whether there is a value that both n and other cover.
func (n *need) overlaps(other *need) bool {
	if n.all || other.all || len(n.members) == 0 || len(other.members) == 0 {
		return true
	}
	for key, m := range n.members {
		if o := other.members[key]; o != nil && m.overlaps(o) {
			return true
		}
	}
	return false
}

package objects

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// problems are what cannot be read or written at the moment. Each is logged once, and
// again when it is over.
type problems struct {
	log *slog.Logger

	mu   sync.Mutex
	open map[string]string // what fails, and why
}

func newProblems(log *slog.Logger) *problems {
	return &problems{log: log, open: map[string]string{}}
}

// note takes note of how an attempt ended. The end of ctx is no problem.
func (p *problems) note(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		if _, was := p.open[what]; was {
			delete(p.open, what)
			p.log.Info("policy objects: can " + what + " again")
		}
		return
	}
	if _, was := p.open[what]; !was {
		p.log.Warn("policy objects: cannot "+what, "error", err)
	}
	p.open[what] = err.Error()
}

// absent takes note that the cluster has no such resource, which is how things are and
// no failure.
func (p *problems) absent(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := "list " + what
	const why = "the cluster has no such resource; install its CustomResourceDefinition, examples/kubernetes/crd.yaml"
	if p.open[key] != why {
		p.log.Warn("policy objects: there are no "+what+": "+why+"; looking for it", "interval", lookInterval.String())
	}
	p.open[key] = why
}

// reading is why the objects cannot be read, in words, "" when nothing is wrong with that.
func (p *problems) reading() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var texts []string
	for what, why := range p.open {
		if strings.HasPrefix(what, "list ") {
			texts = append(texts, "cannot "+what+": "+why)
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, "; ")
}

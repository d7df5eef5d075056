package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/discovery"
	"github.com/mixed-version-proxy/mvp/proxy/upstream"
	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// readersV2 reads the servers' OpenAPI v2 documents and merges them. What a server
// said stays while it cannot be reached; equal documents are read and kept once.
type readersV2 struct {
	log        *slog.Logger
	servers    map[string]*readerV2
	bodies     map[string][]byte               // by ETag
	remembered map[string]*discovery.OpenAPIV2 // by path: parts that a server had, of converted versions

	last mergedV2
}

// readerV2 is what is known of one server's document.
type readerV2 struct {
	etag    string // "": none was read, or the server has none
	problem string // as last logged

	tried, changed time.Time         // when it was asked, when it said something else of OpenAPI v3
	index          map[string]string // what it said then
	version        string
}

// mergedV2 is the last document and what it was made of.
type mergedV2 struct {
	sources  string
	derived  []discovery.DerivedV2
	document *discovery.OpenAPIV2Document
	problem  string // as logged
}

const (
	// settlingV2 is how long after a change of OpenAPI v3 a server's v2 may lag behind
	// it; it is asked each settlingV2Interval then, and each settledV2Interval else. An
	// answer without news is a few hundred bytes.
	settlingV2                            = 10 * time.Second
	settlingV2Interval, settledV2Interval = time.Second, 10 * time.Second
)

func newReadersV2(log *slog.Logger) readersV2 {
	return readersV2{
		log: log, servers: map[string]*readerV2{}, bodies: map[string][]byte{},
		remembered: map[string]*discovery.OpenAPIV2{},
	}
}

// read asks the healthy servers that are due, all at once, and returns when the next
// one will be.
func (r *readersV2) read(ctx context.Context, view *upstream.View) (next time.Duration) {
	maps.DeleteFunc(r.servers, func(name string, _ *readerV2) bool {
		return !slices.ContainsFunc(view.Servers, func(s *upstream.State) bool { return s.Name == name })
	})
	known := slices.Sorted(maps.Keys(r.bodies))
	next = settledV2Interval
	var reading sync.WaitGroup
	answers := make([]answerV2, len(view.Servers))
	for i, server := range view.Servers {
		reader := r.of(server)
		if server.Healthy && reader.wait() <= 0 {
			reader.tried = time.Now()
			reading.Go(func() { answers[i] = readV2(ctx, server, known) })
		}
		next = min(next, max(reader.wait(), settlingV2Interval))
	}
	reading.Wait()
	for i, server := range view.Servers {
		r.keep(server, answers[i])
	}
	r.forget()
	return next
}

// of finds the reader of a server and notes what the server says of OpenAPI v3.
func (r *readersV2) of(server *upstream.State) *readerV2 {
	reader := r.servers[server.Name]
	if reader == nil {
		reader = &readerV2{}
		r.servers[server.Name] = reader
	}
	if server.Healthy && (reader.version != server.GitVersion || !maps.Equal(reader.index, server.OpenAPIV3)) {
		reader.index, reader.version = server.OpenAPIV3, server.GitVersion
		reader.changed, reader.tried = time.Now(), time.Time{}
	}
	return reader
}

// wait is the time until the server is to be asked.
func (r *readerV2) wait() time.Duration {
	interval := settledV2Interval
	if time.Since(r.changed) < settlingV2 {
		interval = settlingV2Interval
	}
	return interval - time.Since(r.tried)
}

// answerV2 is what came of asking one server. The zero value: it was not asked.
type answerV2 struct {
	asked bool
	etag  string
	body  []byte // nil: the one known under the ETag
	err   error
}

// readV2 reads one server's document, unless it is one of those known.
func readV2(ctx context.Context, server *upstream.State, known []string) answerV2 {
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	header := wire.Header{{Name: "Accept", Value: "application/json"}}
	if len(known) > 0 {
		header.Add("If-None-Match", strings.Join(known, ", "))
	}
	doc, err := server.Server.Get(ctx, "/openapi/v2", header, discovery.MaxOpenAPIV2)
	if err != nil {
		return answerV2{asked: true, err: err}
	}
	a := answerV2{asked: true, etag: doc.Header.Get("Etag")}
	switch doc.Status {
	case http.StatusOK:
		a.body = doc.Body
		if a.etag == "" {
			a.etag = `"` + discovery.Hash(doc.Body) + `"`
		}
	case http.StatusNotModified:
		if !slices.Contains(known, a.etag) {
			a.err = fmt.Errorf("%s answered 304 to GET /openapi/v2 with an ETag that it was not asked for", server.Name)
		}
	case http.StatusNotFound: // a server without it
		a.etag = ""
	default:
		a.err = fmt.Errorf("%s answered %d to GET /openapi/v2", server.Name, doc.Status)
	}
	return a
}

// keep notes an answer. A document that could not be read leaves the one before.
func (r *readersV2) keep(server *upstream.State, a answerV2) {
	if !a.asked {
		return
	}
	reader := r.servers[server.Name]
	if a.err != nil {
		if problem := a.err.Error(); problem != reader.problem {
			reader.problem = problem
			r.log.Warn("cannot read an OpenAPI v2 document; what was known of it stays", "upstream", server.Name, "error", a.err)
		}
		return
	}
	reader.etag, reader.problem = a.etag, ""
	if a.body != nil {
		r.bodies[a.etag] = a.body
	}
}

// forget lets go of the documents that no server has any more.
func (r *readersV2) forget() {
	maps.DeleteFunc(r.bodies, func(etag string, _ []byte) bool {
		for _, reader := range r.servers {
			if reader.etag == etag {
				return false
			}
		}
		return true
	})
}

// make returns the document of what was read, the same one while nothing changed;
// nil when a server's own is all that there is to say.
func (r *readersV2) make(wanted wantedV2) *discovery.OpenAPIV2Document {
	var key strings.Builder
	for _, server := range wanted.view.Servers {
		if etag := r.servers[server.Name].etag; etag != "" {
			fmt.Fprintf(&key, "%q %q %q\n", server.Name, server.GitVersion, etag)
		}
	}
	if key.String() == r.last.sources && reflect.DeepEqual(wanted.derived, r.last.derived) {
		return r.last.document
	}
	document, err := r.merge(wanted)
	problem := ""
	if err != nil {
		if problem = err.Error(); problem != r.last.problem {
			r.log.Warn("cannot make the OpenAPI v2 document whole", "error", err)
		}
	}
	r.last = mergedV2{key.String(), wanted.derived, document, problem}
	return document
}

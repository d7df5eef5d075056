package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// documents reads the OpenAPI documents of the versions that conversions name, on
// a goroutine of its own, so that a slow server holds up nothing else. A version
// that nobody serves any more keeps the document it had. The methods may be
// called from any goroutine.
type documents struct {
	log     *slog.Logger
	changed func() // called after a round that brought something
	wake    chan struct{}

	mu     sync.Mutex
	view   *upstream.View
	paths  []string // wanted
	have   map[string]remembered
	failed map[string]failedRead
}

// remembered is the OpenAPI v3 document of a group version.
type remembered struct {
	link string // names the content: it holds the server's hash of it
	body []byte
}

// failedRead is a document that could not be read.
type failedRead struct {
	link  string
	after time.Duration // the time between this try and the next
	next  time.Time
}

// Limits of reading one document.
const (
	// maxOpenAPIDocument is in bytes; the largest of Kubernetes 1.37, core and
	// apps/v1, are below 2 MiB.
	maxOpenAPIDocument = 32 << 20

	// documentTimeout is ten times what a busy server takes.
	documentTimeout = 5 * time.Second

	// firstRetry and lastRetry bound the time between two tries, which doubles.
	firstRetry, lastRetry = time.Second, time.Minute
)

func newDocuments(log *slog.Logger, changed func()) *documents {
	return &documents{
		log: log, changed: changed, wake: make(chan struct{}, 1), view: &upstream.View{},
		have: map[string]remembered{}, failed: map[string]failedRead{},
	}
}

// want says which documents are wanted from now on, and whether one that a server
// has was neither read nor tried yet.
func (d *documents) want(view *upstream.View, paths []string) (pending bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.view, d.paths = view, paths
	for _, path := range paths {
		if server, link := describer(view, path); server != nil && d.have[path].link != link && d.failed[path].link != link {
			pending = true
		}
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
	return pending
}

// get returns the document of path as it was last read.
func (d *documents) get(path string) (remembered, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	doc, ok := d.have[path]
	return doc, ok
}

// run reads what is wanted until ctx is done.
func (d *documents) run(ctx context.Context) {
	retry := time.NewTimer(lastRetry)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		case <-retry.C:
		}
		if d.round(ctx) {
			d.changed()
		}
		retry.Reset(d.untilRetry())
	}
}

// round tries each document that is due, and reports whether one was read, or
// failed for the first time: either ends a wait for it.
func (d *documents) round(ctx context.Context) (news bool) {
	d.mu.Lock()
	view, paths := d.view, d.paths
	d.mu.Unlock()
	for _, path := range paths {
		server, link := describer(view, path)
		if server == nil || !d.due(path, link) {
			continue
		}
		body, err := readDocument(ctx, server, link)
		if ctx.Err() != nil {
			return false
		}
		news = d.keep(path, link, body, err) || news
	}
	return news
}

// describer is the newest healthy server that has the document of path, and its
// link to it; nil when there is none.
func describer(view *upstream.View, path string) (*upstream.State, string) {
	for _, server := range slices.Backward(oldestFirst(view.Servers)) {
		if link, ok := server.OpenAPIV3[path]; ok && server.Healthy {
			return server, link
		}
	}
	return nil, ""
}

func (d *documents) due(path, link string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.have[path].link == link {
		return false
	}
	failed, ok := d.failed[path]
	return !ok || failed.link != link || !time.Now().Before(failed.next)
}

func readDocument(ctx context.Context, server *upstream.State, link string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	doc, err := server.Server.Get(ctx, link, wire.Header{{Name: "Accept", Value: "application/json"}}, maxOpenAPIDocument)
	if err != nil {
		return nil, err
	}
	if doc.Status != http.StatusOK {
		return nil, fmt.Errorf("%s answered %d to GET %s", server.Name, doc.Status, link)
	}
	return doc.Body, nil
}

// keep remembers what came of one try, and reports whether it is news.
func (d *documents) keep(path, link string, body []byte, err error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		d.have[path] = remembered{link, body}
		delete(d.failed, path)
		return true
	}
	failed, again := d.failed[path]
	again = again && failed.link == link
	after := firstRetry
	if again {
		after = min(2*failed.after, lastRetry)
	} else {
		d.log.Warn("cannot read an OpenAPI document; until it can be, the types of its fields are not known", "path", path, "error", err)
	}
	d.failed[path] = failedRead{link, after, time.Now().Add(after)}
	return !again
}

// untilRetry is the time until the next failed document is due.
func (d *documents) untilRetry() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	wait := lastRetry
	for failed := range maps.Values(d.failed) {
		wait = min(wait, time.Until(failed.next))
	}
	return max(wait, 0)
}

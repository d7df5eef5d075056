package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// defaultWatchTime ends a watch that sets no timeoutSeconds.
	defaultWatchTime = 30 * time.Minute

	// bookmarkInterval is how often a watch that allows it is told how far it is.
	bookmarkInterval = time.Minute

	// watchListMinor is the first release that answers sendInitialEvents.
	watchListMinor = 32
)

// A watcher is one watch and what its client wants.
type watcher struct {
	*call
	form      form
	selected  *selection
	revision  int64 // all up to it is sent
	timeout   time.Duration
	bookmarks bool
	initial   bool // start with all objects as ADDED events
	marked    bool // end those with a bookmark (sendInitialEvents)
	sentAny   bool // of a Table only the first event names the columns
	out       *eventWriter
}

// watchEvent is one frame on the wire.
type watchEvent struct {
	Type   watch.EventType `json:"type"`
	Object any             `json:"object"`
}

// eventWriter sends each event as soon as it is there.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (e *eventWriter) send(event watchEvent) error {
	data, err := json.Marshal(event)
	if err != nil {
		return fmt.Errorf("cannot encode a watch event: %w", err)
	}
	if _, err := e.w.Write(append(data, '\n')); err != nil {
		return wrapWrite(err)
	}
	return wrapWrite(e.control.Flush())
}

func (c *call) watch(w http.ResponseWriter) error {
	watcher, err := c.newWatcher()
	if err != nil {
		return err
	}
	watcher.out = &eventWriter{w: w, control: http.NewResponseController(w)}
	ctx, cancel := context.WithTimeout(c.request.Context(), watcher.timeout)
	defer cancel()
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(http.StatusOK)
	if err := watcher.out.control.Flush(); err != nil {
		return wrapWrite(err)
	}
	return wrapWrite(watcher.run(ctx))
}

func (c *call) newWatcher() (*watcher, error) {
	query := c.request.URL.Query()
	f, err := negotiate(c.request)
	if err != nil {
		return nil, err
	}
	selected, err := c.selector()
	if err != nil {
		return nil, err
	}
	seconds, err := strconv.Atoi("0" + query.Get("timeoutSeconds"))
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("timeoutSeconds: Invalid value: %q: must be a number", query.Get("timeoutSeconds")))
	}
	w := &watcher{call: c, form: f, selected: selected, timeout: defaultWatchTime}
	if seconds > 0 {
		w.timeout = min(time.Duration(seconds)*time.Second, defaultWatchTime)
	}
	w.bookmarks, _ = strconv.ParseBool(query.Get("allowWatchBookmarks"))
	rv := query.Get("resourceVersion")
	if rv == "" || rv == "0" {
		w.initial = true
	} else if w.revision, err = strconv.ParseInt(rv, 10, 64); err != nil || w.revision < 0 {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("resourceVersion: Invalid value: %q: must be a number", rv))
	}
	return w, w.sendInitialEvents()
}

// sendInitialEvents reads the parameter of that name, by which newer clients list
// and watch in one request.
func (w *watcher) sendInitialEvents() error {
	query := w.request.URL.Query()
	if !query.Has("sendInitialEvents") {
		return nil
	}
	if w.server.minor < watchListMinor {
		err := field.Forbidden(field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
		return apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", field.ErrorList{err})
	}
	w.initial, _ = strconv.ParseBool(query.Get("sendInitialEvents"))
	w.marked = w.initial && w.bookmarks
	if !w.initial && w.revision == 0 {
		_, w.revision = w.server.plane.store.get(w.groupResource(), "", "")
	}
	return nil
}

func (w *watcher) run(ctx context.Context) error {
	if w.initial {
		if err := w.sendAll(); err != nil {
			return err
		}
	}
	bookmark := time.NewTicker(bookmarkInterval)
	defer bookmark.Stop()
	for {
		changes, revision, more, err := w.server.plane.store.since(w.groupResource(), w.revision)
		if errors.Is(err, errTooOld) {
			return w.sendGone(revision)
		}
		if err := w.sendChanges(changes); err != nil {
			return err
		}
		w.revision = max(w.revision, revision)
		select {
		case <-more:
		case <-bookmark.C:
			if err := w.sendBookmark(false); err != nil {
				return err
			}
		case <-ctx.Done():
			if w.request.Context().Err() != nil {
				return nil // the client has gone
			}
			return w.sendBookmark(false)
		}
	}
}

// sendAll sends what is there now, as additions.
func (w *watcher) sendAll() error {
	objects, revision := w.server.plane.store.list(w.groupResource(), w.namespace)
	for _, obj := range objects {
		if !w.selected.matches(obj) {
			continue
		}
		if err := w.send(watch.Added, obj); err != nil {
			return err
		}
	}
	w.revision = revision
	if w.marked {
		return w.sendBookmark(true)
	}
	return nil
}

// sendChanges sends what the selection sees of changes: an object that comes to
// match is added, one that no longer does is deleted.
func (w *watcher) sendChanges(changes []change) error {
	for _, c := range changes {
		if w.namespace != "" && c.object.GetNamespace() != w.namespace {
			continue
		}
		before, now := w.selected.matches(c.previous), w.selected.matches(c.object) && c.event != watch.Deleted
		event, obj := watch.Modified, c.object
		switch {
		case !before && !now:
			continue
		case !before:
			event = watch.Added
		case !now:
			event = watch.Deleted
		}
		if event == watch.Deleted && c.event != watch.Deleted {
			obj = c.previous.DeepCopy() // as the client knew it
			obj.SetResourceVersion(c.object.GetResourceVersion())
		}
		if err := w.send(event, obj); err != nil {
			return err
		}
	}
	return nil
}

func (w *watcher) send(event watch.EventType, obj *unstructured.Unstructured) error {
	shaped := w.shape(w.form, obj, !w.sentAny)
	w.sentAny = true
	return w.out.send(watchEvent{Type: event, Object: shaped})
}

// sendBookmark tells the client the revision up to which it knows all; initialEnd
// marks the end of the initial events.
func (w *watcher) sendBookmark(initialEnd bool) error {
	if !w.bookmarks {
		return nil
	}
	obj := w.live(nil)
	obj.SetResourceVersion(strconv.FormatInt(w.revision, 10))
	if initialEnd {
		obj.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return w.out.send(watchEvent{Type: watch.Bookmark, Object: w.bookmarkForm(obj)})
}

func (w *watcher) bookmarkForm(obj *unstructured.Unstructured) any {
	if w.form.as == "Table" {
		t := w.table(w.form, !w.sentAny)
		t.ResourceVersion = obj.GetResourceVersion()
		t.Rows = append(t.Rows, w.row(w.form, obj))
		return t
	}
	return w.shape(w.form, obj, false)
}

// sendGone ends the watch of a client that is too far behind.
func (w *watcher) sendGone(revision int64) error {
	status := apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", w.revision, revision)).Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return w.out.send(watchEvent{Type: watch.Error, Object: status})
}

package objects

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"

	"github.com/mixed-version-proxy/mvp/policies"
)

const (
	// maxNoteBytes bounds the text of an event, which the API lets have 1 KiB.
	maxNoteBytes = 1000

	// maxEvents is how many events may wait to be sent; more are not sent.
	maxEvents = 32

	// eventPause is between two events.
	eventPause = time.Second
)

// events sends events, slowly, and drops what is too much.
type events struct {
	client   eventsclient.EventsV1Interface
	queue    chan *eventsv1.Event
	problems *problems
	instance string
}

func newEvents(w *Watcher) (*events, error) {
	client, err := eventsclient.NewForConfigAndClient(w.rest(), w.http)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for events: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = fieldManager
	}
	return &events{client: client, queue: make(chan *eventsv1.Event, maxEvents), problems: w.problems, instance: fieldManager + "-" + host}, nil
}

// run sends what is queued until ctx is done.
func (e *events) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-e.queue:
			e.send(ctx, event)
			sleep(ctx, eventPause)
		}
	}
}

func (e *events) send(ctx context.Context, event *eventsv1.Event) {
	sendCtx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, err := e.client.Events(event.Namespace).Create(sendCtx, event, metav1.CreateOptions{FieldManager: fieldManager})
	e.problems.note(ctx, "create events in "+event.Namespace, err)
}

// put queues an event about an object. It never blocks.
func (e *events) put(about corev1.ObjectReference, typ, reason, action, note string) {
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault // where events about what has none belong
	}
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: eventName(about.Name)},
		EventTime:           metav1.NowMicro(),
		ReportingController: "mvp.k8s.io/mvp", ReportingInstance: e.instance,
		Regarding: about, Type: typ, Reason: reason, Action: action, Note: cut(note),
	}
	select {
	case e.queue <- event:
	default:
	}
}

// eventName returns a name of its own for an event about an object, as other components
// make it.
func eventName(object string) string {
	const most = 253 - 1 - 16 // what a name may have, without the dot and the time
	object = strings.TrimRight(object[:min(len(object), most)], ".-")
	return fmt.Sprintf("%s.%016x", object, time.Now().UnixNano())
}

// cut returns the start of a text that is too long for an event.
func cut(note string) string {
	if len(note) <= maxNoteBytes {
		return note
	}
	end := maxNoteBytes - len("…")
	for !utf8.RuneStart(note[end]) {
		end--
	}
	return note[:end] + "…"
}

// tell tells what became of an object, once for each version of it: that it is not
// accepted, and that it is again. key is the object and its version.
func (w *Watcher) tell(told map[string]string, key string, o *unstructured.Unstructured, s *policies.ObjectStatus) {
	name, text := s.Name, key+message(s)
	before, known := told[name]
	told[name] = text
	if before == text || s.Accepted() && !known {
		return
	}
	about := corev1.ObjectReference{
		APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
	}
	typ := corev1.EventTypeWarning
	if s.Accepted() {
		typ = corev1.EventTypeNormal
	}
	w.events.put(about, typ, s.Reason, "Load", message(s))
}

// aboutFiles is what tells the files from the objects in what was told: no object has
// that name.
const aboutFiles = ""

// tellFiles tells that policy files were not reloaded. They are no object, so the event
// is about the Lease of the replicas that read them.
func (w *Watcher) tellFiles(told map[string]string) {
	status := w.cfg.Store.Status()
	if len(status.Err) == 0 {
		delete(told, aboutFiles)
		return
	}
	text := status.Err.Error()
	if told[aboutFiles] == text {
		return
	}
	told[aboutFiles] = text
	w.events.put(corev1.ObjectReference{
		APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: w.cfg.LeaseNamespace, Name: w.cfg.LeaseName,
	}, corev1.EventTypeWarning, "ReloadFailed", "Reload", "the policy files are not reloaded, the last good ones stay:\n"+strings.TrimSpace(text))
}

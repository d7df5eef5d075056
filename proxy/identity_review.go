package proxy

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/singleflight"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

const (
	// reviewTimeout bounds one question to the servers, waiting for its turn and
	// asking a second server included. An answer takes a millisecond, or as long as
	// a server's own webhook.
	reviewTimeout = 5 * time.Second

	// maxReviews is how many questions are under way at once: what one busy server
	// hardly notices.
	maxReviews = 64

	// maxReviewServers is how many servers are asked for one answer.
	maxReviewServers = 2

	// maxReviewBytes bounds an answer, which repeats the question; no token is
	// longer than a request's head.
	maxReviewBytes = 1 << 20

	// reviewTTL is how long an answer is used again, a positive one and a negative
	// one alike: as long as kube-apiserver remembers tokens. A revoked right works
	// that much longer.
	reviewTTL = 10 * time.Second

	// maxRemembered is how many answers are kept of each kind: about 4 MiB. The one
	// that was used longest ago goes first.
	maxRemembered = 4096
)

// reviewer asks the servers, with MVP's own credential, what they think of a client.
type reviewer struct {
	pool  *upstream.Pool
	slots chan struct{}
}

func newReviewer(pool *upstream.Pool) *reviewer {
	return &reviewer{pool: pool, slots: make(chan struct{}, maxReviews)}
}

// A review is a question to the servers, and its answer.
type review struct {
	kind, path string
	object     any // a pointer to the Kubernetes type
}

// create sends a review to a healthy server, and makes it what the server answers. A
// server that cannot answer now is passed over for another one: a review changes
// nothing, so it may be asked twice.
//
// Its error is a *statusError: 503 if no server could answer, 500 if MVP may not ask.
func (r *reviewer) create(ctx context.Context, q review) error {
	question, err := json.Marshal(q.object)
	if err != nil {
		return cannotReview("cannot write a %s: %v", q.kind, err)
	}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return unavailable("cannot create a %s: %d reviews are under way already", q.kind, maxReviews)
	}
	servers := r.pool.View().Usable(nil)
	var failed error
	for _, server := range servers[:min(len(servers), maxReviewServers)] {
		document, err := server.Server.Post(ctx, q.path, question, maxReviewBytes)
		switch {
		case err != nil:
			failed = err
		case document.Status == http.StatusOK || document.Status == http.StatusCreated:
			return q.read(document.Body, server.Name)
		case document.Status == http.StatusTooManyRequests || document.Status >= 500:
			failed = fmt.Errorf("%s answered %d", server.Name, document.Status)
		default:
			return cannotReview("cannot create a %s: %s answered %d to MVP's own credential, which needs the right to; "+
				"see examples/kubernetes", q.kind, server.Name, document.Status)
		}
	}
	if failed == nil {
		return unavailable("cannot create a %s: no kube-apiserver behind the proxy is healthy", q.kind)
	}
	// Not wrapped: the failure is not that of the client's own request.
	return unavailable("cannot create a %s: %v", q.kind, failed)
}

// read reads a server's answer. It must be an answer: a status that is not there
// would be taken for a refusal.
func (q review) read(body []byte, server string) error {
	var answer struct {
		Kind   string          `json:"kind"`
		Status json.RawMessage `json:"status"`
	}
	err := json.Unmarshal(body, &answer)
	if err == nil && (answer.Kind != q.kind || len(answer.Status) == 0) {
		err = fmt.Errorf("it is a %q, want a %s with a status", clip(answer.Kind), q.kind)
	}
	if err == nil {
		err = json.Unmarshal(body, q.object)
	}
	if err != nil {
		return cannotReview("cannot create a %s: cannot read the answer of %s: %v", q.kind, server, err)
	}
	return nil
}

func cannotReview(format string, args ...any) *statusError {
	return &statusError{
		code: http.StatusInternalServerError, reason: metav1.StatusReasonInternalError, message: fmt.Sprintf("mvp: "+format, args...),
	}
}

// memo remembers answers for reviewTTL, and lets those who ask the same at the same
// time share one question. It knows questions by their hash only, under a key that
// nobody knows, since they may hold tokens. Failures are not remembered.
type memo[T any] struct {
	key     []byte
	answers *cache.LRUExpireCache
	asking  singleflight.Group
}

func newMemo[T any]() *memo[T] {
	m := &memo[T]{key: make([]byte, sha256.Size), answers: cache.NewLRUExpireCache(maxRemembered)}
	if _, err := rand.Read(m.key); err != nil {
		panic(err) // never: see crypto/rand
	}
	return m
}

// get returns the answer to question, from ask unless it is remembered. Whoever asks
// does so for all who wait, so it goes on when its own client leaves; it is done in
// reviewTimeout, or at the deadline of ctx.
func (m *memo[T]) get(ctx context.Context, question string, ask func(context.Context) (T, error)) (T, error) {
	hash := hmac.New(sha256.New, m.key)
	hash.Write([]byte(question))
	name := string(hash.Sum(nil))
	if answer, ok := m.answers.Get(name); ok {
		return answer.(T), nil
	}
	answer, err, _ := m.asking.Do(name, func() (any, error) {
		latest := time.Now().Add(reviewTimeout)
		if deadline, ok := ctx.Deadline(); ok && deadline.Before(latest) {
			latest = deadline
		}
		ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), latest)
		defer cancel()
		answer, err := ask(ctx)
		if err == nil {
			m.answers.Add(name, answer, reviewTTL)
		}
		return answer, err
	})
	return answer.(T), err
}

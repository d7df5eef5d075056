package proxy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mixed-version-proxy/mvp/proxy/upstream"
)

// The history of a kube-apiserver begins when it starts, so that after a restart
// even a resource in which nothing has happened has no history that reaches back to
// where its watches were. etcd has one, of five minutes: it is asked what was there at
// the position of the watch, and what was there when the server's history began. Where
// both are the same objects in the same versions, nothing has happened in between, and
// the watch goes on from there.
//
// What was created and deleted again in between is in neither list. Its client never
// learns of it, as it would not have by listing anew.

// Limits of a proof. What is larger, or takes longer, is listed by the client itself.
const (
	// maxProofObjects is how many objects a watch may see.
	maxProofObjects = 10_000

	// maxProofBytes is the size of one list, which has nothing of the objects but
	// their metadata.
	maxProofBytes = 64 << 20

	// maxProofTime is the time that both lists may take together.
	maxProofTime = 10 * time.Second

	// maxProofsAtOnce is how many are made at a time, for all clients.
	maxProofsAtOnce = 4

	// maxProofs is how many servers are asked for one watch.
	maxProofs = 3
)

// prove goes on with a watch for which no server has the history, if it can be
// proved that there was none.
func (w *watch) prove() result {
	r, from := &w.resume, w.pos.certain()
	candidates := slices.Clone(r.gone)
	slices.SortStableFunc(candidates, func(a, b goneServer) int { return cmp.Compare(a.oldest-1, b.oldest-1) }) // 0 last
	for _, g := range candidates {
		if r.proofs++; r.proofs > maxProofs {
			break
		}
		w.leaveOnly(g.server)
		if w.choose() != opened {
			continue
		}
		next, err := w.unchanged(from, g.oldest)
		if err != nil {
			w.x.s.cfg.Log.Debug("cannot prove that nothing happened in a watch", "upstream", g.server.Name, "reason", err.Error())
			continue
		}
		if w.open(next) == opened {
			w.pos.at, w.pos.top = next, max(w.pos.top, next)
			return resultProved
		}
	}
	if w.x.ctx.Err() != nil {
		return resultAbandoned
	}
	return resultExpired
}

// leaveOnly leaves out every server but one.
func (w *watch) leaveOnly(server *upstream.State) {
	x := w.x
	x.failed = slices.DeleteFunc(slices.Clone(x.st.view.Servers), func(s *upstream.State) bool { return sameServer(s, server) })
}

// unchanged returns the resourceVersion up to which nothing happened in the watch
// since from: oldest, or that of now where oldest is 0. The client's own credential
// is what lists.
func (w *watch) unchanged(from, oldest uint64) (uint64, error) {
	x := w.x
	if strings.Contains(x.req.DecodedPath, "/watch/") {
		return 0, errors.New("the path of the watch is of the old form")
	}
	leave, ok := x.s.watches.enterProof(x.ctx)
	if !ok {
		return 0, context.Cause(x.ctx)
	}
	defer leave()
	ctx, cancel := context.WithTimeout(x.ctx, maxProofTime)
	defer cancel()
	before, err := x.listMetadata(ctx, from)
	if err != nil {
		return 0, err
	}
	now, err := x.listMetadata(ctx, oldest)
	switch {
	case err != nil:
		return 0, err
	case before.rv != from, oldest != 0 && now.rv != oldest, now.rv < from:
		return 0, fmt.Errorf("the lists are of the resourceVersions %d and %d, not of %d and %d", before.rv, now.rv, from, oldest)
	case before.sum != now.sum:
		return 0, errors.New("something happened")
	}
	return now.rv, nil
}

// metadataList is a list of what a watch sees, reduced to what tells whether it is
// the same as another.
type metadataList struct {
	rv  uint64
	sum [sha256.Size]byte // of every object's identity and version
}

const acceptMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// listMetadata lists what the watch sees as of the resourceVersion rv, 0: of now.
func (x *exchange) listMetadata(ctx context.Context, rv uint64) (metadataList, error) {
	target, err := x.in.Target, error(nil)
	if x.conv != nil {
		if target, err = x.convertedTarget(); err != nil {
			return metadataList{}, err
		}
	}
	header := x.header.Clone(2)
	header.Set("Accept", acceptMetadata)
	header.Set("Accept-Encoding", "identity")
	answer, err := x.server.Server.RoundTrip(ctx, &upstream.Request{
		Method: http.MethodGet, Target: listing(target, rv, maxProofObjects), Host: x.in.Host, Header: header, Credential: x.who.credential,
	})
	if err != nil {
		return metadataList{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.Status != http.StatusOK {
		return metadataList{}, fmt.Errorf("%s answered a list with %d", x.server.Name, answer.Status)
	}
	return readMetadataList(io.LimitReader(answer.Body, maxProofBytes))
}

// readMetadataList reads a PartialObjectMetadataList, an object at a time. The order
// of its objects, that of the keys in etcd, is the same in every list.
func readMetadataList(r io.Reader) (list metadataList, err error) {
	sum, in := sha256.New(), json.NewDecoder(r)
	var kind string
	err = eachMember(in, func(key string) error {
		switch key {
		case "kind":
			return in.Decode(&kind)
		case "metadata":
			return list.readMetadata(in)
		case "items":
			return eachElement(in, func() error { return addObject(sum, in) })
		}
		return in.Decode(&json.RawMessage{})
	})
	switch {
	case err != nil:
		return metadataList{}, err
	case kind != "PartialObjectMetadataList":
		return metadataList{}, fmt.Errorf("a list came as %q", clip(kind))
	case list.rv == 0:
		return metadataList{}, errors.New("a list has no resourceVersion that is a number")
	}
	sum.Sum(list.sum[:0])
	return list, nil
}

func (l *metadataList) readMetadata(in *json.Decoder) error {
	var m struct{ ResourceVersion, Continue string }
	if err := in.Decode(&m); err != nil {
		return err
	}
	if m.Continue != "" {
		return fmt.Errorf("there are more than %d objects", maxProofObjects)
	}
	l.rv = parseRV([]byte(m.ResourceVersion))
	return nil
}

func addObject(sum io.Writer, in *json.Decoder) error {
	var object struct {
		Metadata struct{ Namespace, Name, UID, ResourceVersion string }
	}
	if err := in.Decode(&object); err != nil {
		return err
	}
	m := &object.Metadata
	if m.UID == "" || m.ResourceVersion == "" {
		return errors.New("an object has no uid or no resourceVersion")
	}
	_, err := fmt.Fprintf(sum, "%q %q %q %q\n", m.Namespace, m.Name, m.UID, m.ResourceVersion)
	return err
}

// eachMember calls read at the value of each member of an object, which it must
// consume.
func eachMember(in *json.Decoder, read func(key string) error) error {
	return eachWithin(in, '{', func() error {
		token, err := in.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string) // the decoder lets nothing else stand there
		return read(key)
	})
}

// eachElement calls read at each element of an array, which it must consume. null
// is an array without any.
func eachElement(in *json.Decoder, read func() error) error { return eachWithin(in, '[', read) }

func eachWithin(in *json.Decoder, open json.Delim, read func() error) error {
	token, err := in.Token()
	if err != nil || token == nil && open == '[' {
		return err
	}
	if token != open {
		return fmt.Errorf("a list has %v where %v must stand", token, open)
	}
	for in.More() {
		if err := read(); err != nil {
			return err
		}
	}
	_, err = in.Token()
	return err
}

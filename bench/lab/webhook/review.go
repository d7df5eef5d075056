package webhook

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	kjson "sigs.k8s.io/json"
)

// maxReview is the largest review that is read, in bytes. kube-apiserver sends the
// objects of a whole list at once.
const maxReview = 256 << 20

// review is an apiextensions.k8s.io/v1 ConversionReview.
type review struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Request    *request  `json:"request,omitempty"`
	Response   *response `json:"response,omitempty"`
}

type request struct {
	UID               string           `json:"uid"`
	DesiredAPIVersion string           `json:"desiredAPIVersion"`
	Objects           []map[string]any `json:"objects"`
}

type response struct {
	UID              string           `json:"uid"`
	ConvertedObjects []map[string]any `json:"convertedObjects"`
	Result           result           `json:"result"`
}

// result is what of a metav1.Status kube-apiserver looks at.
type result struct {
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

// serve answers one review.
func (s *Server) serve(w http.ResponseWriter, req *http.Request) {
	in, err := readReview(w, req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.calls.Add(1)
	s.objects.Add(int64(len(in.Request.Objects)))
	out := review{APIVersion: in.APIVersion, Kind: in.Kind, Response: answer(in.Request)}
	body, err := json.Marshal(out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // a client that is gone needs no answer
}

func readReview(w http.ResponseWriter, req *http.Request) (*review, error) {
	body, err := readAll(http.MaxBytesReader(w, req.Body, maxReview), req.ContentLength)
	if err != nil {
		return nil, fmt.Errorf("cannot read the review: %w", err)
	}
	var in review
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &in); err != nil {
		return nil, fmt.Errorf("cannot read the review: %w", err)
	}
	if in.Request == nil {
		return nil, fmt.Errorf("%s %s has no request", in.APIVersion, in.Kind)
	}
	return &in, nil
}

// readAll reads a body whose length may be known, which then is read without growing.
func readAll(r io.Reader, length int64) ([]byte, error) {
	if length <= 0 || length > maxReview {
		return io.ReadAll(r)
	}
	body := make([]byte, length)
	_, err := io.ReadFull(r, body)
	return body, err
}

// answer converts the objects of a request: all of them or, with a message why not,
// none.
func answer(req *request) *response {
	for _, object := range req.Objects {
		if err := convert(object, req.DesiredAPIVersion); err != nil {
			return &response{UID: req.UID, ConvertedObjects: []map[string]any{}, Result: result{Status: "Failure", Message: err.Error()}}
		}
	}
	return &response{UID: req.UID, ConvertedObjects: req.Objects, Result: result{Status: "Success"}}
}

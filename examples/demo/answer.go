package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const jsonType = "application/json"

// errNotFound is that a path leads nowhere: in kube-apiserver an answer in plain
// text, and no Status.
var errNotFound = errors.New("404 page not found")

var errUnauthorized = apierrors.NewUnauthorized("Unauthorized")

func statusError(code int32, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

// writeError is the only place that answers with an error. What is no Status is a
// 500, but an unknown path: that one a kube-apiserver answers in plain text.
func writeError(w http.ResponseWriter, err error) {
	if errors.Is(err, errWrite) {
		return // the client has gone, or half of the answer has
	}
	if errors.Is(err, errNotFound) {
		http.Error(w, errNotFound.Error(), http.StatusNotFound)
		return
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	answer := status.Status()
	answer.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	if d := answer.Details; d != nil && d.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	_ = writeJSON(w, int(answer.Code), answer) // there is nobody else to tell
}

// writeJSON answers with body; a nil error says that it is sent.
func writeJSON(w http.ResponseWriter, code int, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("cannot encode the answer: %w", err)
	}
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(code)
	_, err = w.Write(append(data, '\n'))
	return wrapWrite(err)
}

// errWrite marks an error of sending an answer, after which no other can be sent.
var errWrite = errors.New("cannot send the answer")

func wrapWrite(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(errWrite, err)
}

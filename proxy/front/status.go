package front

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// statusJSON is a metav1.Status in JSON, the form of every error of a
// kube-apiserver.
func statusJSON(code int, message string) []byte {
	body, err := json.Marshal(struct {
		Kind       string   `json:"kind"`
		APIVersion string   `json:"apiVersion"`
		Metadata   struct{} `json:"metadata"`
		Status     string   `json:"status"`
		Message    string   `json:"message"`
		Reason     string   `json:"reason"`
		Code       int      `json:"code"`
	}{
		Kind: "Status", APIVersion: "v1", Status: "Failure",
		Message: message, Reason: reason(code), Code: code,
	})
	if err != nil { // strings and numbers always encode
		return nil
	}
	return append(body, '\n')
}

// reason is the metav1.StatusReason that clients know for a code.
func reason(code int) string {
	switch code {
	case http.StatusMethodNotAllowed:
		return "MethodNotAllowed"
	case http.StatusRequestTimeout:
		return "Timeout"
	case http.StatusInternalServerError:
		return "InternalError"
	}
	return "BadRequest" // the others have none; it is the client's request all the same
}

func headTooLarge(limit int) *Refusal {
	return &Refusal{
		Reason: RefusedHeadTooLarge, Code: http.StatusRequestHeaderFieldsTooLarge,
		Message: fmt.Sprintf("the request line and header lines are larger than the limit of %d bytes", limit),
	}
}

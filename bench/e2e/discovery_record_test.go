package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"testing"
)

var recordServers = flag.Bool("record", false, "write what the servers answer to proxy/discovery/testdata/servers")

// recordDocuments writes what a server answers for the tests that need no lab.
func recordDocuments(t *testing.T, url, version string, client *http.Client) {
	t.Helper()
	docs := readDocuments(t, client, url)
	delete(docs, "/version")
	withoutDescriptions(docs["/openapi/v2"]) // nine tenths of it
	text, err := json.Marshal(docs)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("../../proxy/discovery/testdata/servers/"+version+".json.gz", out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func withoutDescriptions(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["description"].(string); ok {
			v["description"] = "" // gnostic wants one
		}
		for _, e := range v {
			withoutDescriptions(e)
		}
	case []any:
		for _, e := range v {
			withoutDescriptions(e)
		}
	}
}

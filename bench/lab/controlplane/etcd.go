package controlplane

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
)

// Keys returns the keys in etcd that begin with a prefix, such as
// "/registry/pods/default/", whatever the kube-apiservers say that there is.
func (c *ControlPlane) Keys(ctx context.Context, prefix string) ([]string, error) {
	client, err := c.etcdClient()
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	body, err := json.Marshal(map[string]any{"key": []byte(prefix), "range_end": rangeEnd(prefix), "keys_only": true})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL(Etcd)+"/v3/kv/range", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("cannot read etcd: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("cannot read etcd: it answered %s", resp.Status)
	}
	var answer struct{ KVs []struct{ Key []byte } }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("cannot read etcd: %w", err)
	}
	var keys []string
	for _, kv := range answer.KVs {
		keys = append(keys, string(kv.Key))
	}
	return keys, nil
}

// rangeEnd is the first key after all that begin with prefix, which must be ASCII.
func rangeEnd(prefix string) []byte {
	end := []byte(prefix)
	end[len(end)-1]++
	return end
}

func (c *ControlPlane) etcdClient() (*http.Client, error) {
	cert, err := tls.LoadX509KeyPair(c.pki("etcd-client.crt"), c.pki("etcd-client.key"))
	if err != nil {
		return nil, fmt.Errorf("cannot load client certificate for etcd: %w", err)
	}
	roots, err := loadRoots(c.pki("etcd-ca.crt"))
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}}}}, nil
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/mixed-version-proxy/mvp/proxy"
)

// statusOptions are the flags of `mvp status`.
type statusOptions struct {
	admin, output string
	watch         bool
}

const (
	// statusTimeout bounds what a look at a running MVP may take; it answers in
	// milliseconds.
	statusTimeout = 10 * time.Second

	// statusInterval is the time between two looks of --watch.
	statusInterval = 2 * time.Second

	// maxStatusBytes bounds one page of the admin listener. Ten thousand policies are
	// some 5 MB.
	maxStatusBytes = 32 << 20
)

// statusReport is what a running MVP says of itself.
type statusReport struct {
	Ready bool `json:"ready"`
	// Reason is why it is not ready, in words.
	Reason    string                `json:"reason,omitempty"`
	Upstreams proxy.UpstreamsReport `json:"upstreams"`
	Policies  policyReport          `json:"policies"`
}

func statusCommand(std streams) *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:   "status [--admin URL] [-o table|wide|json|yaml]",
		Short: "Show the kube-apiservers behind a running MVP, what only some serve, and what policies did",
		Long: `Asks the admin listener of a running MVP, and shows the kube-apiservers behind it,
which requests only some of them can answer, and what the policies did.

It exits with 0 when MVP is ready, and with 1 when it is not or cannot be reached.`,
		Example: `  mvp status
  mvp status --admin mvp.example.com:9090 -o wide
  kubectl exec deploy/mvp -- mvp status`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return status(cmd.Context(), std, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.admin, "admin", "127.0.0.1:9090", "address of the admin listener (mvp serve --admin-listen), as HOST:PORT or URL")
	f.StringVarP(&o.output, "output", "o", "table", "table, wide, json or yaml")
	f.BoolVarP(&o.watch, "watch", "w", false, "show it again every two seconds, until interrupted")
	return cmd
}

func status(ctx context.Context, std streams, o statusOptions) error {
	show, err := statusPrinter(o)
	if err != nil {
		return err
	}
	admin, err := parseAdmin(o.admin)
	if err != nil {
		return err
	}
	client := &http.Client{
		Timeout: statusTimeout,
		// What answers with a redirect is no MVP.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	look := func() error {
		report, err := readStatus(ctx, client, admin)
		if err != nil {
			return err
		}
		if err := show(std.out, report); err != nil {
			return fmt.Errorf("cannot print the status: %w", err)
		}
		if !report.Ready {
			return fmt.Errorf("MVP at %s is %s", admin, plain(report.Reason))
		}
		return nil
	}
	if !o.watch {
		return look()
	}
	return watchStatus(ctx, std, look)
}

// watchStatus looks again and again until ctx is done. It fails if the last look did.
func watchStatus(ctx context.Context, std streams, look func() error) error {
	ticker := time.NewTicker(statusInterval)
	defer ticker.Stop()
	for {
		err := look()
		if ctx.Err() != nil {
			return nil // interrupted in the middle of a look
		}
		if err != nil {
			fmt.Fprintf(std.err, "mvp: %v\n", err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-ticker.C:
			fmt.Fprintln(std.out)
		}
	}
}

// statusPrinter gives the form that -o asks for.
func statusPrinter(o statusOptions) (func(io.Writer, *statusReport) error, error) {
	switch o.output {
	case "table", "wide":
		return func(w io.Writer, r *statusReport) error { return printStatus(w, r, o.output == "wide") }, nil
	case "json":
		return func(w io.Writer, r *statusReport) error {
			encoder := json.NewEncoder(w)
			encoder.SetIndent("", "  ")
			return encoder.Encode(r)
		}, nil
	case "yaml":
		return func(w io.Writer, r *statusReport) error {
			text, err := yaml.Marshal(r)
			if err != nil {
				return err
			}
			_, err = w.Write(text)
			return err
		}, nil
	}
	return nil, usageError("cannot print %q: -o takes table, wide, json, yaml", o.output)
}

// parseAdmin reads HOST:PORT or an URL, with a path where something forwards it.
func parseAdmin(text string) (*url.URL, error) {
	full := text
	if !strings.Contains(text, "://") {
		full = "http://" + text
	}
	u, err := url.Parse(full)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, usageError("cannot use --admin %q: want HOST:PORT or http://HOST:PORT", text)
	}
	if full != text && u.Port() == "" {
		return nil, usageError("cannot use --admin %q: want HOST:PORT; mvp serve listens for administrators at 127.0.0.1:9090 by default", text)
	}
	return u, nil
}

// readStatus asks for all that a status shows.
func readStatus(ctx context.Context, client *http.Client, admin *url.URL) (*statusReport, error) {
	r := &statusReport{}
	code, body, err := getAdmin(ctx, client, admin, "readyz")
	if err != nil {
		return nil, err
	}
	switch r.Ready = code == http.StatusOK; {
	case r.Ready:
	case code == http.StatusServiceUnavailable:
		r.Reason = strings.TrimSpace(string(body))
	default:
		return nil, notMVP(admin, "readyz", code)
	}
	if err := getJSON(ctx, client, admin, "upstreams", &r.Upstreams); err != nil {
		return nil, err
	}
	return r, getJSON(ctx, client, admin, "policies", &r.Policies)
}

func getJSON(ctx context.Context, client *http.Client, admin *url.URL, page string, into any) error {
	code, body, err := getAdmin(ctx, client, admin, page)
	if err != nil {
		return err
	}
	if code != http.StatusOK {
		return notMVP(admin, page, code)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("cannot understand what %s says: %w; is it the admin listener of an MVP, and of this version (%s)?",
			admin.JoinPath(page), err, buildVersion())
	}
	return nil
}

func notMVP(admin *url.URL, page string, code int) error {
	return fmt.Errorf("%s answered %d: is it the admin listener of an MVP (mvp serve --admin-listen)?", admin.JoinPath(page), code)
}

func getAdmin(ctx context.Context, client *http.Client, admin *url.URL, page string) (code int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, admin.JoinPath(page).String(), nil)
	if err != nil {
		return 0, nil, fmt.Errorf("cannot ask MVP at %s: %w", admin, err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("cannot reach MVP: %w; is it running, and is --admin the address of its --admin-listen?", err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxStatusBytes+1))
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("cannot read %s: %w", req.URL, err)
	case len(body) > maxStatusBytes:
		return 0, nil, fmt.Errorf("cannot read %s: it is larger than %d bytes", req.URL, maxStatusBytes)
	}
	return resp.StatusCode, body, nil
}

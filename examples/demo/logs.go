package demo

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// logLines is how many lines a Pod's log has when it is asked for.
	logLines = 3

	// logInterval is the time between two lines of a log that is followed.
	logInterval = time.Second
)

// streamLogs answers with the log of a Pod that does not run: a few lines, and
// with follow one more each second until the client goes.
func (c *call) streamLogs(w http.ResponseWriter) error {
	if pod, _ := c.server.plane.store.get(c.groupResource(), c.namespace, c.name); pod == nil {
		return apierrors.NewNotFound(c.groupResource(), c.name)
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	for n := 1; n <= logLines; n++ {
		if err := c.logLine(w, n); err != nil {
			return err
		}
	}
	if follow, _ := strconv.ParseBool(c.request.URL.Query().Get("follow")); !follow {
		return nil
	}
	return c.followLogs(c.request.Context(), w)
}

func (c *call) followLogs(ctx context.Context, w http.ResponseWriter) error {
	tick := time.NewTicker(logInterval)
	defer tick.Stop()
	for n := logLines + 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := c.logLine(w, n); err != nil {
				return err
			}
		}
	}
}

func (c *call) logLine(w http.ResponseWriter, n int) error {
	if _, err := fmt.Fprintf(w, "%s line %d\n", c.name, n); err != nil {
		return wrapWrite(err)
	}
	return wrapWrite(http.NewResponseController(w).Flush())
}

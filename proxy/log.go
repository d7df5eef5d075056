package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/engine/convert"
)

// log writes the request's one access-log record. It names no token, no query
// (a selector may hold what is secret) and no body.
func (x *exchange) log(status int, written int64) {
	logger := x.s.cfg.AccessLog
	if logger == nil || !logger.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	attrs := make([]slog.Attr, 0, 16)
	attrs = append(attrs,
		slog.String("method", x.in.Method),
		slog.String("path", clip(x.req.Path)),
		slog.String("verb", x.req.Verb),
		slog.Int("status", status),
		slog.Int64("bytes", written),
		slog.Duration("duration", time.Since(x.start)),
		slog.String("client", x.in.RemoteAddr.String()),
		slog.String("userAgent", clip(x.in.Header.Get("User-Agent"))),
	)
	if x.server != nil {
		attrs = append(attrs, slog.String("upstream", x.server.Name))
	}
	if x.decision != nil && len(x.decision.Policies) > 0 {
		attrs = append(attrs, slog.Any("policies", x.decision.Policies))
	}
	if x.decision != nil && len(x.decision.Audited) > 0 {
		attrs = append(attrs, slog.Any("audited", x.decision.Audited))
	}
	if x.conv != nil {
		attrs = append(attrs, slog.String("conversion", x.conv.From.APIVersion()+" to "+x.conv.To.APIVersion()))
	}
	if x.answer != nil {
		if id := x.answer.Header.Get("Audit-Id"); id != "" {
			attrs = append(attrs, slog.String("auditID", clip(id)))
		}
	}
	if x.err != nil {
		attrs = append(attrs, slog.String("error", clip(loggable(x.err))))
	}
	logger.LogAttrs(context.Background(), slog.LevelInfo, "request", attrs...)
}

// loggable is what the log says of err. What a policy's failure says to the
// client may show values of the object, so the log only says where it failed.
func loggable(err error) string {
	var eval *engine.EvalError
	if errors.As(err, &eval) {
		return fmt.Sprintf("%v: cannot evaluate %s of policy %q; the client was told why", eval.Pos, eval.Role, eval.Policy)
	}
	var conversion *convert.Error
	if errors.As(err, &conversion) {
		return fmt.Sprintf("%v: cannot convert %s by policy %q; the client was told why", conversion.Pos, conversion.Path, conversion.Policy)
	}
	return err.Error()
}

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
		slog.Float64("seconds", time.Since(x.start).Seconds()),
		slog.String("client", x.in.RemoteAddr.String()),
		slog.String("userAgent", clip(x.in.Header.Get("User-Agent"))),
	)
	if x.who.user != nil && x.who.user != anonymous {
		attrs = append(attrs, slog.String("user", clip(x.who.user.Name)))
	}
	if x.who.impersonates != "" {
		attrs = append(attrs, slog.String("impersonates", clip(x.who.impersonates)))
	}
	if x.server != nil {
		attrs = append(attrs, slog.String("upstream", x.server.Name))
	}
	if len(x.failed) > 0 {
		attrs = append(attrs, slog.Any("leftOut", names(x.failed))) // servers that were asked before, or would fail alike
	}
	if x.watch != nil && x.watch.resume.count > 0 {
		attrs = append(attrs, slog.Int("resumed", x.watch.resume.count)) // times, the last time on upstream
	}
	if x.decision != nil && len(x.decision.Policies) > 0 {
		attrs = append(attrs, slog.Any("policies", x.decision.Policies))
	}
	if x.decision != nil && len(x.decision.Audited) > 0 {
		attrs = append(attrs, slog.Any("audited", x.effects()))
	}
	if ignored := x.ignored(); len(ignored) > 0 {
		attrs = append(attrs, slog.Any("ignored", failures(ignored)))
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

// failures says which policies were passed over, "10-freeze: expression at
// 10-freeze.deny.cel:1:5". Why they failed may show values of the object.
func failures(ignored []engine.Ignored) []string {
	list := make([]string, len(ignored))
	for i, failed := range ignored {
		list[i] = failed.Policy + ": " + string(failed.Reason)
		if pos := failedAt(failed.Err); pos != "" {
			list[i] += " at " + pos
		}
	}
	return list
}

// failedAt is where in its file a policy failed; "" where nobody knows.
func failedAt(err error) string {
	var eval *engine.EvalError
	if errors.As(err, &eval) {
		return eval.Pos.String()
	}
	var conversion *convert.Error
	if errors.As(err, &conversion) {
		return conversion.Pos.String()
	}
	return ""
}

// loggable is what the log says of err. What a policy's failure says to the
// client may show values of the object, so the log only says where it failed.
func loggable(err error) string {
	var eval *engine.EvalError
	var status *statusError // ours, such as that of a TokenReview
	if errors.As(err, &eval) && !errors.As(err, &status) {
		return fmt.Sprintf("%v: cannot evaluate %s of policy %q; the client was told why", eval.Pos, eval.Role, eval.Policy)
	}
	var denied *deniedError
	var strict *strictError
	if errors.As(err, &strict) {
		return strict.Error()
	}
	if errors.As(err, &denied) {
		return fmt.Sprintf("denied by policy %q; the client was told why", denied.policy)
	}
	var conversion *convert.Error
	if errors.As(err, &conversion) {
		return fmt.Sprintf("%v: cannot convert %s by policy %q; the client was told why", conversion.Pos, conversion.Path, conversion.Policy)
	}
	return err.Error()
}

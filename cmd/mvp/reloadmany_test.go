package main

import (
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/mixed-version-proxy/mvp/examples/demo"
)

// manyPolicies is how many policies the benchmark reloads.
const manyPolicies = 1000

// manyFiles are a thousand policies, of every form, in generation n: conversions by rules,
// conversions by programs, denies, warnings and preferences.
func manyFiles(n int) map[string]string {
	files := maps.Clone(constantFiles)
	maps.Copy(files, numbered(n))
	for i := len(files) / 2; i < manyPolicies; i++ {
		name := fmt.Sprintf("40-%04d", i)
		switch i % 5 {
		case 0:
			files[name+".yaml"] = fmt.Sprintf(`apiVersion: mvp.k8s.io/v1
kind: TransformationRules
metadata: {name: many-%d}
spec:
  apiMigrationRules:
    - apiGroup: acme.io
      resource: rules%d
      fromVersion: v1beta1
      toVersion: v1
      transformations:
        - {action: rename, path: spec.old, targetPath: spec.new%d, type: integer}
        - {action: modify, path: spec.mode, matchValue: a, replaceValue: b}
`, i, i, n)
		case 1:
			files[name+".convert.cel"] = fmt.Sprintf(`{'resource': 'programs%d', 'from': 'acme.io/v1beta1', 'to': 'acme.io/v1'}`, i)
			files[name+".request.jq"] = fmt.Sprintf(`rename(.spec.old; .spec.new%d) | if .spec.mode == "a" then .spec.mode = "b" else . end`, n)
			files[name+".response.jq"] = fmt.Sprintf(`rename(.spec.new%d; .spec.old) | if .spec.mode == "b" then .spec.mode = "a" else . end`, n)
		case 2:
			files[name+".match.cel"] = fmt.Sprintf(`request.resource == 'denied%d' && request.userAgent.startsWith('kubectl/')`, i)
			files[name+".deny.cel"] = fmt.Sprintf(`object.?spec.?replicas.orValue(1) > %d ? 'too many' : ''`, n)
		case 3:
			files[name+".match.cel"] = fmt.Sprintf(`request.resource == 'warned%d' && request.verb in ['create', 'update']`, i)
			files[name+".warn.cel"] = fmt.Sprintf(`'number %d'`, n)
		case 4:
			files[name+".match.cel"] = fmt.Sprintf(`request.resource == 'routed%d'`, i)
			files[name+".route.cel"] = fmt.Sprintf(`upstream.version.minor >= %d`, 20+n%10)
		}
	}
	return files
}

// BenchmarkReload is from the swap of a ConfigMap volume with a thousand policies, all of
// them other ones, to the first request that is decided by the new ones, while clients send
// requests. It fails when one of these fails, or sees half a set.
func BenchmarkReload(b *testing.B) {
	plane, err := demo.Start(demo.Options{})
	must(b, err)
	b.Cleanup(func() { must(b, plane.Close()) })
	volume := &configMapVolume{b, b.TempDir(), manyFiles}
	volume.lay(0)
	volume.swap(0)
	r := &reloading{serving: startServing(b, plane, volume.dir), wrong: make(chan string, 20)}
	if got := len(r.policies.Current().Policies()); got != manyPolicies {
		b.Fatalf("%d policies, want %d", got, manyPolicies)
	}
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for range reloadClients {
		clients.Go(func() { r.client(stop, true) })
	}
	var longest time.Duration
	n := 0
	for b.Loop() {
		n++
		b.StopTimer()
		volume.lay(n)
		b.StartTimer()
		start := time.Now()
		volume.swap(n)
		r.waitFor("the new policies are live", func() bool { return r.live(n) })
		longest = max(longest, time.Since(start))
		b.StopTimer()
		volume.drop(n - 1)
		b.StartTimer()
	}
	close(stop)
	clients.Wait()
	close(r.wrong)
	for what := range r.wrong {
		b.Error(what)
	}
	b.ReportMetric(float64(longest.Milliseconds()), "ms-longest")
	b.ReportMetric(float64(r.requests.Load())/float64(n), "requests/reload")
	if code, _, _, err := r.get(warnedPath); err != nil || code != http.StatusOK {
		b.Errorf("GET configmaps: %d %v", code, err)
	}
}

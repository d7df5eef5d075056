package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// written is what was measured of the writes of one route.
type written struct{ creates, updates times }

// writes measures creates and updates, one after the other, and what field validation
// has to do with it.
func (s *scene) writes(ctx context.Context, o options, out io.Writer) error {
	all := make([]written, len(s.routes))
	for n := range o.writes {
		for k := range s.routes {
			i := (k + n) % len(s.routes)
			if err := s.routes[i].writeOnce(ctx, fmt.Sprintf("w-%d-%05d", i, n), &all[i]); err != nil {
				return err
			}
		}
	}
	rows := [][]string{{"write", "create median", "p99", "added", "update median", "p99", "added"}}
	for i, r := range s.routes {
		w, base := &all[i], &all[r.direct]
		rows = append(rows, []string{
			r.name, millis(w.creates.median()), millis(w.creates.quantile(.99)), millis(w.creates.minus(base.creates).median()),
			millis(w.updates.median()), millis(w.updates.quantile(.99)), millis(w.updates.minus(base.updates).median()),
		})
	}
	title := fmt.Sprintf("Creates and updates of objects of 4 KB, %d each; added: median of the differences to the same write direct; %s",
		o.writes, machine())
	if err := table(out, title, rows...); err != nil {
		return err
	}
	return s.validations(ctx, o, out)
}

// writeOnce creates an object, updates it, and deletes it, which is not measured.
func (r *route) writeOnce(ctx context.Context, name string, into *written) error {
	version, took, err := r.write(ctx, http.MethodPost, r.path(), r.object(name, "new", ""))
	if err != nil {
		return err
	}
	into.creates = append(into.creates, took)
	_, took, err = r.write(ctx, http.MethodPut, r.path()+"/"+name, r.object(name, "changed", version))
	if err != nil {
		return err
	}
	into.updates = append(into.updates, took)
	_, err = r.do(ctx, http.MethodDelete, r.path()+"/"+name, nil)
	return err
}

// write sends an object and returns the resourceVersion that it got.
func (r *route) write(ctx context.Context, method, path string, object []byte) (version string, took time.Duration, err error) {
	var answer []byte
	took, err = r.transfer(ctx, method, path, object, func(in io.Reader) (err error) {
		answer, err = io.ReadAll(in)
		return err
	})
	if err != nil {
		return "", 0, err
	}
	var written struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(answer, &written); err != nil {
		return "", 0, fmt.Errorf("%s: cannot read the answer: %w", r.name, err)
	}
	return written.Metadata.ResourceVersion, took, nil
}

// validations measures creates with each kind of field validation.
func (s *scene) validations(ctx context.Context, o options, out io.Writer) error {
	modes := []string{"Ignore", "Warn", "Strict"}
	ways := []int{direct, byRules, byPrograms}
	took := map[int]map[string]times{}
	for n := range o.writes {
		for _, i := range ways {
			if took[i] == nil {
				took[i] = map[string]times{}
			}
			for k := range modes {
				mode, r := modes[(k+n)%len(modes)], s.routes[i]
				name := fmt.Sprintf("v-%d-%d-%05d", i, k, n)
				_, d, err := r.write(ctx, http.MethodPost, r.path()+"?fieldValidation="+mode, r.object(name, "new", ""))
				if err != nil {
					return err
				}
				took[i][mode] = append(took[i][mode], d)
				if _, err := r.do(ctx, http.MethodDelete, r.path()+"/"+name, nil); err != nil {
					return err
				}
			}
		}
	}
	rows := [][]string{append([]string{"create with fieldValidation"}, modes...)}
	rows[0] = append(rows[0], "Strict adds to Ignore")
	for _, i := range ways {
		row := []string{s.routes[i].name}
		for _, mode := range modes {
			row = append(row, millis(took[i][mode].median()))
		}
		rows = append(rows, append(row, millis(took[i]["Strict"].minus(took[i]["Ignore"]).median())))
	}
	return table(out, fmt.Sprintf("Field validation, medians of %d creates; %s", o.writes, machine()), rows...)
}

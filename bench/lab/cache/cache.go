// Package cache knows where the lab keeps what is dear to make again: built
// servers and fetched clients. It does not know how to make them.
package cache

import (
	"fmt"
	"os"
	"path/filepath"
)

// Dir returns a directory below mvp-lab in the user's cache directory, and
// creates it when it is missing.
func Dir(elem ...string) (string, error) {
	root, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cannot find the user's cache directory, set HOME or XDG_CACHE_HOME: %w", err)
	}
	dir := filepath.Join(append([]string{root, "mvp-lab"}, elem...)...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("cannot create cache directory: %w", err)
	}
	return dir, nil
}

// WriteFile writes a file so that others see the old content or the new one,
// never a part.
func WriteFile(path string, data []byte, perm os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer func() { _ = os.Remove(f.Name()) }()

	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(perm)
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

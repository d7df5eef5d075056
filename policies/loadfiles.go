package policies

import "github.com/mixed-version-proxy/mvp/engine"

// LoadFiles is Load with files that have been read, beside those of opts.Dirs.
func LoadFiles(files []File, opts Options) (*engine.Set, error) {
	found, errs := readAll(opts.Dirs)
	set, errs := compile(append(found, files...), opts, errs)
	if len(errs) > 0 {
		return nil, errs.Err()
	}
	return set, nil
}

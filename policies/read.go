package policies

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mixed-version-proxy/mvp/engine/source"
)

// Bounds of what is read.
const (
	// MaxFileBytes is the size of one policy file: that of a ConfigMap, 1 MiB. A
	// larger file is refused before a byte of it is read.
	MaxFileBytes = 1 << 20

	// maxFiles is how many policy files there may be in all. At about 10 µs to
	// read a small one, a poll that finds nothing new takes some 0.5 s.
	maxFiles = 50_000

	// maxTotalBytes is the size of all policy files together.
	maxTotalBytes = 256 << 20
)

// readAll returns the policy files in dirs, each once, sorted by name within
// its directory. What cannot be read is a mistake.
func readAll(dirs []string) ([]File, source.Errors) {
	r := reader{seen: map[string]bool{}}
	for _, dir := range dirs {
		r.dir(filepath.Clean(dir))
	}
	return r.files, r.errs
}

// reader collects policy files.
type reader struct {
	files []File
	seen  map[string]bool // names of files and directories, so that each is read once
	bytes int
	errs  source.Errors
}

func (r *reader) fail(name, format string, args ...any) {
	r.errs = append(r.errs, &source.Error{Pos: source.Pos{File: name}, Msg: fmt.Sprintf(format, args...)})
}

// dir reads the files of a directory, or the one file that is named instead.
func (r *reader) dir(name string) {
	if r.seen[name] {
		return
	}
	info, err := os.Stat(name)
	if err != nil {
		r.fail(name, "cannot read policies: %v", cause(err))
		return
	}
	if !info.IsDir() {
		r.file(name)
		return
	}
	r.seen[name] = true
	entries, err := os.ReadDir(name)
	if err != nil {
		r.fail(name, "cannot list the policy directory: %v", cause(err))
		return
	}
	for _, entry := range entries {
		if !ignored(entry.Name()) {
			r.entry(filepath.Join(name, entry.Name()))
		}
	}
}

// entry reads what a policy directory lists: a file, or a link to one, as in a
// ConfigMap volume.
func (r *reader) entry(name string) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !isLink(name):
		// It went away after it was listed.
	case err != nil:
		r.fail(name, "cannot read the policy file: %v", cause(err))
	case info.IsDir():
		r.fail(name, "a directory in a policy directory is not read, which is flat: move its files up, or name it as a policy directory of its own")
	default:
		r.file(name)
	}
}

// isLink reports whether name is a symbolic link: one that leads nowhere is a
// mistake, not a file that went away.
func isLink(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// file reads one policy file.
func (r *reader) file(name string) {
	if r.seen[name] {
		return
	}
	r.seen[name] = true
	if len(r.files) == maxFiles {
		r.fail(name, "there are more than %d policy files", maxFiles)
		return
	}
	if len(r.files) > maxFiles {
		return
	}
	data, err := readFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return // it went away since the Stat
	}
	if err != nil {
		r.fail(name, "cannot read the policy file: %v", cause(err))
		return
	}
	if r.bytes += len(data); r.bytes > maxTotalBytes {
		r.fail(name, "the policy files have more than %d MiB together", maxTotalBytes>>20)
		return
	}
	r.files = append(r.files, File{Name: name, Data: data})
}

// readFile returns the content of a regular file of at most MaxFileBytes. It
// opens nothing else: to open a named pipe would wait for its writer.
func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	if info.Size() > MaxFileBytes {
		return nil, tooLarge(info.Size())
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err == nil && len(data) > MaxFileBytes {
		err = tooLarge(int64(len(data)))
	}
	return data, err
}

func tooLarge(size int64) error {
	return fmt.Errorf("it has %d bytes, more than the %d a policy file may have: split it", size, MaxFileBytes)
}

// cause returns what the system said, without the path, which the message's
// place has.
func cause(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

// ignored reports whether an entry of a policy directory is not a policy file:
// hidden (also the "..data" of a ConfigMap volume, whose files are read through
// their links), left by an editor, a test case, documentation, or what file
// systems put there.
func ignored(name string) bool {
	switch name {
	case "lost+found", "testdata",
		"4913": // which vim creates for a moment to see whether it may
		return true
	}
	if strings.HasPrefix(name, ".") {
		return true
	}
	for _, suffix := range []string{"~", ".swp", ".test.yaml", ".test.yml", "_test.txtar", ".md"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// snapshot is what was read at one time.
type snapshot struct {
	files []File
	errs  source.Errors
	hash  string // of the names and contents, and of what could not be read
}

// takeSnapshot reads dirs once. A file that is being written may be half there.
func takeSnapshot(dirs []string) snapshot {
	files, errs := readAll(dirs)
	h := sha256.New()
	for _, file := range files {
		fmt.Fprintf(h, "%q %d\n", file.Name, len(file.Data))
		h.Write(file.Data)
	}
	for _, err := range errs {
		fmt.Fprintf(h, "error %q\n", err.Error())
	}
	return snapshot{files: files, errs: errs, hash: hex.EncodeToString(h.Sum(nil))}
}

// maxReads bounds how often files that keep changing are read again.
const maxReads = 5

// settled reads dirs until two readings are the same, beginning with snap: so the files
// of one reading belong together, though they were read one by one. ok is false when
// they kept changing: what was read last may then be half of one state and half of
// another.
func (snap snapshot) settled(dirs []string) (same snapshot, ok bool) {
	for range maxReads {
		again := takeSnapshot(dirs)
		if again.hash == snap.hash {
			return again, true
		}
		snap = again
	}
	return snap, false
}

// missing returns the first of names that snap has no file for.
func (snap snapshot) missing(names []string) (name string, ok bool) {
	have := make(map[string]bool, len(snap.files))
	for _, file := range snap.files {
		have[file.Name] = true
	}
	for _, name := range names {
		if !have[name] {
			return name, true
		}
	}
	return "", false
}

func (snap snapshot) names() []string {
	names := make([]string, len(snap.files))
	for i, file := range snap.files {
		names[i] = file.Name
	}
	return names
}

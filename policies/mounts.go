package policies

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// warnMounted warns of policy files that are mounted one by one, as a ConfigMap
// with subPath is: the mount is of the file that was there first, so an edit
// never shows, and nothing on this side can tell.
func warnMounted(names []string, log *slog.Logger) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return // not Linux
	}
	for _, name := range mountedFiles(string(mounts), names) {
		log.Warn("the policy file is a mount of its own (subPath): it will never change; mount its directory", "file", name)
	}
}

// unescapeMount undoes what the kernel does to white space in mountinfo.
var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// mountedFiles returns those of names that mounts, in the form of proc(5)
// mountinfo, has as mount points.
func mountedFiles(mounts string, names []string) []string {
	points := map[string]bool{}
	for line := range strings.Lines(mounts) {
		const mountPoint = 4 // the field of that number, from 0
		if fields := strings.Fields(line); len(fields) > mountPoint {
			points[unescapeMount.Replace(fields[mountPoint])] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		absolute, err := filepath.Abs(name)
		return err != nil || !points[absolute]
	})
}

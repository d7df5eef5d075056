package policies

import (
	"slices"
	"testing"
)

func TestMountedFiles(t *testing.T) {
	const mounts = `22 28 0:21 / /proc rw,nosuid - proc proc rw
31 28 8:1 /pods/1/volumes/policies /etc/mvp/policies ro,relatime - ext4 /dev/sda1 rw
32 28 8:1 /pods/1/subpath/rules.yaml /etc/mvp/one\040file/rules.yaml ro,relatime - ext4 /dev/sda1 rw
`
	names := []string{"/etc/mvp/policies/a.yaml", "/etc/mvp/one file/rules.yaml"}
	if got, want := mountedFiles(mounts, names), names[1:]; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

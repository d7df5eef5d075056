package policies

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// inNamespace is set in the environment of a test that runs in mount and user namespaces
// of its own, where it may mount.
const inNamespace = "MVP_TEST_IN_NAMESPACE"

// againInNamespace runs the test that calls it once more, in such namespaces. Where the
// system gives none, there is nothing to mount on it, and the log of the test says so.
func againInNamespace(t *testing.T) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=3m")
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		t.Errorf("with mounts of its own: %v\n%s", err, out)
	default:
		t.Logf("no namespace of the test's own: %v", err)
	}
}

// mount mounts a file system, or, of kind "bind", what is there already.
func mount(t *testing.T, source, target, kind string) {
	t.Helper()
	must(t, tryMount(t, source, target, kind, ""))
}

// tryMount is mount where it may be that the system does not allow that kind.
func tryMount(t *testing.T, source, target, kind, options string) error {
	t.Helper()
	var flags uintptr
	if kind == "bind" {
		flags = syscall.MS_BIND
	}
	err := syscall.Mount(source, target, kind, flags, options)
	if err == nil {
		t.Cleanup(func() { must(t, syscall.Unmount(target, syscall.MNT_DETACH)) })
	}
	return err
}

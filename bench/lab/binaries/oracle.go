package binaries

import (
	"context"
	"errors"
)

// Oracle returns the path of the program that converts objects of the Kubernetes API
// with the code of kube-apiserver v, and builds it when it is not there, which takes
// minutes. It can be built in the repository only, for the versions that have a
// module file in bench/oracle/modules/oracle.
func Oracle(ctx context.Context, v Version, logf Logf) (string, error) {
	src := source{
		name:    "oracle-" + v.String(),
		dir:     "bench/oracle/modules/oracle",
		modFile: v.String() + ".mod",
		ldflags: "-s -w",
		generate: func(context.Context, string) error {
			return errors.New("cannot build the oracle outside of the repository, which has its source in bench/oracle/modules/oracle")
		},
	}
	if v.Minor >= newFuzzers {
		src.tags = "randfill"
	}
	return build(ctx, src, logf)
}

// newFuzzers is the first minor version of Kubernetes whose fuzzers are written for
// sigs.k8s.io/randfill.
const newFuzzers = 33

// Command etcd is the etcd server of the version in go.mod, built for the lab.
// See bench/lab/README.md.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}

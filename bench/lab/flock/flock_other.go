//go:build !unix || solaris || aix

package flock

import (
	"errors"
	"os"
)

func tryLock(*os.File, bool) (bool, error) {
	return false, errors.New("the lab needs a system with flock, such as Linux or macOS")
}

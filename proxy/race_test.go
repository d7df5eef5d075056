//go:build race

package proxy_test

// raceDetector says that memory is not what it is otherwise.
const raceDetector = true

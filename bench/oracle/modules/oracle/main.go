// Command oracle converts and defaults objects of the Kubernetes API with the code
// of kube-apiserver itself, that of the release which its module requires, and makes
// random ones with that code's own fuzzers.
//
// It reads requests from its standard input and answers each on its standard output
// before it reads the next. A request is a line of words, in some followed by lines
// of JSON objects; an answer is a line for each object, in the same order. An object
// that cannot be had is answered by a line of an exclamation mark and the reason.
//
//	list
//	    All apiVersion and kind that it knows, a line each, and an empty line.
//	client FROM KIND TO SEED N
//	    N pairs of lines: an object of apiVersion FROM as a client may send it, and
//	    what a client that speaks TO reads once the server has it.
//	server FROM KIND TO SEED N
//	    N pairs of lines: an object of FROM as a server answers, with every default,
//	    and the same object as a client that speaks TO reads it.
//	store FROM KIND TO N
//	    N objects of FROM follow, as clients send them. The answer is what a client
//	    that speaks TO reads once the server has them.
//	read FROM KIND TO N
//	    N objects of FROM follow, as a server has them, which may be a newer one with
//	    more fields. The answer is what a client that speaks TO reads.
//
// The same SEED makes the same objects.
package main

import (
	"bufio"
	"fmt"
	"os"
)

func main() {
	in, out := bufio.NewReaderSize(os.Stdin, 1<<20), bufio.NewWriterSize(os.Stdout, 1<<20)
	if err := serve(in, out); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

// The module files of the releases stand beside this one, which only says where the
// module is: go build -modfile 1.32.13.mod.
module oracle

go 1.26.0

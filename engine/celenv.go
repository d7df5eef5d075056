package engine

import (
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"k8s.io/apiserver/pkg/cel/library"
)

// Limits of one expression. They bound what a policy file can cost at load, and
// what one expression can cost one request.
const (
	// MaxExpressionBytes is checked before an expression is parsed. A parse of so
	// much takes well under a second; it is a list of some thousand names.
	MaxExpressionBytes = 64 << 10

	// MaxExpressionCost is in CEL's cost units: some tens of milliseconds in all
	// (BenchmarkPredicateAtLimit), a tenth of what kube-apiserver allows a policy.
	// It applies to expressions that loop, compile a regular expression per request,
	// or replace or join texts; the others do a bounded amount of work for each byte
	// of the request (see also guards), and counting would cost eight times what
	// they do.
	MaxExpressionCost = 100_000

	// maxRangeSize bounds lists.range, whose result takes memory at once: 80 KB.
	maxRangeSize = 10_000

	// maxPrecision bounds the digits that '%.9f'.format() writes.
	maxPrecision = 100
)

// environments are the sets of variables that an expression may see.
type environments struct {
	constant *cel.Env // none
	request  *cel.Env // request, user, object, cluster
	route    *cel.Env // and upstream
}

// noPlace is the number of no expression; CEL's count from 1.
const noPlace = -1

// celEnvironments makes the environments once per process.
var celEnvironments = sync.OnceValues(func() (*environments, error) {
	// CEL has one "no such overload" error for all programs and notes in it where
	// it was first met: a wrong place later, and a data race. This takes the note.
	types.LabelErrNode(noPlace, types.NoSuchOverloadErr())
	unguarded, err := cel.NewCustomEnv(libraries()...)
	if err != nil {
		return nil, err
	}
	guards, err := guardedFunctions(unguarded)
	if err != nil {
		return nil, err
	}
	base, err := unguarded.Extend(guards...)
	if err != nil {
		return nil, err
	}
	request, err := base.Extend(append(declarations(requestVariables), cel.HomogeneousAggregateLiterals())...)
	if err != nil {
		return nil, err
	}
	route, err := request.Extend(append(declarations(upstreamVariables), servesFunction())...)
	if err != nil {
		return nil, err
	}
	return &environments{constant: base, request: request, route: route}, nil
})

// libraries are the functions and settings of a ValidatingAdmissionPolicy in
// Kubernetes 1.37, without those that need an authorizer. The versions are
// pinned: a newer cel-go does not change what a policy may say.
func libraries() []cel.EnvOption {
	return []cel.EnvOption{
		cel.StdLib(),
		cel.EagerlyValidateDeclarations(true),
		cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(cel.OptionalTypesVersion(2)),
		cel.ASTValidators(
			cel.ValidateDurationLiterals(),
			cel.ValidateTimestampLiterals(),
			cel.ValidateRegexLiterals(),
		),
		cel.ParserExpressionSizeLimit(MaxExpressionBytes),
		ext.Strings(ext.StringsVersion(2), ext.StringsMaxPrecision(maxPrecision)),
		ext.Sets(ext.SetsVersion(0)),
		ext.Lists(ext.ListsVersion(3), ext.ListsMaxRangeSize(maxRangeSize)),
		ext.TwoVarComprehensions(ext.TwoVarComprehensionsVersion(0)),
		library.URLs(),
		library.Regex(),
		library.Lists(library.ListsVersion(1)),
		library.Quantity(),
		library.IP(),
		library.CIDR(),
		library.Format(),
		library.SemverLib(library.SemverVersion(1)),
		shareFunction(),
	}
}

// servesFunction declares upstream.serves(groupVersion, resource).
func servesFunction() cel.EnvOption {
	return cel.Function("serves", cel.MemberOverload("upstream_serves_string_string",
		[]*cel.Type{upstreamType, cel.StringType, cel.StringType}, cel.BoolType,
		cel.FunctionBinding(func(args ...ref.Val) ref.Val {
			u, ok := args[0].(*upstreamValue)
			groupVersion, ok1 := args[1].(types.String)
			resource, ok2 := args[2].(types.String)
			if !ok || !ok1 || !ok2 {
				return types.NoSuchOverloadErr()
			}
			return types.Bool(u.Serves != nil && u.Serves(string(groupVersion), string(resource)))
		})))
}

// variable is a name that expressions may use.
type variable struct {
	name string
	typ  *cel.Type
}

// requestVariables are known to every expression. Their order is that of the
// index constants in vars.go.
var requestVariables = []variable{
	{"request.method", cel.StringType},
	{"request.path", cel.StringType},
	{"request.verb", cel.StringType},
	{"request.group", cel.StringType},
	{"request.version", cel.StringType},
	{"request.resource", cel.StringType},
	{"request.subresource", cel.StringType},
	{"request.namespace", cel.StringType},
	{"request.name", cel.StringType},
	{"request.userAgent", cel.StringType},
	{"request.contentType", cel.StringType},
	{"request.fieldManager", cel.StringType},
	{"request.query", cel.MapType(cel.StringType, cel.ListType(cel.StringType))},
	{"request.dryRun", cel.BoolType},
	{"request.caller", cel.StringType},
	{"user.name", cel.StringType},
	{"user.uid", cel.StringType},
	{"user.groups", cel.ListType(cel.StringType)},
	{"user.extra", cel.MapType(cel.StringType, cel.ListType(cel.StringType))},
	{"object", cel.DynType},
	{"cluster.mixed", cel.BoolType},
	{"cluster.minVersion", cel.StringType},
	{"cluster.maxVersion", cel.StringType},
}

// upstreamVariables are known to a route.
var upstreamVariables = []variable{
	{"upstream", upstreamType},
	{"upstream.name", cel.StringType},
	{"upstream.version", cel.StringType},
	{"upstream.version.major", cel.IntType},
	{"upstream.version.minor", cel.IntType},
	{"upstream.version.patch", cel.IntType},
	{"upstream.emulation", cel.StringType},
	{"upstream.emulation.major", cel.IntType},
	{"upstream.emulation.minor", cel.IntType},
	{"upstream.healthy", cel.BoolType},
	{"upstream.inflight", cel.IntType},
	{"upstream.latency", cel.DurationType},
}

func declarations(variables []variable) []cel.EnvOption {
	options := make([]cel.EnvOption, len(variables))
	for i, v := range variables {
		options[i] = cel.Variable(v.name, v.typ)
	}
	return options
}

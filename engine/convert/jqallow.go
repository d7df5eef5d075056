package convert

import "strings"

// allowedFuncs are the jq functions that a program may use, by name and arity.
// All are bounded by what they are given: the time of those written in jq by the
// deadline, which is checked between operations, that of the others by being
// about proportional to their input, where need be through a guard. What is not
// here is refused, so that a function new in gojq is until someone has looked at
// it. The same object always gives the same result: there is no clock.
var allowedFuncs = funcSet(`
	empty/0 error/0 error/1 not/0 select/1 path/1 type/0 length/0 utf8bytelength/0
	keys/0 has/1 in/1 contains/1 inside/1 add/0 add/1 any/0 any/1 any/2 all/0 all/1 all/2
	map/1 map_values/1 to_entries/0 from_entries/0 with_entries/1 walk/1 recurse/0
	getpath/1 setpath/2 del/1 delpaths/1 paths/0 paths/1 pick/1
	first/0 first/1 last/0 last/1 nth/1 nth/2 limit/2 skip/2 isempty/1
	arrays/0 objects/0 iterables/0 booleans/0 numbers/0 strings/0 nulls/0 values/0 scalars/0
	tonumber/0 tostring/0 toboolean/0 tojson/0 fromjson/0
	startswith/1 endswith/1 ltrimstr/1 rtrimstr/1 trimstr/1 ltrim/0 rtrim/0 trim/0
	split/1 join/1 ascii_downcase/0 ascii_upcase/0 explode/0 implode/0
	reverse/0 sort/0 sort_by/1 group_by/1 unique/0 unique_by/1 min/0 max/0 min_by/1 max_by/1
	flatten/0 flatten/1 bsearch/1 INDEX/1 INDEX/2 IN/1 IN/2
	floor/0 ceil/0 round/0 trunc/0 abs/0 fabs/0
	fromdate/0 todate/0 fromdateiso8601/0 todateiso8601/0
`)

func funcSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, name := range strings.Fields(text) {
		set[name] = true
	}
	for _, name := range preludeFuncs {
		set[name] = true
	}
	return set
}

// guardedArguments and guardedInputs are the functions whose first argument, or
// input, goes through a guard.
var (
	guardedArguments = map[string]string{
		"setpath/2": guardPath, "getpath/1": guardPath, "nth/1": guardIndex,
		"contains/1": guardSmall, "inside/1": guardSmall,
	}
	guardedInputs = map[string]string{
		"contains/1": guardSmall, "inside/1": guardSmall,
		"sort/0": guardSorted, "sort_by/1": guardSorted, "group_by/1": guardSorted,
		"unique/0": guardSorted, "unique_by/1": guardSorted,
	}
)

// jqFormats are the string formats there are: gojq has no @base32.
var jqFormats = []string{
	"@text", "@json", "@html", "@uri", "@urid", "@csv", "@tsv", "@sh",
	"@base64", "@base64d",
}

// refusedFuncs says of well-known functions why a program may not use them.
var refusedFuncs = func() map[string]string {
	refused := map[string]string{}
	for reason, names := range map[string]string{
		"it can run without end; use the object's own arrays, to_entries, map or add": `
			range repeat while until recurse recurse_down combinations`,
		"a regular expression cannot be interrupted; use startswith, endswith, split, ltrimstr or contains": `
			test match capture scan split splits sub gsub`,
		"a conversion has one input, the object": `
			input inputs input_line_number input_filename`,
		"a conversion has no environment": `
			env $ENV modulemeta get_search_list builtins`,
		"a conversion has no output but the object": `
			debug stderr halt halt_error`,
		"the same object must always convert alike": `
			now localtime strflocaltime`,
		"its format cannot be bounded; use fromdate and todate": `
			strftime strptime gmtime mktime dateadd datesub date`,
		"it takes far longer than its input is long": `
			index rindex indices transpose ascii`,
		"its result is no JSON number": `
			infinite nan`,
		"it is made for streams": `
			tostream fromstream truncate_stream limit_stream`,
	} {
		for _, name := range strings.Fields(names) {
			refused[name] = reason
		}
	}
	return refused
}()

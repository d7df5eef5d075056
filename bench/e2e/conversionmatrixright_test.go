package e2e

// Why MVP's answer differs from that of a server of both versions, and is right.
const (
	serversColumns = "the columns and cells of a table are the server's version's, which works them out"
	notAccepted    = "what has no form that the client takes is told in JSON, and that a conversion is the reason"
	ownWords       = "what cannot be read, and so not converted, is told in words of MVP's own, with the resource in the details; the code and the reason are the server's"
	namesServers   = "text that a message quotes is taken for data: the values of an enumeration, a body, a path of a scale are told as the server has them"
	serversSchema  = "which values a field may have only the server knows, in its version: what is right there after the conversion is stored, and what is wrong is told of it"
	serversScale   = "a Scale is not converted: what is wrong with it is told of the server's field"
	programFails   = "a program that fails on a body is a failure of the policy, 500, and tells of no field"
	programNames   = "what a program renames is not known: messages have the server's names, and a field of the server's version is none of the client's mistakes"
	programSelects = "what a program does to labels and fields is not known: a selector goes to the server as it is, or is refused where a stage is about the label alone"
	programLeaves  = "a program does what it says to values that no schema has, too: it leaves null where it was, and goes through an object as through a list"
	storedOwners   = "conflicts are told of the version that is stored, the only one that managers write in"
	sameValue      = "the server has this value already, so nobody has changed it"
	noAnnotation   = "the annotation is not stored in v1: nobody owns it there"
	anyApplication = "kube-apiserver's router takes no application/* for its own kinds, but does for custom resources; MVP takes it for both"
	otherKind      = "a body is held against the kind that is asked for before its own is looked at, so what is refused is warned of, too"
	wrongVersion   = "a patch that says another version is refused before the server sees it, as a body that does is"
)

var gadgetDifferences = []difference{
	{"*table*", "", "*columnDefinitions.*", serversColumns},
	{"*table*", "", "*cells.*", serversColumns},

	{"* as protobuf", "", "contentType", notAccepted},
	{"* as protobuf", "", "body.*", notAccepted},
	{"* as text", "", "body.*", notAccepted},
	{"* as text", "", "indented", notAccepted},
	{"* as protobuf or json", "", "contentType", notAccepted},
	{"watch in YAML", "", "contentType", notAccepted},
	{"watch in YAML", "", "events", notAccepted},
	{"watch in protobuf", "", "contentType", notAccepted},
	{"watch in protobuf", "", "events", notAccepted},

	{"create of null", "", "body.[dm]e*", ownWords},
	{"create of a list", "", "body.[dm]e*", ownWords},
	{"create of broken *", "", "body.[dm]e*", ownWords},
	{"create of two objects", "", "body.[dm]e*", ownWords},
	{"create of another version", "", "body.details", ownWords},
	{"create of another group", "", "body.details", ownWords},
	{"* text", "", "body.[dm]e*", ownWords},
	{"merge patch that is *", "", "body.[dm]e*", ownWords},
	{"patch of JSON", "", "body.[dm]e*", ownWords},
	{"JSON patch that is *", "", "body.[dm]e*", ownWords},
	{"JSON patch test *", "programs", "body.[dm]e*", ownWords},
	{"JSON patch test of the other version's stage", "rules", "body.[dm]e*", ownWords},
	{"JSON patch with an unknown operation", "programs", "body.[dm]e*", ownWords},
	{"JSON patch of an endpoint that is not there", "programs", "body.[dm]e*", ownWords},
	{"apply of broken YAML", "", "body.[dm]e*", ownWords},
	{"apply of another version", "", "body.[dm]e*", ownWords},
	{"list by field spec.requestTimeoutSeconds=30", "rules", "body.[dm]e*", ownWords},
	{"strategic merge patch*", "programs", "body.[dm]e*", ownWords},
	{"merge patch of another version", "", "*", wrongVersion},

	{"*a wrong mode", "", "body.*message", namesServers},
	{"*several mistakes", "", "body.*message", namesServers},
	{"create of wrong as *", "", "body.*message", namesServers},
	{"create without a kind", "", "body.message", namesServers},
	{"delete with a Gadget", "", "body.message", namesServers},
	{"get of scale without replicas", "", "body.*message", namesServers},
	{"create a spec that is a list", "rules", "body.*message", namesServers},
	{"scale update below zero", "", "body.*", serversScale},

	{"*the other version's mode", "", "*", serversSchema},
	{"*a number*", "", "*", serversSchema},
	{"*with a wrong type", "", "*", serversSchema},
	{"*a wrong timeout", "rules", "body.*", serversSchema},
	{"create a timeout that would change", "rules", "body.*", serversSchema},
	{"create a long timeout", "", "body.*", serversSchema},

	{"*that conflicts*", "", "body.*message", storedOwners},
	{"apply to status", "", "body.*message", storedOwners},
	{"update with the other version's label", "", "*managedFields.*f:metadata*", sameValue},

	{"*a wrong timeout", "programs", "*", programFails},
	{"create a timeout that would change", "programs", "*", programFails},
	{"create a spec that is a list", "programs", "*", programFails},
	{"create a long owner", "programs", "body.*", programNames},
	{"*replica*", "programs", "body.*", programNames},
	{"create an endpoint *", "programs", "body.*", programNames},
	{"*several mistakes", "programs", "body.*", programNames},
	{"create of wrong as *", "programs", "body.*", programNames},
	{"*that conflicts*", "programs", "body.*field", programNames},
	{"apply to status", "programs", "body.*field", programNames},
	{"create no timeout", "programs", "warnings", programLeaves},
	{"create no owner", "programs", "*spec.contact", programLeaves},
	{"create endpoints that are none", "programs", "*", programLeaves},
	{"list by label *", "programs", "*", programSelects},
	{"delete of none", "programs", "*", programSelects},
	{"list by field *", "programs", "*", programSelects},
	{"delete of many by *", "programs", "*", programSelects},
}

var priorityLevelDifferences = []difference{
	{"* as any application", "", "*", anyApplication},
	{"* as text", "", "indented", notAccepted},
	{"* as text", "", "body.*", notAccepted},
	{"watch in YAML", "", "contentType", notAccepted},
	{"watch in YAML", "", "events", notAccepted},
	{"create of broken protobuf", "", "body.[dm]e*", ownWords},
	{"*zero", "", "*f:metadata*", noAnnotation},
	{"JSON patch whose test fails", "", "body.*", ownWords},
	{"create of another kind", "", "body.message", namesServers},
	{"create of another kind", "", "warnings", otherKind},
}

var flowSchemaDifferences = []difference{
	{"* as any application", "", "*", anyApplication},
	{"* as text", "", "indented", notAccepted},
	{"watch in YAML", "", "contentType", notAccepted},
	{"watch in YAML", "", "events", notAccepted},
	{"* as text", "", "body.*", notAccepted},
}

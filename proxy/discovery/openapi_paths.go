package discovery

import (
	"strings"
)

// extensionGVK is where documents say which kind a schema or an operation is of.
const extensionGVK = "x-kubernetes-group-version-kind"

// pathPrefix returns how the paths of a group version begin.
func (k groupKind) pathPrefix() string {
	if k.group == "" {
		return "/api/" + k.version + "/"
	}
	return "/apis/" + k.group + "/" + k.version + "/"
}

// splitPath returns the segments of a path behind the group version and which of
// them names the resource; false for a path of something else.
func (d *derivation) splitPath(path string) (segments []string, resource int, ok bool) {
	rest, ok := strings.CutPrefix(path, d.to.pathPrefix())
	if !ok {
		return nil, 0, false
	}
	segments = strings.Split(rest, "/")
	if len(segments) > 1 && segments[0] == "watch" {
		resource = 1
	}
	// Namespaces are a resource too: their own paths have the parameter {name}.
	if len(segments) > resource+2 && segments[resource] == "namespaces" && segments[resource+1] == "{namespace}" {
		resource += 2
	}
	return segments, resource, true
}

// kindsByResource returns the kind of each resource that has operations. Those on
// subresources may be of other kinds and do not count.
func (d *derivation) kindsByResource(paths map[string]any) map[string]string {
	out := map[string]string{}
	for path, item := range paths {
		segments, i, ok := d.splitPath(path)
		if !ok || len(segments) > i+2 {
			continue
		}
		for _, operation := range asObject(item) {
			kind := readGVK(asObject(operation)[extensionGVK])
			if kind.group == d.to.group && kind.version == d.to.version && kind.kind != "" {
				out[segments[i]] = kind.kind
			}
		}
	}
	return out
}

// convertPaths keeps the paths of converted resources, and of the group version
// itself, under the client's names.
func (d *derivation) convertPaths(root map[string]any) {
	out := map[string]any{}
	for path, item := range asObject(root["paths"]) {
		segments, i, ok := d.splitPath(path)
		if !ok {
			continue
		}
		if from, converted := d.resources[segments[i]]; converted {
			segments[i] = from
		} else if len(segments) > 1 || segments[0] != "" {
			continue
		}
		for _, operation := range asObject(item) {
			d.convertOperation(asObject(operation))
		}
		out[d.from.pathPrefix()+strings.Join(segments, "/")] = item
	}
	root["paths"] = out
}

// convertOperation renames what an operation is called; its kind is renamed with
// all others by rewrite. A group version's operations share a tag "<group>_<version>",
// of which their IDs contain a form without the underscore.
func (d *derivation) convertOperation(operation map[string]any) {
	tags, _ := operation["tags"].([]any)
	for i, t := range tags {
		tag, _ := t.(string)
		group, version, ok := strings.Cut(tag, "_")
		if !ok || version != d.to.version {
			continue
		}
		newGroup := group
		if d.from.group != d.to.group {
			newGroup = tagGroup(d.from.group)
		}
		tags[i] = newGroup + "_" + d.from.version
		if id, ok := operation["operationId"].(string); ok {
			operation["operationId"] = strings.Replace(id,
				title(group)+title(version), title(newGroup)+title(d.from.version), 1)
		}
	}
}

// tagGroup returns a group as tags write it: "flowcontrol.apiserver.k8s.io" is
// flowcontrolApiserver, "myapps.example.com" is myappsExampleCom, core is core.
func tagGroup(group string) string {
	if group == "" {
		return "core"
	}
	parts := strings.Split(strings.TrimSuffix(group, ".k8s.io"), ".")
	for i := 1; i < len(parts); i++ {
		parts[i] = title(parts[i])
	}
	return strings.Join(parts, "")
}

func title(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// readGVK reads one entry of extensionGVK.
func readGVK(v any) groupKind {
	o := asObject(v)
	group, _ := o["group"].(string)
	version, _ := o["version"].(string)
	kind, _ := o["kind"].(string)
	return groupKind{group, version, kind}
}

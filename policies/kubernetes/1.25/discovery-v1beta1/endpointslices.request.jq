# Zone and node have their own fields. v1 has no topology, and does not take what
# is written as deprecatedTopology.
if (.endpoints | type) == "array" then
  .endpoints |= map(
    rename(.topology; .deprecatedTopology)
    | rename(.deprecatedTopology["topology.kubernetes.io/zone"]; .zone)
    | if .nodeName == null and (.deprecatedTopology["kubernetes.io/hostname"] // "") != ""
      then rename(.deprecatedTopology["kubernetes.io/hostname"]; .nodeName)
      elif .nodeName != null and .deprecatedTopology["kubernetes.io/hostname"] == .nodeName
      then del(.deprecatedTopology["kubernetes.io/hostname"])
      else . end
    | if .deprecatedTopology == {} then del(.deprecatedTopology) else . end
  )
else . end

# The way back. The topology names the node unless it names another one.
if (.endpoints | type) == "array" then
  .endpoints |= map(
    rename(.deprecatedTopology; .topology)
    | rename(.zone; .topology["topology.kubernetes.io/zone"])
    | if .nodeName != null and (.topology["kubernetes.io/hostname"] // "") == ""
      then .topology["kubernetes.io/hostname"] = .nodeName
      else . end
  )
else . end

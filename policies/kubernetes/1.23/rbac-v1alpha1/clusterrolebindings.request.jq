# A subject has a group in place of a version. The user * was all users that are
# authenticated.
if (.subjects | type) == "array" then
  .subjects |= map(
    (if (.apiVersion | type) == "string" then .apiVersion | split("/") else [] end) as $parts
    | del(.apiVersion)
    | if .kind == "ServiceAccount" then .
      elif .kind == "User" or .kind == "Group" then .apiGroup = "rbac.authorization.k8s.io"
      elif ($parts | length) == 2 and $parts[0] != "" then .apiGroup = $parts[0]
      else . end
    | if .kind == "User" and .name == "*" then .kind = "Group" | .name = "system:authenticated" else . end
  )
else . end

# The way back. A group that is not known here has no version.
if (.subjects | type) == "array" then
  .subjects |= map(
    (.apiGroup // "") as $group
    | del(.apiGroup)
    | if .kind == "ServiceAccount" and $group == "" then .apiVersion = "v1"
      elif (.kind == "User" or .kind == "Group") and $group == "rbac.authorization.k8s.io" then .apiVersion = $group + "/v1alpha1"
      elif $group != "" then .apiVersion = $group + "/"
      else . end
  )
else . end

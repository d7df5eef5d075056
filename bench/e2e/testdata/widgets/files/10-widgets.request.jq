# What was a string of seconds or grams is an integer in v1.
rename(.spec.legacyTimeout; .spec.timeoutSeconds)
| if .spec.timeoutSeconds != null then .spec.timeoutSeconds |= tointeger else . end
| rename(.spec.count; .spec.replicas)
| mapvalue(.spec.tier; "ephemeral"; "stateless")
| .spec.parts[]? |= (rename(.weight; .grams) | if .grams != null then .grams |= tointeger else . end)
| rename(.status.ready; .status.readyReplicas)

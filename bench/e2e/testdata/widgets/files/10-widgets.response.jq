rename(.spec.timeoutSeconds; .spec.legacyTimeout)
| if .spec.legacyTimeout != null then .spec.legacyTimeout |= tostring else . end
| rename(.spec.replicas; .spec.count)
| mapvalue(.spec.tier; "stateless"; "ephemeral")
| .spec.parts[]? |= (rename(.grams; .weight) | if .weight != null then .weight |= tostring else . end)
| rename(.status.readyReplicas; .status.ready)
| del(.spec.color, .spec.limits)

if .spec.requestTimeoutSeconds != null then
  .spec.timeout = (.spec.requestTimeoutSeconds | tostring)
  | del(.spec.requestTimeoutSeconds)
else . end
| mapvalue(.spec.mode; "stateless"; "ephemeral")
| move(.spec.contact.owner; .spec.owner)
| if .spec.contact == {} then del(.spec.contact) else . end
| move(.spec.scaling.replicas; .spec.replicas)
| if .spec.scaling == {} then del(.spec.scaling) else . end
| if .spec.endpoints then .spec.endpoints |= map(rename(.port; .number)) else . end
| rename(.status.phase; .status.state)
| mapvalue(.metadata.labels.stage; "production"; "prod")

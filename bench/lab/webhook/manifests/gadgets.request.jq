if .spec.timeout != null then
  .spec.requestTimeoutSeconds = (.spec.timeout | tointeger)
  | del(.spec.timeout)
else . end
| mapvalue(.spec.mode; "ephemeral"; "stateless")
| move(.spec.owner; .spec.contact.owner)
| move(.spec.replicas; .spec.scaling.replicas)
| if .spec.endpoints then .spec.endpoints |= map(rename(.number; .port)) else . end
| rename(.status.state; .status.phase)
| mapvalue(.metadata.labels.stage; "prod"; "production")

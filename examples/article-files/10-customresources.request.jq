# legacyTimeout, a string, is requestTimeoutSeconds, an integer, in v1beta1.
if .spec.config.legacyTimeout != null then
  .spec.config.requestTimeoutSeconds = (.spec.config.legacyTimeout | tonumber)
  | del(.spec.config.legacyTimeout)
else . end
# v1beta1 knows "ephemeral" as "stateless".
| if .spec.stateManagement == "ephemeral" then .spec.stateManagement = "stateless" else . end

# The way back: the client gets the string that it wrote, under the old name.
if .spec.config.requestTimeoutSeconds != null then
  .spec.config.legacyTimeout = (.spec.config.requestTimeoutSeconds | tostring)
  | del(.spec.config.requestTimeoutSeconds)
else . end
| if .spec.stateManagement == "stateless" then .spec.stateManagement = "ephemeral" else . end

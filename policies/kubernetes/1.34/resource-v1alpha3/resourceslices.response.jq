# The way back. There is a list of devices always, if only null.
if (.spec.devices | type) == "array" then
  .spec.devices |= map(
    if (.basic.capacity | type) == "object" then .basic.capacity |= map_values(.value) else . end
  )
elif (.spec | type) == "object" then ensure(.spec.devices; null)
else . end

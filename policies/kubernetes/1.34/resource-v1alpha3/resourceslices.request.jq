# A capacity has its quantity as a value.
if (.spec.devices | type) == "array" then
  .spec.devices |= map(
    if (.basic.capacity | type) == "object" then .basic.capacity |= map_values({value: .}) else . end
  )
else . end

# The way back. v1beta1 has a deviceClassName always.
if (.spec.spec.devices.requests | type) == "array" then
  .spec.spec.devices.requests |= map(
    rename(.exactly.deviceClassName; .deviceClassName)
    | rename(.exactly.selectors; .selectors)
    | rename(.exactly.allocationMode; .allocationMode)
    | rename(.exactly.count; .count)
    | rename(.exactly.adminAccess; .adminAccess)
    | rename(.exactly.tolerations; .tolerations)
    | rename(.exactly.capacity; .capacity)
    | rename(.exactly.derivedAttributes; .derivedAttributes)
    | del(.exactly)
    | ensure(.deviceClassName; "")
  )
else . end

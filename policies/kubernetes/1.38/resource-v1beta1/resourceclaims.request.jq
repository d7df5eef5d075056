# A request for one kind of device has its fields under exactly. One that has
# alternatives (firstAvailable) has none of them; clients send them empty or null.
if (.spec.devices.requests | type) == "array" then
  .spec.devices.requests |= map(
    del(.deviceClassName | select(. == null or . == ""))
    | del(.selectors | select(. == null))
    | del(.allocationMode | select(. == null or . == ""))
    | del(.count | select(. == null or . == 0))
    | del(.adminAccess | select(. == null))
    | del(.tolerations | select(. == null))
    | del(.capacity | select(. == null))
    | del(.derivedAttributes | select(. == null))
    | rename(.deviceClassName; .exactly.deviceClassName)
    | rename(.selectors; .exactly.selectors)
    | rename(.allocationMode; .exactly.allocationMode)
    | rename(.count; .exactly.count)
    | rename(.adminAccess; .exactly.adminAccess)
    | rename(.tolerations; .exactly.tolerations)
    | rename(.capacity; .exactly.capacity)
    | rename(.derivedAttributes; .exactly.derivedAttributes)
  )
else . end

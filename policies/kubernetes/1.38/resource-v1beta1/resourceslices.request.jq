# A device has no basic part, and a slice for no node in particular has no
# nodeName.
if .spec.nodeName == "" then del(.spec.nodeName) else . end
| if .spec.allNodes == false then del(.spec.allNodes) else . end
| if (.spec.devices | type) == "array" then
    .spec.devices |= map(
      rename(.basic.attributes; .attributes)
      | rename(.basic.capacity; .capacity)
      | rename(.basic.consumesCounters; .consumesCounters)
      | rename(.basic.nodeName; .nodeName)
      | rename(.basic.nodeSelector; .nodeSelector)
      | rename(.basic.allNodes; .allNodes)
      | rename(.basic.taints; .taints)
      | rename(.basic.bindsToNode; .bindsToNode)
      | rename(.basic.bindingConditions; .bindingConditions)
      | rename(.basic.bindingFailureConditions; .bindingFailureConditions)
      | rename(.basic.allowMultipleAllocations; .allowMultipleAllocations)
      | rename(.basic.nodeAllocatableResources; .nodeAllocatableResources)
      | if .basic == {} or .basic == null then del(.basic) else . end
    )
  else . end

# The way back. Every device has a basic part; an empty nodeName and allNodes of
# false are absent.
if .spec.nodeName == "" then del(.spec.nodeName) else . end
| if .spec.allNodes == false then del(.spec.allNodes) else . end
| if (.spec.devices | type) == "array" then
    .spec.devices |= map(
      .basic = {}
      | rename(.attributes; .basic.attributes)
      | rename(.capacity; .basic.capacity)
      | rename(.consumesCounters; .basic.consumesCounters)
      | rename(.nodeName; .basic.nodeName)
      | rename(.nodeSelector; .basic.nodeSelector)
      | rename(.allNodes; .basic.allNodes)
      | rename(.taints; .basic.taints)
      | rename(.bindsToNode; .basic.bindsToNode)
      | rename(.bindingConditions; .basic.bindingConditions)
      | rename(.bindingFailureConditions; .basic.bindingFailureConditions)
      | rename(.allowMultipleAllocations; .basic.allowMultipleAllocations)
      | rename(.nodeAllocatableResources; .basic.nodeAllocatableResources)
    )
  else . end

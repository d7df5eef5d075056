# The strategy that is preferred most is the only one.
if (.spec.preferredStrategies | type) == "array" and .spec.preferredStrategies != []
then .spec.strategy = .spec.preferredStrategies[0] else . end
| del(.spec.preferredStrategies)

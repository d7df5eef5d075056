# The way back: a list of one.
if .spec.strategy != null then .spec.preferredStrategies = [.spec.strategy] else . end
| del(.spec.strategy)

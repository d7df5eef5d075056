# The way back: where v1 says 0, only the annotation makes v1beta3 mean it.
"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares" as $zero
| if (.spec.limited | type) == "object" and .spec.limited.nominalConcurrencyShares == 0
     and ((.metadata.annotations // {}) | has($zero) | not)
  then .metadata.annotations[$zero] = ""
  else . end

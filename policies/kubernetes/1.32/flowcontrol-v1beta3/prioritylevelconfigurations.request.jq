# Without the annotation 0 is the default of 30, which is also what v1 takes for
# an absent value. With it, an absent value is 0. v1 does not know the annotation.
"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares" as $zero
| ((.metadata.annotations // {}) | has($zero)) as $keep
| if (.spec.limited | type) != "object" then .
  elif $keep then .spec.limited.nominalConcurrencyShares |= (. // 0)
  elif .spec.limited.nominalConcurrencyShares == 0 then .spec.limited.nominalConcurrencyShares = 30
  else . end
| if $keep then del(.metadata.annotations[$zero]) else . end

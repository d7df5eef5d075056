# 0 is the default of 30, which is also what v1 takes for an absent value.
rename(.spec.limited.assuredConcurrencyShares; .spec.limited.nominalConcurrencyShares)
| if .spec.limited.nominalConcurrencyShares == 0 then .spec.limited.nominalConcurrencyShares = 30 else . end

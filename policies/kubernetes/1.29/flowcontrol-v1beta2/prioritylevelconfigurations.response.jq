# The way back.
rename(.spec.limited.nominalConcurrencyShares; .spec.limited.assuredConcurrencyShares)

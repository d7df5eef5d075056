# The way back: what selects nothing is an empty selector again, and an empty
# selector, all pods, needs the label that no pod has.
"pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match" as $label
| .spec.selector as $selector
| if ($selector | type) != "object" or ($selector.matchLabels // {}) != {} then .
  elif ($selector.matchExpressions // []) == []
  then .spec.selector = {matchExpressions: [{key: $label, operator: "DoesNotExist"}]}
  elif $selector.matchExpressions == [{key: $label, operator: "Exists"}]
  then .spec.selector = {}
  else . end

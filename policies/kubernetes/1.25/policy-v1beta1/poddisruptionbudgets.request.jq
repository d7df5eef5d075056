# An empty selector selects nothing: say so with a label that no pod has. The
# response program says "all pods" with the same label and DoesNotExist; without
# it, what is left selects all pods in policy/v1.
"pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match" as $label
| .spec.selector as $selector
| if ($selector | type) != "object" then .
  elif ($selector.matchLabels // {}) == {} and ($selector.matchExpressions // []) == []
  then .spec.selector = {matchExpressions: [{key: $label, operator: "Exists"}]}
  elif any($selector.matchExpressions[]?; .key == $label)
  then .spec.selector.matchExpressions |= map(select(.key != $label))
  else . end

# v1 has no default here.
if (.spec.paramRef | type) == "object" then ensure(.spec.paramRef.parameterNotFoundAction; "Deny") else . end

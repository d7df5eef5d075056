# v1beta1 has room for one host. An old client that writes the object back would lose the
# others, so they go into an annotation that the client sends back.
if .spec.hosts != null then .spec.host = .spec.hosts[0] else . end
| if (.spec.hosts | length) > 1 then stash(.spec.hosts; "net.example.com/hosts") else del(.spec.hosts) end

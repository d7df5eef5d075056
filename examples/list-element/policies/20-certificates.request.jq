# One host becomes the first of a list; the others come from where the answer put them. A
# rule cannot say "the first": a program can.
unstash(.spec.hosts; "net.example.com/hosts")
| if .spec.host != null then .spec.hosts = [.spec.host] + (.spec.hosts // [])[1:] else . end
| del(.spec.host)

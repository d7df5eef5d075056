package endpoints

import (
	"net"
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// portName is how the service's port for the API is called.
const portName = "https"

// slice is what an EndpointSlice says: the addresses with ports at which servers
// answer, IPv6 in brackets.
type slice []string

// read gives the addresses of a slice whose endpoints are ready, or still serve.
func read(es *discoveryv1.EndpointSlice) slice {
	var out slice
	ports := portsOf(es)
	for i := range es.Endpoints {
		endpoint := &es.Endpoints[i]
		if !answers(&endpoint.Conditions) {
			continue
		}
		for _, address := range endpoint.Addresses {
			ip, err := netip.ParseAddr(address)
			if err != nil { // a name; kube-apiservers write none
				continue
			}
			for _, port := range ports {
				out = append(out, net.JoinHostPort(ip.Unmap().String(), port))
			}
		}
	}
	return out
}

// answers reports whether an endpoint takes requests. What is not said counts as yes.
func answers(c *discoveryv1.EndpointConditions) bool {
	return c.Ready == nil || *c.Ready || c.Serving != nil && *c.Serving
}

// portsOf gives the ports called https, or the only one there is.
func portsOf(es *discoveryv1.EndpointSlice) []string {
	var ports []string
	for _, p := range es.Ports {
		named := p.Name != nil && *p.Name == portName || len(es.Ports) == 1
		tcp := p.Protocol == nil || *p.Protocol == corev1.ProtocolTCP
		if named && tcp && p.Port != nil && *p.Port > 0 && *p.Port < 1<<16 {
			ports = append(ports, strconv.Itoa(int(*p.Port)))
		}
	}
	return ports
}

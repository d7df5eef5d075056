package endpoints

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// sliceBuilder makes an EndpointSlice for a test's table.
type sliceBuilder struct {
	ports []discoveryv1.EndpointPort
	specs []string
}

func (s *sliceBuilder) port(name string, port int32, protocol corev1.Protocol) {
	p := discoveryv1.EndpointPort{Port: &port}
	if name != "" {
		p.Name = &name
	}
	if protocol != "" {
		p.Protocol = &protocol
	}
	s.ports = append(s.ports, p)
}

// endpoints are as newSlice takes them.
func (s *sliceBuilder) endpoints(specs ...string) { s.specs = specs }

func (s *sliceBuilder) slice() *discoveryv1.EndpointSlice {
	es := newSlice("s", 1, s.specs...)
	es.Ports = s.ports
	return es
}

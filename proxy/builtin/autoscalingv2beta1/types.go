// Package autoscalingv2beta1 has the types of autoscaling/v2beta1, which Kubernetes 1.25
// removed and k8s.io/api does not have any more.
//
// They say which fields there are, in JSON, and are never filled in. Their source is the
// API reference of Kubernetes 1.24.
package autoscalingv2beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type (
	// HorizontalPodAutoscaler scales a target by metrics.
	HorizontalPodAutoscaler struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`

		Spec   HorizontalPodAutoscalerSpec   `json:"spec"`
		Status HorizontalPodAutoscalerStatus `json:"status"`
	}

	// HorizontalPodAutoscalerSpec is what it shall do.
	HorizontalPodAutoscalerSpec struct {
		ScaleTargetRef CrossVersionObjectReference `json:"scaleTargetRef"`
		MinReplicas    *int32                      `json:"minReplicas,omitempty"`
		MaxReplicas    int32                       `json:"maxReplicas"`
		Metrics        []MetricSpec                `json:"metrics,omitempty"`
	}

	// CrossVersionObjectReference names an object.
	CrossVersionObjectReference struct {
		Kind       string `json:"kind"`
		Name       string `json:"name"`
		APIVersion string `json:"apiVersion,omitempty"`
	}

	// MetricSpec is a metric to scale on; Type says which of its fields there is.
	MetricSpec struct {
		Type              string                         `json:"type"`
		Object            *ObjectMetricSource            `json:"object,omitempty"`
		Pods              *PodsMetricSource              `json:"pods,omitempty"`
		Resource          *ResourceMetricSource          `json:"resource,omitempty"`
		ContainerResource *ContainerResourceMetricSource `json:"containerResource,omitempty"`
		External          *ExternalMetricSource          `json:"external,omitempty"`
	}

	// ObjectMetricSource is a metric of one object.
	ObjectMetricSource struct {
		Target       CrossVersionObjectReference `json:"target"`
		MetricName   string                      `json:"metricName"`
		TargetValue  resource.Quantity           `json:"targetValue"`
		Selector     *metav1.LabelSelector       `json:"selector,omitempty"`
		AverageValue *resource.Quantity          `json:"averageValue,omitempty"`
	}

	// PodsMetricSource is a metric of the target's pods.
	PodsMetricSource struct {
		MetricName         string                `json:"metricName"`
		TargetAverageValue resource.Quantity     `json:"targetAverageValue"`
		Selector           *metav1.LabelSelector `json:"selector,omitempty"`
	}

	// ResourceMetricSource is a resource of the target's pods.
	ResourceMetricSource struct {
		Name                     corev1.ResourceName `json:"name"`
		TargetAverageUtilization *int32              `json:"targetAverageUtilization,omitempty"`
		TargetAverageValue       *resource.Quantity  `json:"targetAverageValue,omitempty"`
	}

	// ContainerResourceMetricSource is a resource of one container of the target's pods.
	ContainerResourceMetricSource struct {
		ResourceMetricSource `json:",inline"`

		Container string `json:"container"`
	}

	// ExternalMetricSource is a metric of no object.
	ExternalMetricSource struct {
		MetricName         string                `json:"metricName"`
		MetricSelector     *metav1.LabelSelector `json:"metricSelector,omitempty"`
		TargetValue        *resource.Quantity    `json:"targetValue,omitempty"`
		TargetAverageValue *resource.Quantity    `json:"targetAverageValue,omitempty"`
	}

	// HorizontalPodAutoscalerStatus is what it sees.
	HorizontalPodAutoscalerStatus struct {
		ObservedGeneration *int64                             `json:"observedGeneration,omitempty"`
		LastScaleTime      *metav1.Time                       `json:"lastScaleTime,omitempty"`
		CurrentReplicas    int32                              `json:"currentReplicas"`
		DesiredReplicas    int32                              `json:"desiredReplicas"`
		CurrentMetrics     []MetricStatus                     `json:"currentMetrics"`
		Conditions         []HorizontalPodAutoscalerCondition `json:"conditions"`
	}

	// HorizontalPodAutoscalerCondition is a condition.
	HorizontalPodAutoscalerCondition struct {
		Type               string      `json:"type"`
		Status             string      `json:"status"`
		LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
		Reason             string      `json:"reason,omitempty"`
		Message            string      `json:"message,omitempty"`
	}

	// MetricStatus is a metric as it was read last.
	MetricStatus struct {
		Type              string                         `json:"type"`
		Object            *ObjectMetricStatus            `json:"object,omitempty"`
		Pods              *PodsMetricStatus              `json:"pods,omitempty"`
		Resource          *ResourceMetricStatus          `json:"resource,omitempty"`
		ContainerResource *ContainerResourceMetricStatus `json:"containerResource,omitempty"`
		External          *ExternalMetricStatus          `json:"external,omitempty"`
	}

	// ObjectMetricStatus is that of one object.
	ObjectMetricStatus struct {
		Target       CrossVersionObjectReference `json:"target"`
		MetricName   string                      `json:"metricName"`
		CurrentValue resource.Quantity           `json:"currentValue"`
		Selector     *metav1.LabelSelector       `json:"selector,omitempty"`
		AverageValue *resource.Quantity          `json:"averageValue,omitempty"`
	}

	// PodsMetricStatus is that of the target's pods.
	PodsMetricStatus struct {
		MetricName          string                `json:"metricName"`
		CurrentAverageValue resource.Quantity     `json:"currentAverageValue"`
		Selector            *metav1.LabelSelector `json:"selector,omitempty"`
	}

	// ResourceMetricStatus is a resource of the target's pods.
	ResourceMetricStatus struct {
		Name                      corev1.ResourceName `json:"name"`
		CurrentAverageUtilization *int32              `json:"currentAverageUtilization,omitempty"`
		CurrentAverageValue       resource.Quantity   `json:"currentAverageValue"`
	}

	// ContainerResourceMetricStatus is that of one container.
	ContainerResourceMetricStatus struct {
		ResourceMetricStatus `json:",inline"`

		Container string `json:"container"`
	}

	// ExternalMetricStatus is that of no object.
	ExternalMetricStatus struct {
		MetricName          string                `json:"metricName"`
		MetricSelector      *metav1.LabelSelector `json:"metricSelector,omitempty"`
		CurrentValue        resource.Quantity     `json:"currentValue"`
		CurrentAverageValue *resource.Quantity    `json:"currentAverageValue,omitempty"`
	}
)

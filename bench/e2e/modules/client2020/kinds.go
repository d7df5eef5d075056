package main

import (
	"context"
	"time"

	autoscalingv2beta2 "k8s.io/api/autoscaling/v2beta2"
	batchv1beta1 "k8s.io/api/batch/v1beta1"
	corev1 "k8s.io/api/core/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// A kind is a kind of objects with its typed client, without the types.
type kind struct {
	resource string
	informer cache.SharedIndexInformer

	create       func(ctx context.Context, name string) (metav1.Object, error)
	get          func(ctx context.Context, name string) (metav1.Object, error)
	update       func(ctx context.Context, object metav1.Object) (metav1.Object, error)
	updateStatus func(ctx context.Context, object metav1.Object) (metav1.Object, error) // as settled
	delete       func(ctx context.Context, name string) error

	settled func(object metav1.Object) bool // its status says so, and its spec is as it was made
}

// kinds are the kinds that are reconciled.
func kinds(set kubernetes.Interface, factory informers.SharedInformerFactory, namespace string) []kind {
	return []kind{budgets(set, factory, namespace), cronJobs(set, factory, namespace), autoscalers(set, factory, namespace)}
}

func budgets(set kubernetes.Interface, factory informers.SharedInformerFactory, namespace string) kind {
	client := set.PolicyV1beta1().PodDisruptionBudgets(namespace)
	return kind{
		resource: "poddisruptionbudgets",
		informer: factory.Policy().V1beta1().PodDisruptionBudgets().Informer(),
		create: func(ctx context.Context, name string) (metav1.Object, error) {
			half := intstr.FromString("50%")
			// An empty selector, which selects no pod in this version.
			spec := policyv1beta1.PodDisruptionBudgetSpec{MinAvailable: &half, Selector: &metav1.LabelSelector{}}
			return client.Create(ctx, &policyv1beta1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
		},
		get: func(ctx context.Context, name string) (metav1.Object, error) {
			return client.Get(ctx, name, metav1.GetOptions{})
		},
		update: func(ctx context.Context, object metav1.Object) (metav1.Object, error) {
			return client.Update(ctx, object.(*policyv1beta1.PodDisruptionBudget), metav1.UpdateOptions{})
		},
		updateStatus: func(ctx context.Context, object metav1.Object) (metav1.Object, error) {
			budget := object.(*policyv1beta1.PodDisruptionBudget).DeepCopy()
			budget.Status.ExpectedPods = 7
			return client.UpdateStatus(ctx, budget, metav1.UpdateOptions{})
		},
		delete: func(ctx context.Context, name string) error { return client.Delete(ctx, name, metav1.DeleteOptions{}) },
		settled: func(object metav1.Object) bool {
			budget := object.(*policyv1beta1.PodDisruptionBudget)
			selector := budget.Spec.Selector
			return budget.Status.ExpectedPods == 7 && selector != nil && len(selector.MatchLabels)+len(selector.MatchExpressions) == 0
		},
	}
}

func cronJobs(set kubernetes.Interface, factory informers.SharedInformerFactory, namespace string) kind {
	client := set.BatchV1beta1().CronJobs(namespace)
	return kind{
		resource: "cronjobs",
		informer: factory.Batch().V1beta1().CronJobs().Informer(),
		create: func(ctx context.Context, name string) (metav1.Object, error) {
			job := &batchv1beta1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1beta1.CronJobSpec{Schedule: "@daily"}}
			job.Spec.JobTemplate.Spec.Template.Spec = corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}},
			}
			return client.Create(ctx, job, metav1.CreateOptions{})
		},
		get: func(ctx context.Context, name string) (metav1.Object, error) {
			return client.Get(ctx, name, metav1.GetOptions{})
		},
		update: func(ctx context.Context, object metav1.Object) (metav1.Object, error) {
			return client.Update(ctx, object.(*batchv1beta1.CronJob), metav1.UpdateOptions{})
		},
		updateStatus: func(ctx context.Context, object metav1.Object) (metav1.Object, error) {
			job := object.(*batchv1beta1.CronJob).DeepCopy()
			last := metav1.NewTime(time.Unix(1_600_000_000, 0))
			job.Status.LastScheduleTime = &last
			return client.UpdateStatus(ctx, job, metav1.UpdateOptions{})
		},
		delete: func(ctx context.Context, name string) error { return client.Delete(ctx, name, metav1.DeleteOptions{}) },
		settled: func(object metav1.Object) bool {
			job := object.(*batchv1beta1.CronJob)
			last := job.Status.LastScheduleTime
			return last != nil && last.Unix() == 1_600_000_000 && job.Spec.ConcurrencyPolicy == batchv1beta1.AllowConcurrent
		},
	}
}

func autoscalers(set kubernetes.Interface, factory informers.SharedInformerFactory, namespace string) kind {
	client := set.AutoscalingV2beta2().HorizontalPodAutoscalers(namespace)
	return kind{
		resource: "horizontalpodautoscalers",
		informer: factory.Autoscaling().V2beta2().HorizontalPodAutoscalers().Informer(),
		create: func(ctx context.Context, name string) (metav1.Object, error) {
			target := autoscalingv2beta2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
			wanted := resource.MustParse("1500m")
			return client.Create(ctx, &autoscalingv2beta2.HorizontalPodAutoscaler{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: autoscalingv2beta2.HorizontalPodAutoscalerSpec{
					ScaleTargetRef: target, MaxReplicas: 7,
					Metrics: []autoscalingv2beta2.MetricSpec{{Type: autoscalingv2beta2.PodsMetricSourceType, Pods: &autoscalingv2beta2.PodsMetricSource{
						Metric: autoscalingv2beta2.MetricIdentifier{Name: "requests"},
						Target: autoscalingv2beta2.MetricTarget{Type: autoscalingv2beta2.AverageValueMetricType, AverageValue: &wanted},
					}}},
				},
			}, metav1.CreateOptions{})
		},
		get: func(ctx context.Context, name string) (metav1.Object, error) {
			return client.Get(ctx, name, metav1.GetOptions{})
		},
		update: func(ctx context.Context, object metav1.Object) (metav1.Object, error) {
			return client.Update(ctx, object.(*autoscalingv2beta2.HorizontalPodAutoscaler), metav1.UpdateOptions{})
		},
		updateStatus: func(ctx context.Context, object metav1.Object) (metav1.Object, error) {
			scaler := object.(*autoscalingv2beta2.HorizontalPodAutoscaler).DeepCopy()
			scaler.Status.DesiredReplicas = 7
			return client.UpdateStatus(ctx, scaler, metav1.UpdateOptions{})
		},
		delete: func(ctx context.Context, name string) error { return client.Delete(ctx, name, metav1.DeleteOptions{}) },
		settled: func(object metav1.Object) bool {
			scaler := object.(*autoscalingv2beta2.HorizontalPodAutoscaler)
			return scaler.Status.DesiredReplicas == 7 && scaler.Spec.Metrics[0].Pods.Target.AverageValue.String() == "1500m"
		},
	}
}

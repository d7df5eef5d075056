package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	flowcontrolv1beta3 "k8s.io/api/flowcontrol/v1beta3"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	flowcontrolapply "k8s.io/client-go/applyconfigurations/flowcontrol/v1beta3"
	policyapply "k8s.io/client-go/applyconfigurations/policy/v1beta1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/retry"

	"github.com/mixed-version-proxy/mvp/bench/lab/controlplane"
)

const protobuf = "application/vnd.kubernetes.protobuf"

// TestTypedClients has client-go's typed clients use versions that no server has, in
// protobuf and nothing else, and holds what they see to what they see in JSON and what a
// client of the servers' version sees of a server.
func TestTypedClients(t *testing.T) {
	t.Parallel()
	l := startLabWith(t, controlplane.Config{Versions: []string{newVersion}})
	m := l.serve(t, nil, "flowcontrol-v1beta3", "policy-v1beta1")
	c := newTypedClients(t, m)
	t.Run("flow schema", func(t *testing.T) { testTyped(t, m, c, c.flowSchemas()) })
	t.Run("priority level", func(t *testing.T) { testTyped(t, m, c, c.priorityLevels()) })
	t.Run("disruption budget", func(t *testing.T) { testTyped(t, m, c, c.disruptionBudgets()) })
}

// typedClients are client-go's clients: two through MVP, one direct.
type typedClients struct {
	protobuf, json, direct *kubernetes.Clientset

	mu    sync.Mutex
	forms map[string]bool // media types of what the client in protobuf was answered
}

func newTypedClients(t *testing.T, m *mvp) *typedClients {
	t.Helper()
	c := &typedClients{forms: map[string]bool{}}
	client := func(kubeconfig, form string, wrap transport.WrapperFunc) *kubernetes.Clientset {
		config := adminConfig(t, kubeconfig)
		config.ContentType, config.AcceptContentTypes = form, form
		config.Wrap(wrap)
		set, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	none := func(next http.RoundTripper) http.RoundTripper { return next }
	through := m.kubectl(newKubectl).kubeconfig
	c.protobuf = client(through, protobuf, func(next http.RoundTripper) http.RoundTripper { return formRecorder{c, next} })
	c.json = client(through, runtime.ContentTypeJSON, none)
	c.direct = client(m.lab.KubeconfigPath(controlplane.Admin, "a"), protobuf, none)
	return c
}

// formRecorder notes in which form answers come.
type formRecorder struct {
	clients *typedClients
	next    http.RoundTripper
}

func (r formRecorder) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	if err == nil {
		r.clients.mu.Lock()
		defer r.clients.mu.Unlock()
		r.clients.forms[resp.Header.Get("Content-Type")] = true
	}
	return resp, err
}

// A typedClient is what client-go generates for a kind.
type typedClient[O, L, A any] interface {
	Create(context.Context, O, metav1.CreateOptions) (O, error)
	Update(context.Context, O, metav1.UpdateOptions) (O, error)
	UpdateStatus(context.Context, O, metav1.UpdateOptions) (O, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
	DeleteCollection(context.Context, metav1.DeleteOptions, metav1.ListOptions) error
	Get(context.Context, string, metav1.GetOptions) (O, error)
	List(context.Context, metav1.ListOptions) (L, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (O, error)
	Apply(context.Context, A, metav1.ApplyOptions) (O, error)
}

// A getter is the part of a client of the servers' version that is needed here.
type getter[N any] interface {
	Get(context.Context, string, metav1.GetOptions) (N, error)
}

// typedName is the name of the object under test.
const typedName = "typed"

// A typedKind is a kind in an old version O and the servers' version N. Of its fields a
// number is what the test changes.
type typedKind[O, N metav1.Object, L runtime.Object, A any] struct {
	protobuf, json  typedClient[O, L, A]
	direct          getter[N]
	through, beside cache.SharedIndexInformer // in protobuf through MVP, direct

	object  func() O
	set     func(O, int32)
	number  func(N) int32
	path    []string // of the number
	applied func(int32) A
	status  func(O)

	invalid func(O) // makes it so
	field   string  // that is wrong with it
}

func (c *typedClients) informers() (through, direct informers.SharedInformerFactory) {
	only := informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", typedName).String()
	})
	namespace := informers.WithNamespace(metav1.NamespaceDefault)
	return informers.NewSharedInformerFactoryWithOptions(c.protobuf, 0, only, namespace),
		informers.NewSharedInformerFactoryWithOptions(c.direct, 0, only, namespace)
}

func typedMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: typedName, Labels: map[string]string{"kind": typedName}}
}

func (c *typedClients) flowSchemas() typedKind[*flowcontrolv1beta3.FlowSchema, *flowcontrolv1.FlowSchema, *flowcontrolv1beta3.FlowSchemaList, *flowcontrolapply.FlowSchemaApplyConfiguration] {
	through, direct := c.informers()
	return typedKind[*flowcontrolv1beta3.FlowSchema, *flowcontrolv1.FlowSchema, *flowcontrolv1beta3.FlowSchemaList, *flowcontrolapply.FlowSchemaApplyConfiguration]{
		protobuf: c.protobuf.FlowcontrolV1beta3().FlowSchemas(),
		json:     c.json.FlowcontrolV1beta3().FlowSchemas(),
		direct:   c.direct.FlowcontrolV1().FlowSchemas(),
		through:  through.Flowcontrol().V1beta3().FlowSchemas().Informer(),
		beside:   direct.Flowcontrol().V1().FlowSchemas().Informer(),
		object: func() *flowcontrolv1beta3.FlowSchema {
			return &flowcontrolv1beta3.FlowSchema{ObjectMeta: typedMeta(), Spec: flowcontrolv1beta3.FlowSchemaSpec{
				MatchingPrecedence:         1000,
				PriorityLevelConfiguration: flowcontrolv1beta3.PriorityLevelConfigurationReference{Name: "global-default"},
				DistinguisherMethod:        &flowcontrolv1beta3.FlowDistinguisherMethod{Type: flowcontrolv1beta3.FlowDistinguisherMethodByUserType},
				Rules: []flowcontrolv1beta3.PolicyRulesWithSubjects{{
					Subjects:         []flowcontrolv1beta3.Subject{{Kind: flowcontrolv1beta3.SubjectKindUser, User: &flowcontrolv1beta3.UserSubject{Name: "nobody"}}},
					NonResourceRules: []flowcontrolv1beta3.NonResourcePolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/nowhere"}}},
				}},
			}}
		},
		set:    func(o *flowcontrolv1beta3.FlowSchema, n int32) { o.Spec.MatchingPrecedence = n },
		number: func(o *flowcontrolv1.FlowSchema) int32 { return o.Spec.MatchingPrecedence },
		path:   []string{"spec", "matchingPrecedence"},
		applied: func(n int32) *flowcontrolapply.FlowSchemaApplyConfiguration {
			return flowcontrolapply.FlowSchema(typedName).WithSpec(flowcontrolapply.FlowSchemaSpec().WithMatchingPrecedence(n))
		},
		status: func(o *flowcontrolv1beta3.FlowSchema) {
			o.Status.Conditions = append(o.Status.Conditions, flowcontrolv1beta3.FlowSchemaCondition{
				Type: "Typed", Status: flowcontrolv1beta3.ConditionTrue, LastTransitionTime: metav1.Unix(1_700_000_000, 0),
			})
		},
		invalid: func(o *flowcontrolv1beta3.FlowSchema) { o.Spec.PriorityLevelConfiguration.Name = "" },
		field:   "spec.priorityLevelConfiguration.name",
	}
}

func (c *typedClients) priorityLevels() typedKind[*flowcontrolv1beta3.PriorityLevelConfiguration, *flowcontrolv1.PriorityLevelConfiguration, *flowcontrolv1beta3.PriorityLevelConfigurationList, *flowcontrolapply.PriorityLevelConfigurationApplyConfiguration] {
	through, direct := c.informers()
	return typedKind[*flowcontrolv1beta3.PriorityLevelConfiguration, *flowcontrolv1.PriorityLevelConfiguration, *flowcontrolv1beta3.PriorityLevelConfigurationList, *flowcontrolapply.PriorityLevelConfigurationApplyConfiguration]{
		protobuf: c.protobuf.FlowcontrolV1beta3().PriorityLevelConfigurations(),
		json:     c.json.FlowcontrolV1beta3().PriorityLevelConfigurations(),
		direct:   c.direct.FlowcontrolV1().PriorityLevelConfigurations(),
		through:  through.Flowcontrol().V1beta3().PriorityLevelConfigurations().Informer(),
		beside:   direct.Flowcontrol().V1().PriorityLevelConfigurations().Informer(),
		object: func() *flowcontrolv1beta3.PriorityLevelConfiguration {
			return &flowcontrolv1beta3.PriorityLevelConfiguration{ObjectMeta: typedMeta(), Spec: flowcontrolv1beta3.PriorityLevelConfigurationSpec{
				Type: flowcontrolv1beta3.PriorityLevelEnablementLimited,
				Limited: &flowcontrolv1beta3.LimitedPriorityLevelConfiguration{
					NominalConcurrencyShares: 1000,
					LimitResponse:            flowcontrolv1beta3.LimitResponse{Type: flowcontrolv1beta3.LimitResponseTypeReject},
				},
			}}
		},
		set: func(o *flowcontrolv1beta3.PriorityLevelConfiguration, n int32) {
			o.Spec.Limited.NominalConcurrencyShares = n
		},
		number: func(o *flowcontrolv1.PriorityLevelConfiguration) int32 {
			return *o.Spec.Limited.NominalConcurrencyShares
		},
		path: []string{"spec", "limited", "nominalConcurrencyShares"},
		applied: func(n int32) *flowcontrolapply.PriorityLevelConfigurationApplyConfiguration {
			return flowcontrolapply.PriorityLevelConfiguration(typedName).WithSpec(flowcontrolapply.PriorityLevelConfigurationSpec().
				WithLimited(flowcontrolapply.LimitedPriorityLevelConfiguration().WithNominalConcurrencyShares(n)))
		},
		status: func(o *flowcontrolv1beta3.PriorityLevelConfiguration) {
			o.Status.Conditions = append(o.Status.Conditions, flowcontrolv1beta3.PriorityLevelConfigurationCondition{
				Type: "Typed", Status: flowcontrolv1beta3.ConditionTrue, LastTransitionTime: metav1.Unix(1_700_000_000, 0),
			})
		},
		invalid: func(o *flowcontrolv1beta3.PriorityLevelConfiguration) { o.Spec.Limited.LimitResponse.Type = "Wrong" },
		field:   "spec.limited.limitResponse.type",
	}
}

func (c *typedClients) disruptionBudgets() typedKind[*policyv1beta1.PodDisruptionBudget, *policyv1.PodDisruptionBudget, *policyv1beta1.PodDisruptionBudgetList, *policyapply.PodDisruptionBudgetApplyConfiguration] {
	through, direct := c.informers()
	const namespace = metav1.NamespaceDefault
	return typedKind[*policyv1beta1.PodDisruptionBudget, *policyv1.PodDisruptionBudget, *policyv1beta1.PodDisruptionBudgetList, *policyapply.PodDisruptionBudgetApplyConfiguration]{
		protobuf: c.protobuf.PolicyV1beta1().PodDisruptionBudgets(namespace),
		json:     c.json.PolicyV1beta1().PodDisruptionBudgets(namespace),
		direct:   c.direct.PolicyV1().PodDisruptionBudgets(namespace),
		through:  through.Policy().V1beta1().PodDisruptionBudgets().Informer(),
		beside:   direct.Policy().V1().PodDisruptionBudgets().Informer(),
		object: func() *policyv1beta1.PodDisruptionBudget {
			least := intstr.FromInt32(1000)
			return &policyv1beta1.PodDisruptionBudget{ObjectMeta: typedMeta(), Spec: policyv1beta1.PodDisruptionBudgetSpec{
				MinAvailable: &least,
				Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}},
			}}
		},
		set:    func(o *policyv1beta1.PodDisruptionBudget, n int32) { *o.Spec.MinAvailable = intstr.FromInt32(n) },
		number: func(o *policyv1.PodDisruptionBudget) int32 { return o.Spec.MinAvailable.IntVal },
		path:   []string{"spec", "minAvailable"},
		applied: func(n int32) *policyapply.PodDisruptionBudgetApplyConfiguration {
			return policyapply.PodDisruptionBudget(typedName, namespace).WithSpec(policyapply.PodDisruptionBudgetSpec().WithMinAvailable(intstr.FromInt32(n)))
		},
		status:  func(o *policyv1beta1.PodDisruptionBudget) { o.Status.DisruptionsAllowed = 7 },
		invalid: func(o *policyv1beta1.PodDisruptionBudget) { *o.Spec.MinAvailable = intstr.FromInt32(-1) },
		field:   "spec.minAvailable",
	}
}

// testTyped takes one object through its life, with all that a typed client can do.
func testTyped[O, N metav1.Object, L runtime.Object, A any](t *testing.T, m *mvp, c *typedClients, kind typedKind[O, N, L, A]) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	through, direct := record(t, ctx, kind.through), record(t, ctx, kind.beside)

	created, err := kind.protobuf.Create(ctx, kind.object(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || created.GetUID() == "" {
		t.Fatalf("a dry run made %v (%v)", created, err)
	}
	if _, err := kind.direct.Get(ctx, typedName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("after a dry run the server has the object (%v)", err)
	}
	if created, err = kind.protobuf.Create(ctx, kind.object(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kind.agree(t, ctx, m, 1000)
	kind.refused(t, ctx)

	n := int32(1000)
	write := func(what string, f func(n int32) error) {
		t.Helper()
		n++
		// The server writes to its own kinds' status, too.
		if err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return f(n) }); err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		kind.agree(t, ctx, m, n)
	}
	write("update", func(n int32) error {
		object, err := kind.protobuf.Get(ctx, typedName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		kind.set(object, n)
		_, err = kind.protobuf.Update(ctx, object, metav1.UpdateOptions{})
		return err
	})
	patch := func(form types.PatchType, body string) error {
		_, err := kind.protobuf.Patch(ctx, typedName, form, []byte(body), metav1.PatchOptions{})
		return err
	}
	merge := func(n int32) string {
		body := fmt.Sprint(n)
		for _, key := range slices.Backward(kind.path) {
			body = fmt.Sprintf(`{%q:%s}`, key, body)
		}
		return body
	}
	write("strategic merge patch", func(n int32) error { return patch(types.StrategicMergePatchType, merge(n)) })
	write("merge patch", func(n int32) error { return patch(types.MergePatchType, merge(n)) })
	write("JSON patch", func(n int32) error {
		return patch(types.JSONPatchType, fmt.Sprintf(`[{"op":"replace","path":"/%s","value":%d}]`, strings.Join(kind.path, "/"), n))
	})
	write("apply", func(n int32) error {
		_, err := kind.protobuf.Apply(ctx, kind.applied(n), metav1.ApplyOptions{FieldManager: "typed", Force: true})
		return err
	})
	_, err = kind.protobuf.Apply(ctx, kind.applied(1), metav1.ApplyOptions{FieldManager: "other"})
	if field := "." + strings.Join(kind.path, "."); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "typed": `+field) {
		t.Errorf("another manager's apply ended with %v, want a conflict about %s", err, field)
	}
	n-- // of the status
	write("update of the status", func(n int32) error {
		object, err := kind.protobuf.Get(ctx, typedName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		kind.status(object)
		kind.set(object, 1) // which is not of the status
		_, err = kind.protobuf.UpdateStatus(ctx, object, metav1.UpdateOptions{})
		return err
	})
	kind.listed(t, ctx)
	kind.end(t, ctx, created.GetUID())

	m.eventually("both informers have seen the end", func() bool { return through.deleted() == 1 && direct.deleted() == 1 })
	compareEvents(t, through, direct)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, form := range slices.Sorted(maps.Keys(c.forms)) {
		if form != protobuf && form != protobuf+";stream=watch" {
			t.Errorf("the client in protobuf was answered in %q", form)
		}
	}
	if !c.forms[protobuf+";stream=watch"] {
		t.Error("the informer did not watch in protobuf")
	}
}

// agree waits until all clients see one state of the object, and wants it to be the same
// to them and to have that number.
func (k typedKind[O, N, L, A]) agree(t *testing.T, ctx context.Context, m *mvp, number int32) {
	t.Helper()
	get := metav1.GetOptions{}
	m.eventually("nobody writes between three reads", func() bool {
		inProtobuf, err := k.protobuf.Get(ctx, typedName, get)
		if err != nil {
			t.Fatal(err)
		}
		inJSON, err := k.json.Get(ctx, typedName, get)
		if err != nil {
			t.Fatal(err)
		}
		direct, err := k.direct.Get(ctx, typedName, get)
		if err != nil {
			t.Fatal(err)
		}
		if v := inProtobuf.GetResourceVersion(); v != inJSON.GetResourceVersion() || v != direct.GetResourceVersion() {
			return false
		}
		a, b, want := content(t, inProtobuf), content(t, inJSON), content(t, direct)
		if a != want || b != want {
			t.Errorf("in protobuf\n%s\nin JSON\n%s\nof the server\n%s", a, b, want)
		}
		if got := k.number(direct); got != number {
			t.Errorf("%s is %d on the server, want %d", strings.Join(k.path, "."), got, number)
		}
		return true
	})
}

// content is an object without its version. These kinds' fields are called the same in
// both.
func content(t *testing.T, object any) string {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	delete(fields, "apiVersion")
	delete(fields, "kind")
	if text, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// refused sees what a typed client is told of its mistakes.
func (k typedKind[O, N, L, A]) refused(t *testing.T, ctx context.Context) {
	t.Helper()
	if _, err := k.protobuf.Create(ctx, k.object(), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("creating it again ended with %v", err)
	}
	if _, err := k.protobuf.Get(ctx, "nobody", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("getting what is not there ended with %v", err)
	}
	wrong := k.object()
	wrong.SetName("wrong")
	k.invalid(wrong)
	_, err := k.protobuf.Create(ctx, wrong, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), k.field) {
		t.Errorf("an invalid object was answered %v, want %s in it", err, k.field)
	}
	stale := k.object()
	stale.SetResourceVersion("1")
	if _, err := k.protobuf.Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of an older state ended with %v", err)
	}
}

// listed compares the object in lists.
func (k typedKind[O, N, L, A]) listed(t *testing.T, ctx context.Context) {
	t.Helper()
	options := metav1.ListOptions{LabelSelector: "kind=" + typedName}
	var all []string
	for _, client := range []typedClient[O, L, A]{k.protobuf, k.json} {
		list, err := client.List(ctx, options)
		if err != nil {
			t.Fatal(err)
		}
		items, err := meta.ExtractList(list)
		if err != nil || len(items) != 1 {
			t.Fatalf("%d objects in a list (%v), want 1", len(items), err)
		}
		all = append(all, content(t, items[0]))
	}
	direct, err := k.direct.Get(ctx, typedName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := content(t, direct); all[0] != want || all[1] != want {
		t.Errorf("in a list in protobuf\n%s\nin JSON\n%s\nof the server\n%s", all[0], all[1], want)
	}
}

// end deletes the object, once for another and once for itself.
func (k typedKind[O, N, L, A]) end(t *testing.T, ctx context.Context, uid types.UID) {
	t.Helper()
	other := types.UID("00000000-0000-0000-0000-000000000000")
	if err := k.protobuf.Delete(ctx, typedName, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}}); !apierrors.IsConflict(err) {
		t.Errorf("deleting another one of that name ended with %v", err)
	}
	policy := metav1.DeletePropagationBackground
	if err := k.protobuf.Delete(ctx, typedName, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &policy}); err != nil {
		t.Error(err)
	}
	if _, err := k.direct.Get(ctx, typedName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the server has the object after its end (%v)", err)
	}
	second := k.object()
	second.SetName("typed-second")
	if _, err := k.protobuf.Create(ctx, second, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	if err := k.protobuf.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "kind=" + typedName}); err != nil {
		t.Error(err)
	}
	if _, err := k.direct.Get(ctx, "typed-second", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the server has the second object after the end of all (%v)", err)
	}
}

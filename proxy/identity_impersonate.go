package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"unicode/utf8"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/mixed-version-proxy/mvp/engine"
	"github.com/mixed-version-proxy/mvp/proxy/wire"
)

// The header lines of impersonation. They compare without regard to case.
const (
	impersonatePrefix = "Impersonate-"
	impersonateUser   = "Impersonate-User"
	impersonateGroup  = "Impersonate-Group"
	impersonateUID    = "Impersonate-Uid"
	impersonateExtra  = "Impersonate-Extra-"
)

const serviceAccountPrefix = "system:serviceaccount:"

const (
	// maxImpersonationValues bounds the SubjectAccessReviews that one request can
	// cause, one per line of impersonation: twice the groups that people have.
	maxImpersonationValues = 64

	// maxImpersonationReviews is how many of them are under way at a time.
	maxImpersonationReviews = 8
)

// impersonation is whom a client asks to be taken for.
type impersonation struct {
	user string

	// needs are the rights to each user, group, UID and extra value that it names,
	// as kube-apiserver asks for them.
	needs []authorizationv1.ResourceAttributes
}

// parseImpersonation reads the client's own lines of impersonation; nil without any.
// It is for requests that go with MVP's credential, where what is not understood
// would be MVP's right and not the client's, so that is refused.
func parseImpersonation(h wire.Header) (*impersonation, error) {
	p := &impersonation{}
	uids := 0
	for i := range h {
		if !hasPrefixFold(h[i].Name, impersonatePrefix) {
			continue
		}
		if len(p.needs) == maxImpersonationValues {
			return nil, forbidden("cannot impersonate: the request has more than %d lines of impersonation", maxImpersonationValues)
		}
		name, value := h[i].Name, h[i].Value
		// What is no text would be judged as another one, and none as nobody.
		if value == "" || !utf8.ValidString(value) {
			return nil, forbidden("cannot impersonate: %s is empty or no text", clip(name))
		}
		switch {
		case strings.EqualFold(name, impersonateUser) && p.user == "":
			p.user = value
			p.needs = append(p.needs, needUser(value))
		case strings.EqualFold(name, impersonateGroup):
			p.needs = append(p.needs, need("", "groups", "", value))
		case strings.EqualFold(name, impersonateUID) && uids == 0:
			uids++
			p.needs = append(p.needs, need("authentication.k8s.io", "uids", "", value))
		case hasPrefixFold(name, impersonateExtra) && extraKey(name) != "":
			p.needs = append(p.needs, need("authentication.k8s.io", "userextras", extraKey(name), value))
		default:
			return nil, forbidden("cannot impersonate: %s is unknown or repeated", clip(name))
		}
	}
	if len(p.needs) == 0 {
		return nil, nil
	}
	if p.user == "" {
		return nil, forbidden("cannot impersonate: there is no Impersonate-User")
	}
	return p, nil
}

// extraKey is the attribute that a line called name sets, as kube-apiserver reads it;
// "" if it is no text.
func extraKey(name string) string {
	encoded := strings.ToLower(name[len(impersonateExtra):])
	key, err := url.PathUnescape(encoded)
	if err != nil {
		key = encoded
	}
	if !utf8.ValidString(key) {
		return ""
	}
	return key
}

func need(group, resource, subresource, name string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{
		Verb: "impersonate", Group: group, Resource: resource, Subresource: subresource, Name: name,
	}
}

// needUser is the right to a user. Service accounts are objects of their own, if they
// are called as such objects can be.
func needUser(user string) authorizationv1.ResourceAttributes {
	if account, ok := strings.CutPrefix(user, serviceAccountPrefix); ok {
		namespace, name, _ := strings.Cut(account, ":")
		if len(validation.ValidateNamespaceName(namespace, false)) == 0 && len(validation.ValidateServiceAccountName(name, false)) == 0 {
			attributes := need("", "serviceaccounts", "", name)
			attributes.Namespace = namespace
			return attributes
		}
	}
	return need("", "users", "", user)
}

// accessReviews asks the servers what users may do.
type accessReviews struct {
	reviewer *reviewer
	answers  *memo[accessAnswer]
}

type accessAnswer struct {
	allowed bool
	reason  string
}

func newAccessReviews(r *reviewer) *accessReviews {
	return &accessReviews{reviewer: r, answers: newMemo[accessAnswer]()}
}

// impersonate returns nil if user may be taken for target. It asks for all rights, a
// few at a time, and is done in reviewTimeout.
func (a *accessReviews) impersonate(ctx context.Context, user *engine.User, target *impersonation) error {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	results := make([]error, len(target.needs))
	slots := make(chan struct{}, maxImpersonationReviews)
	var all sync.WaitGroup
	for i := range target.needs {
		slots <- struct{}{} // comes free within reviewTimeout
		all.Go(func() {
			defer func() { <-slots }()
			results[i] = a.check(ctx, user, &target.needs[i])
		})
	}
	all.Wait()
	for _, err := range results {
		if err != nil {
			return err
		}
	}
	return nil
}

// check returns nil if user has the right.
func (a *accessReviews) check(ctx context.Context, user *engine.User, right *authorizationv1.ResourceAttributes) error {
	spec := authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: right, User: user.Name, Groups: user.Groups, UID: user.UID,
		Extra: make(map[string]authorizationv1.ExtraValue, len(user.Extra)),
	}
	for key, values := range user.Extra {
		spec.Extra[key] = values
	}
	question, err := json.Marshal(spec) // unlike its String, another one for each question
	if err != nil {
		return cannotReview("cannot write a SubjectAccessReview: %v", err)
	}
	answer, err := a.answers.get(ctx, string(question), func(ctx context.Context) (accessAnswer, error) {
		return a.ask(ctx, spec)
	})
	if err != nil {
		return err
	}
	if !answer.allowed {
		return refusal(user, right, answer.reason)
	}
	return nil
}

func (a *accessReviews) ask(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (accessAnswer, error) {
	object := &authorizationv1.SubjectAccessReview{Spec: spec}
	object.APIVersion, object.Kind = "authorization.k8s.io/v1", "SubjectAccessReview"
	err := a.reviewer.create(ctx, review{"SubjectAccessReview", "/apis/authorization.k8s.io/v1/subjectaccessreviews", object})
	if err != nil {
		return accessAnswer{}, err
	}
	return accessAnswer{object.Status.Allowed && !object.Status.Denied, object.Status.Reason}, nil
}

// refusal says what kube-apiserver says.
func refusal(user *engine.User, right *authorizationv1.ResourceAttributes, reason string) error {
	resource := right.Resource
	if right.Subresource != "" {
		resource += "/" + right.Subresource
	}
	scope := "at the cluster scope"
	if right.Namespace != "" {
		scope = fmt.Sprintf("in the namespace %q", right.Namespace)
	}
	message := fmt.Sprintf("%s %q is forbidden: User %q cannot impersonate resource %q in API group %q %s",
		right.Resource, clip(right.Name), clip(user.Name), clip(resource), right.Group, scope)
	if reason != "" {
		message += ": " + clip(reason)
	}
	return forbidden("%s", message)
}

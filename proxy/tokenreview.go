package proxy

import (
	"context"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/mixed-version-proxy/mvp/engine"
)

// tokenReviews asks the servers whose tokens are.
type tokenReviews struct {
	reviewer *reviewer
	answers  *memo[*engine.User] // nil: nobody's
}

func newTokenReviews(r *reviewer) *tokenReviews {
	return &tokenReviews{reviewer: r, answers: newMemo[*engine.User]()}
}

// user returns whose token it is. It never returns nil without an error, which is a
// *statusError: 401 for a token that the servers do not know, as they will answer
// themselves, 500 or 503 if that could not be found out. The user must not be changed.
func (t *tokenReviews) user(ctx context.Context, token string) (*engine.User, error) {
	user, err := t.answers.get(ctx, token, func(ctx context.Context) (*engine.User, error) { return t.ask(ctx, token) })
	if err == nil && user == nil {
		err = unauthorized("the kube-apiserver does not know the bearer token")
	}
	return user, err
}

func (t *tokenReviews) ask(ctx context.Context, token string) (*engine.User, error) {
	object := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	object.APIVersion, object.Kind = "authentication.k8s.io/v1", "TokenReview"
	err := t.reviewer.create(ctx, review{"TokenReview", "/apis/authentication.k8s.io/v1/tokenreviews", object})
	if err != nil || !object.Status.Authenticated {
		return nil, err
	}
	info := object.Status.User
	if info.Username == "" {
		return nil, cannotReview("cannot use a TokenReview: the kube-apiserver knows the token, but names no user")
	}
	user := &engine.User{Name: info.Username, UID: info.UID, Groups: info.Groups, Extra: make(map[string][]string, len(info.Extra))}
	for key, values := range info.Extra {
		user.Extra[key] = values
	}
	if !slices.Contains(user.Groups, groupAuthenticated) {
		user.Groups = append(user.Groups, groupAuthenticated)
	}
	return user, nil
}

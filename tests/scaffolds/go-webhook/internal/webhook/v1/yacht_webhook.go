// Package v1 has the webhooks of version v1.
package v1

import (
	"context"
	"fmt"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	apiv1 "fleet.example.org/guard/api/v1"
)

// SetupYachtWebhookWithManager registers the webhooks of Yacht.
func SetupYachtWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &apiv1.Yacht{}).
		WithDefaulter(&YachtRules{}).
		WithValidator(&YachtRules{}).
		Complete()
}

// +kubebuilder:webhook:path=/mutate-fleet-example-org-v1-yacht,mutating=true,failurePolicy=fail,sideEffects=None,groups=fleet.example.org,resources=yachts,verbs=create;update,versions=v1,name=myacht-v1.kb.io,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/validate-fleet-example-org-v1-yacht,mutating=false,failurePolicy=fail,sideEffects=None,groups=fleet.example.org,resources=yachts,verbs=create;update,versions=v1,name=vyacht-v1.kb.io,admissionReviewVersions=v1

// YachtRules changes and refuses objects.
type YachtRules struct{}

// Default changes an object before it is stored.
func (*YachtRules) Default(_ context.Context, object *apiv1.Yacht) error {
	if object.Labels == nil {
		object.Labels = map[string]string{}
	}
	if object.Labels["reviewed-by"] == "" {
		object.Labels["reviewed-by"] = "guard"
	}
	return nil
}

// ValidateCreate refuses a new object, with the reason.
func (*YachtRules) ValidateCreate(_ context.Context, object *apiv1.Yacht) (admission.Warnings, error) {
	if strings.HasPrefix(object.Name, "forbidden") {
		return nil, fmt.Errorf("names must not begin with %q", "forbidden")
	}
	return nil, nil
}

// ValidateUpdate refuses a change, with the reason.
func (r *YachtRules) ValidateUpdate(ctx context.Context, _, object *apiv1.Yacht) (admission.Warnings, error) {
	return r.ValidateCreate(ctx, object)
}

// ValidateDelete refuses a deletion, with the reason.
func (*YachtRules) ValidateDelete(context.Context, *apiv1.Yacht) (admission.Warnings, error) {
	return nil, nil
}

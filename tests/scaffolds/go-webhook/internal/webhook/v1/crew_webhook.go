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

// SetupCrewWebhookWithManager registers the webhooks of Crew.
func SetupCrewWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &apiv1.Crew{}).
		WithDefaulter(&CrewRules{}).
		WithValidator(&CrewRules{}).
		Complete()
}

// +kubebuilder:webhook:path=/mutate-fleet-example-org-v1-crew,mutating=true,failurePolicy=fail,sideEffects=None,groups=fleet.example.org,resources=crews,verbs=create;update,versions=v1,name=mcrew-v1.kb.io,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/validate-fleet-example-org-v1-crew,mutating=false,failurePolicy=fail,sideEffects=None,groups=fleet.example.org,resources=crews,verbs=create;update,versions=v1,name=vcrew-v1.kb.io,admissionReviewVersions=v1

// CrewRules changes and refuses objects.
type CrewRules struct{}

// Default changes an object before it is stored.
func (*CrewRules) Default(_ context.Context, object *apiv1.Crew) error {
	if object.Labels == nil {
		object.Labels = map[string]string{}
	}
	if object.Labels["reviewed-by"] == "" {
		object.Labels["reviewed-by"] = "guard"
	}
	return nil
}

// ValidateCreate refuses a new object, with the reason.
func (*CrewRules) ValidateCreate(_ context.Context, object *apiv1.Crew) (admission.Warnings, error) {
	if strings.HasPrefix(object.Name, "forbidden") {
		return nil, fmt.Errorf("names must not begin with %q", "forbidden")
	}
	return nil, nil
}

// ValidateUpdate refuses a change, with the reason.
func (r *CrewRules) ValidateUpdate(ctx context.Context, _, object *apiv1.Crew) (admission.Warnings, error) {
	return r.ValidateCreate(ctx, object)
}

// ValidateDelete refuses a deletion, with the reason.
func (*CrewRules) ValidateDelete(context.Context, *apiv1.Crew) (admission.Warnings, error) {
	return nil, nil
}

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const boatGroup = "hooks.bareboat.example"

// Boat is the stored version of a kind with all three webhooks of kubebuilder.
type Boat struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BoatSpec `json:"spec"`
}

// BoatSpec is the desired state.
type BoatSpec struct {
	Host string `json:"host,omitempty"`
	Port int    `json:"port,omitempty"`
}

// OldBoat is the older version, which has one field for both.
type OldBoat struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec OldBoatSpec `json:"spec"`
}

// OldBoatSpec is the desired state in the older version.
type OldBoatSpec struct {
	HostPort string `json:"hostPort,omitempty"`
}

// DeepCopyObject makes a Boat a runtime.Object.
func (b *Boat) DeepCopyObject() runtime.Object {
	copied := *b
	copied.ObjectMeta = *b.ObjectMeta.DeepCopy()
	return &copied
}

// DeepCopyObject makes an OldBoat a runtime.Object.
func (b *OldBoat) DeepCopyObject() runtime.Object {
	copied := *b
	copied.ObjectMeta = *b.ObjectMeta.DeepCopy()
	return &copied
}

// Hub makes v2 the version that others convert to.
func (b *Boat) Hub() {}

// ConvertTo converts to the hub.
func (b *OldBoat) ConvertTo(hub conversion.Hub) error {
	boat := hub.(*Boat)
	boat.ObjectMeta = b.ObjectMeta
	host, port, _ := strings.Cut(b.Spec.HostPort, ":")
	boat.Spec.Host = host
	_, _ = fmt.Sscan(port, &boat.Spec.Port)
	return nil
}

// ConvertFrom converts from the hub.
func (b *OldBoat) ConvertFrom(hub conversion.Hub) error {
	boat := hub.(*Boat)
	b.ObjectMeta = boat.ObjectMeta
	b.Spec.HostPort = fmt.Sprintf("%s:%d", boat.Spec.Host, boat.Spec.Port)
	return nil
}

type boatHooks struct{}

// Default sets the port.
func (boatHooks) Default(_ context.Context, boat *Boat) error {
	if boat.Spec.Port == 0 {
		boat.Spec.Port = 8080
	}
	return nil
}

// ValidateCreate refuses boats without a host.
func (boatHooks) ValidateCreate(_ context.Context, boat *Boat) (admission.Warnings, error) {
	if boat.Spec.Host == "" {
		return nil, fmt.Errorf("a boat needs a host")
	}
	return admission.Warnings{"boats may sink"}, nil
}

// ValidateUpdate refuses another host.
func (boatHooks) ValidateUpdate(_ context.Context, old, boat *Boat) (admission.Warnings, error) {
	if old.Spec.Host != boat.Spec.Host {
		return nil, fmt.Errorf("the host cannot change from %s", old.Spec.Host)
	}
	return nil, nil
}

// ValidateDelete refuses to delete boats with an anchor.
func (boatHooks) ValidateDelete(_ context.Context, boat *Boat) (admission.Warnings, error) {
	if boat.Labels["anchor"] != "" {
		return nil, fmt.Errorf("the anchor is down")
	}
	return nil, nil
}

func boatDefinition() *apiextensionsv1.CustomResourceDefinition {
	version := func(name string, stored bool, fields map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: stored,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type:       "object",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object", Properties: fields}},
			}},
		}
	}
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "boats." + boatGroup},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: boatGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "boats", Singular: "boat", Kind: "Boat", ListKind: "BoatList",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				version("v1", false, map[string]apiextensionsv1.JSONSchemaProps{"hostPort": text}),
				version("v2", true, map[string]apiextensionsv1.JSONSchemaProps{"host": text, "port": {Type: "integer"}}),
			},
			Conversion: &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ClientConfig: &apiextensionsv1.WebhookClientConfig{
						Service: &apiextensionsv1.ServiceReference{Namespace: "default", Name: "hooks", Path: ptr("/convert")},
					},
					ConversionReviewVersions: []string{"v1"},
				},
			},
		},
	}
}

func ptr[T any](value T) *T { return &value }

// boatWebhooks returns the configurations that controller-gen would generate, for the stored version only.
func boatWebhooks() envtest.WebhookInstallOptions {
	rules := []admissionv1.RuleWithOperations{{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete},
		Rule:       admissionv1.Rule{APIGroups: []string{boatGroup}, APIVersions: []string{"v2"}, Resources: []string{"boats"}},
	}}
	target := func(path string) admissionv1.WebhookClientConfig {
		return admissionv1.WebhookClientConfig{
			Service: &admissionv1.ServiceReference{Namespace: "default", Name: "hooks", Path: &path},
		}
	}
	return envtest.WebhookInstallOptions{
		MutatingWebhooks: []*admissionv1.MutatingWebhookConfiguration{{
			ObjectMeta: metav1.ObjectMeta{Name: "boats"},
			Webhooks: []admissionv1.MutatingWebhook{{
				Name: "default." + boatGroup, Rules: rules,
				ClientConfig: target("/mutate-hooks-bareboat-example-v2-boat"),
				SideEffects:  ptr(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			}},
		}},
		ValidatingWebhooks: []*admissionv1.ValidatingWebhookConfiguration{{
			ObjectMeta: metav1.ObjectMeta{Name: "boats"},
			Webhooks: []admissionv1.ValidatingWebhook{{
				Name: "validate." + boatGroup, Rules: rules,
				ClientConfig: target("/validate-hooks-bareboat-example-v2-boat"),
				SideEffects:  ptr(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			}},
		}},
	}
}

// webhooks runs a program as kubebuilder scaffolds it: a kind in two versions with defaulting, validating and
// conversion webhooks, installed by envtest.
func webhooks(flags *flag.FlagSet) func(context.Context, *rest.Config) error {
	within := flags.Duration("within", time.Minute, "how long each step may take")
	return func(ctx context.Context, config *rest.Config) error {
		ctrl.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(os.Stderr))))
		types := runtime.NewScheme()
		if err := scheme.AddToScheme(types); err != nil {
			return err
		}
		v1, v2 := schema.GroupVersion{Group: boatGroup, Version: "v1"}, schema.GroupVersion{Group: boatGroup, Version: "v2"}
		types.AddKnownTypeWithName(v1.WithKind("Boat"), &OldBoat{})
		types.AddKnownTypeWithName(v2.WithKind("Boat"), &Boat{})
		metav1.AddToGroupVersion(types, v1)
		metav1.AddToGroupVersion(types, v2)

		hooks := boatWebhooks()
		if err := hooks.Install(config); err != nil {
			return err
		}
		defer func() { _ = hooks.Cleanup() }()
		if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
			Scheme: types, CRDs: []*apiextensionsv1.CustomResourceDefinition{boatDefinition()}, WebhookOptions: hooks,
		}); err != nil {
			return err
		}
		manager, err := ctrl.NewManager(config, ctrl.Options{
			Scheme: types, Metrics: server.Options{BindAddress: "0"},
			WebhookServer: webhook.NewServer(webhook.Options{
				Host: hooks.LocalServingHost, Port: hooks.LocalServingPort, CertDir: hooks.LocalServingCertDir,
			}),
		})
		if err != nil {
			return err
		}
		built := ctrl.NewWebhookManagedBy(manager, &Boat{}).WithDefaulter(boatHooks{}).WithValidator(boatHooks{})
		if err := built.Complete(); err != nil {
			return err
		}
		running, stop := context.WithCancel(ctx)
		defer stop()
		go func() { _ = manager.Start(running) }()
		ready := func(context.Context) (bool, error) {
			return manager.GetWebhookServer().StartedChecker()(nil) == nil, nil
		}
		if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, *within, true, ready); err != nil {
			return err
		}
		direct, err := client.New(config, client.Options{Scheme: types})
		if err != nil {
			return err
		}
		return sail(ctx, direct)
	}
}

// sail writes boats in both versions.
func sail(ctx context.Context, boats client.Client) error {
	check := func(step string, ok bool, detail any) {
		say(map[string]any{"step": step, "ok": ok, "detail": fmt.Sprint(detail)})
	}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	boat := &Boat{ObjectMeta: named("a"), Spec: BoatSpec{Host: "sea"}}
	err := boats.Create(ctx, boat)
	check("defaulted", err == nil && boat.Spec.Port == 8080, fmt.Sprint(boat.Spec, err))

	err = boats.Create(ctx, &Boat{ObjectMeta: named("b")})
	refused := `admission webhook "validate.` + boatGroup + `" denied the request: a boat needs a host`
	check("refused", apierrors.IsForbidden(err) && err.Error() == refused, err)

	old := &OldBoat{}
	err = boats.Get(ctx, client.ObjectKeyFromObject(boat), old)
	check("converted", err == nil && old.Spec.HostPort == "sea:8080", fmt.Sprint(old.Spec, err))

	// The hooks are for v2 only: a write in v1 is converted for them.
	made := &OldBoat{ObjectMeta: named("c"), Spec: OldBoatSpec{HostPort: "lake"}}
	err = boats.Create(ctx, made)
	check("equivalent", err == nil && made.Spec.HostPort == "lake:8080", fmt.Sprint(made.Spec, err))

	made.Spec.HostPort = "river:1"
	err = boats.Update(ctx, made)
	check("old object", apierrors.IsForbidden(err) && strings.Contains(err.Error(), "the host cannot change from lake"), err)

	patch := client.MergeFrom(boat.DeepCopyObject().(*Boat))
	boat.Labels = map[string]string{"anchor": "down"}
	err = boats.Patch(ctx, boat, patch)
	check("patched", err == nil, err)
	err = boats.Delete(ctx, boat)
	check("kept", apierrors.IsForbidden(err) && strings.Contains(err.Error(), "the anchor is down"), err)
	return nil
}

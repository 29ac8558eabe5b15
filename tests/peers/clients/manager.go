package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var greetingKind = schema.GroupVersionKind{Group: "manager.bareboat.example", Version: "v1", Kind: "Greeting"}

const finalizer = "manager.bareboat.example/farewell"

// reconciler keeps a configmap that says what each Greeting asks for.
type reconciler struct{ client.Client }

func newGreeting(namespace, name string) *unstructured.Unstructured {
	greeting := &unstructured.Unstructured{}
	greeting.SetGroupVersionKind(greetingKind)
	greeting.SetNamespace(namespace)
	greeting.SetName(name)
	return greeting
}

// Reconcile makes the configmap of one Greeting what it should be.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	greeting := newGreeting(request.Namespace, request.Name)
	if err := r.Get(ctx, request.NamespacedName, greeting); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if greeting.GetDeletionTimestamp() != nil {
		if controllerutil.RemoveFinalizer(greeting, finalizer) {
			return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, greeting))
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(greeting, finalizer) {
		if err := r.Update(ctx, greeting); err != nil {
			return ctrl.Result{}, err
		}
	}
	text, _, _ := unstructured.NestedString(greeting.Object, "spec", "text")
	written := &corev1.ConfigMap{}
	written.Namespace, written.Name = request.Namespace, request.Name
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, written, func() error {
		written.Data = map[string]string{"text": text}
		return controllerutil.SetControllerReference(greeting, written, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	before := greeting.DeepCopy()
	if err := unstructured.SetNestedField(greeting.Object, text, "status", "said"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Status().Patch(ctx, greeting, client.MergeFrom(before))
}

// manage runs a manager with leader election and then plays a user against it: every line names what
// was expected and whether it came.
func manage(flags *flag.FlagSet) func(context.Context, *rest.Config) error {
	namespace := flags.String("namespace", "default", "namespace of the objects and of the lease")
	collects := flags.Bool("gc", true, "expect that the server collects owned objects")
	collected := flags.Duration("gc-within", 20*time.Second, "how long collecting may take")
	patience := flags.Duration("within", 3*time.Minute, "give up after this time")

	return func(ctx context.Context, config *rest.Config) error {
		ctx, cancel := context.WithTimeout(ctx, *patience)
		defer cancel()
		ctrl.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(os.Stderr))))
		direct, err := client.New(config, client.Options{})
		if err != nil {
			return err
		}
		u := &user{client: direct, ctx: ctx, namespace: *namespace}
		if !u.defines() {
			return errFailed
		}
		manager, err := ctrl.NewManager(config, ctrl.Options{
			LeaderElection: true, LeaderElectionID: "peers-manager", LeaderElectionNamespace: *namespace,
			LeaderElectionReleaseOnCancel: true,
			Metrics:                       server.Options{BindAddress: "0"},
		})
		if err != nil {
			return err
		}
		err = ctrl.NewControllerManagedBy(manager).For(newGreeting("", "")).Owns(&corev1.ConfigMap{}).
			Complete(&reconciler{manager.GetClient()})
		if err != nil {
			return err
		}
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- manager.Start(running) }()
		u.plays(*collects, *collected)
		stop()
		u.expect("manager stopped", <-ended)
		u.removes()
		if u.failed {
			return errFailed
		}
		return nil
	}
}

// user is the other side of the manager.
type user struct {
	client    client.Client
	ctx       context.Context
	namespace string
	failed    bool
}

func (u *user) expect(what string, err error) bool {
	u.failed = u.failed || err != nil
	line := step{Step: what, OK: err == nil}
	if err != nil {
		line.Message = err.Error()
	}
	say(line)
	return err == nil
}

func crd() *unstructured.Unstructured {
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"group": greetingKind.Group, "scope": "Namespaced",
			"names": map[string]any{"plural": "greetings", "kind": "Greeting"},
			"versions": []any{map[string]any{
				"name": greetingKind.Version, "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"spec": open, "status": open},
				}},
			}},
		},
	}}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	definition.SetName("greetings." + greetingKind.Group)
	return definition
}

// defines makes the kind and waits until it is served.
func (u *user) defines() bool {
	definition := crd()
	if !u.expect("kind defined", client.IgnoreAlreadyExists(u.client.Create(u.ctx, definition))) {
		return false
	}
	return u.expect("kind established", until(u.ctx, func(ctx context.Context) (bool, error) {
		if err := u.client.Get(ctx, client.ObjectKeyFromObject(definition), definition); err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
		for _, condition := range conditions {
			facts, is := condition.(map[string]any)
			if is && facts["type"] == "Established" && facts["status"] == "True" {
				return true, nil
			}
		}
		return false, nil
	}))
}

func (u *user) removes() {
	u.expect("kind removed", client.IgnoreNotFound(u.client.Delete(u.ctx, crd())))
}

// plays walks through the life of one Greeting.
func (u *user) plays(collects bool, within time.Duration) {
	const name = "hello"
	greeting := newGreeting(u.namespace, name)
	greeting.Object["spec"] = map[string]any{"text": "ahoy"}
	// A kind that was established a moment ago may not be served by every handler yet.
	err := until(u.ctx, func(ctx context.Context) (bool, error) {
		err := u.client.Create(ctx, greeting)
		return err == nil, client.IgnoreNotFound(err)
	})
	if !u.expect("greeting created", err) {
		return
	}
	key := client.ObjectKeyFromObject(greeting)
	written := &corev1.ConfigMap{}
	u.expect("configmap written", u.sees(key, written, "ahoy"))
	if owners := written.OwnerReferences; len(owners) != 1 || owners[0].UID != greeting.GetUID() {
		u.expect("configmap owned", fmt.Errorf("owners are %v", owners))
	}
	u.expect("status said", until(u.ctx, func(ctx context.Context) (bool, error) {
		err := u.client.Get(ctx, key, greeting)
		said, _, _ := unstructured.NestedString(greeting.Object, "status", "said")
		return said == "ahoy", err
	}))
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"text":"farewell"}}`))
	u.expect("greeting changed", u.client.Patch(u.ctx, greeting, patch))
	u.expect("configmap changed", u.sees(key, written, "farewell"))
	first := written.UID
	u.expect("configmap deleted", u.client.Delete(u.ctx, written))
	u.expect("configmap written again", u.sees(key, written, "farewell"))
	if written.UID == first {
		u.expect("configmap is a new one", errors.New("it has the uid of the old one"))
	}
	u.expect("greeting deleted", u.client.Delete(u.ctx, greeting))
	u.expect("finalizer removed", u.vanishes(key, greeting, 20*time.Second))
	if collects {
		u.expect("configmap collected", u.vanishes(key, written, within))
	} else {
		u.expect("configmap deleted", client.IgnoreNotFound(u.client.Delete(u.ctx, written)))
	}
}

func (u *user) sees(key client.ObjectKey, written *corev1.ConfigMap, text string) error {
	return until(u.ctx, func(ctx context.Context) (bool, error) {
		*written = corev1.ConfigMap{}
		err := u.client.Get(ctx, key, written)
		return err == nil && written.Data["text"] == text, client.IgnoreNotFound(err)
	})
}

func (u *user) vanishes(key client.ObjectKey, object client.Object, within time.Duration) error {
	return untilWithin(u.ctx, within, func(ctx context.Context) (bool, error) {
		err := u.client.Get(ctx, key, object)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

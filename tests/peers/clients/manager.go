package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	finalizer = "manager.bareboat.example/farewell"
	// voiceField is the cache index of greetings by the Secret they need.
	voiceField = ".spec.voiceFrom"
)

// reconciler writes the text of each Greeting to a ConfigMap.
type reconciler struct {
	client.Client
	recorder events.EventRecorder
}

// Reconcile updates the ConfigMap and the status of one Greeting.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	greeting := &Greeting{}
	if err := r.Get(ctx, request.NamespacedName, greeting); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !greeting.DeletionTimestamp.IsZero() {
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
	said, err := r.say(ctx, greeting)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, greeting, said)
}

// say writes the ConfigMap of a greeting and returns its text.
func (r *reconciler) say(ctx context.Context, greeting *Greeting) (string, error) {
	said := greeting.Spec.Text
	if name := greeting.Spec.VoiceFrom; name != "" {
		voice := &corev1.Secret{}
		if err := r.Get(ctx, types.NamespacedName{Namespace: greeting.Namespace, Name: name}, voice); err != nil {
			return "", client.IgnoreNotFound(err)
		}
		said = string(voice.Data["voice"]) + ": " + said
	}
	written := &corev1.ConfigMap{}
	written.Namespace, written.Name = greeting.Namespace, greeting.Name
	result, err := controllerutil.CreateOrUpdate(ctx, r.Client, written, func() error {
		written.Data = map[string]string{"text": said}
		return controllerutil.SetControllerReference(greeting, written, r.Scheme())
	})
	if err == nil && result == controllerutil.OperationResultCreated {
		r.recorder.Eventf(greeting, written, corev1.EventTypeNormal, "Said", "Say", "%s is said", greeting.Name)
	}
	return said, err
}

// report updates the status, a separate write with the version that was read.
func (r *reconciler) report(ctx context.Context, greeting *Greeting, said string) error {
	state := metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Said", ObservedGeneration: greeting.Generation,
	}
	if said == "" {
		state.Status, state.Reason = metav1.ConditionFalse, "NoVoice"
	}
	greeting.Status.Said, greeting.Status.ObservedGeneration = said, greeting.Generation
	meta.SetStatusCondition(&greeting.Status.Conditions, state)
	return r.Status().Update(ctx, greeting)
}

// greetingsOf finds the greetings that need a Secret, in the index of the cache.
func (r *reconciler) greetingsOf(ctx context.Context, secret client.Object) []reconcile.Request {
	list := &GreetingList{}
	needed := client.MatchingFields{voiceField: secret.GetName()}
	if err := r.List(ctx, list, client.InNamespace(secret.GetNamespace()), needed); err != nil {
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// newManager returns a manager as scaffolded by kubebuilder: leader election on, webhooks and metrics off.
func newManager(ctx context.Context, config *rest.Config, types *runtime.Scheme, namespace string) (ctrl.Manager, error) {
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:         types,
		LeaderElection: true, LeaderElectionID: leaseName, LeaderElectionNamespace: namespace,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       server.Options{BindAddress: "0"},
	})
	if err != nil {
		return nil, err
	}
	index := func(object client.Object) []string {
		if name := object.(*Greeting).Spec.VoiceFrom; name != "" {
			return []string{name}
		}
		return nil
	}
	if err := manager.GetFieldIndexer().IndexField(ctx, &Greeting{}, voiceField, index); err != nil {
		return nil, err
	}
	r := &reconciler{manager.GetClient(), manager.GetEventRecorder("greeter")}
	return manager, ctrl.NewControllerManagedBy(manager).
		For(&Greeting{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.greetingsOf)).
		Complete(r)
}

// manage runs a manager in the environment of a kubebuilder test and then acts as its user: every line names an
// expectation and whether it was met.
func manage(flags *flag.FlagSet) func(context.Context, *rest.Config) error {
	namespace := flags.String("namespace", "default", "namespace of the objects and of the lease")
	collects := flags.Bool("gc", true, "expect that the server collects owned objects")
	collected := flags.Duration("gc-within", 20*time.Second, "how long collecting may take")
	patience := flags.Duration("within", 4*time.Minute, "give up after this time")

	return func(ctx context.Context, config *rest.Config) error {
		ctx, cancel := context.WithTimeout(ctx, *patience)
		defer cancel()
		ctrl.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(os.Stderr))))
		types := runtime.NewScheme()
		if err := errors.Join(scheme.AddToScheme(types), addGreetings(types)); err != nil {
			return err
		}
		direct, err := client.New(config, client.Options{Scheme: types})
		if err != nil {
			return err
		}
		u := &user{client: direct, ctx: ctx, namespace: *namespace}
		// As in suite_test.go, with an existing server.
		existing := true
		environment := &envtest.Environment{
			UseExistingCluster: &existing, Config: config,
			CRDs:              []*apiextensionsv1.CustomResourceDefinition{greetingDefinition()},
			CRDInstallOptions: envtest.CRDInstallOptions{CleanUpAfterUse: true},
		}
		if _, err := environment.Start(); !u.expect("environment started", err) {
			return errFailed
		}
		manager, err := newManager(ctx, config, types, *namespace)
		if err != nil {
			return err
		}
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- manager.Start(running) }()
		u.plays(manager, *collects, *collected)
		stop()
		u.expect("manager stopped", <-ended)
		u.expect("lease released", u.released())
		u.expect("environment stopped", environment.Stop())
		if u.failed {
			return errFailed
		}
		return nil
	}
}

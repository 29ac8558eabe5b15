package main

import (
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
	"sigs.k8s.io/multicluster-runtime/providers/kubeconfig"
)

const (
	fleetNamespace = "clusterpedia-system"
	// ConfigMaps with this label are reconciled.
	wantedLabel = "example.com/reconcile"
	// The controller writes which cluster it saw.
	seenLabel = "example.com/seen-in"
)

var profiles = schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "clusterprofiles"}

// controller labels ConfigMaps of all members. It finds the members by their ClusterProfiles: each becomes a Secret with a
// kubeconfig, as the provider of multicluster-runtime wants it, with the address that the profile has and the user of the hub.
func controller(flags *flag.FlagSet) func(context.Context, *rest.Config) error {
	length := flags.Duration("for", time.Minute, "how long the controller runs")
	count := flags.Int("clusters", 1, "how many members there must be")

	return func(ctx context.Context, config *rest.Config) error {
		ctx, stop := context.WithTimeout(ctx, *length)
		defer stop()
		if err := secrets(ctx, config, *count); err != nil {
			return err
		}
		provider := kubeconfig.New(kubeconfig.Options{Namespace: fleetNamespace})
		manager, err := mcmanager.New(config, provider, mcmanager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
		if err != nil {
			return err
		}
		if err := provider.SetupWithManager(ctx, manager); err != nil {
			return err
		}
		reconcile := func(ctx context.Context, request mcreconcile.Request) (ctrl.Result, error) {
			cluster, err := manager.GetCluster(ctx, request.ClusterName)
			// The provider engages a cluster a moment before it knows it.
			if errors.Is(err, multicluster.ErrClusterNotFound) {
				return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
			}
			if err != nil {
				return ctrl.Result{}, err
			}
			object := &corev1.ConfigMap{}
			if err := cluster.GetClient().Get(ctx, request.NamespacedName, object); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			if object.Labels[wantedLabel] == "" || object.Labels[seenLabel] == request.ClusterName {
				return ctrl.Result{}, nil
			}
			object.Labels[seenLabel] = request.ClusterName
			if err := cluster.GetClient().Update(ctx, object); err != nil {
				if apierrors.IsConflict(err) {
					return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
				}
				say(map[string]any{"type": "ERROR", "cluster": request.ClusterName, "message": err.Error()})
				return ctrl.Result{}, err
			}
			say(map[string]any{"type": "WRITTEN", "cluster": request.ClusterName, "name": request.Name, "resourceVersion": object.ResourceVersion})
			return ctrl.Result{}, nil
		}
		err = mcbuilder.ControllerManagedBy(manager).Named("fleet-configmaps").For(&corev1.ConfigMap{}).Complete(mcreconcile.Func(reconcile))
		if err != nil {
			return err
		}
		say(map[string]any{"type": "STARTED"})
		if err := manager.Start(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
}

// secrets makes a Secret with a kubeconfig for each ClusterProfile.
func secrets(ctx context.Context, config *rest.Config, count int) error {
	hub, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	writer, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	var found []unstructured.Unstructured
	for len(found) < count {
		list, err := hub.Resource(profiles).Namespace(fleetNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		found = list.Items
		time.Sleep(100 * time.Millisecond)
	}
	for _, profile := range found {
		access, _, _ := unstructured.NestedSlice(profile.Object, "status", "accessProviders")
		if len(access) == 0 {
			return fmt.Errorf("the profile %s has no access provider", profile.GetName())
		}
		provider, _ := access[0].(map[string]any)
		server, _, _ := unstructured.NestedString(provider, "cluster", "server")
		authority, _, _ := unstructured.NestedString(provider, "cluster", "certificate-authority-data")
		pem, err := base64.StdEncoding.DecodeString(authority)
		if err != nil {
			return err
		}
		made := clientcmdapi.NewConfig()
		made.Clusters["member"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: pem}
		made.AuthInfos["user"] = &clientcmdapi.AuthInfo{
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
		}
		made.Contexts["member"] = &clientcmdapi.Context{Cluster: "member", AuthInfo: "user"}
		made.CurrentContext = "member"
		text, err := clientcmd.Write(*made)
		if err != nil {
			return err
		}
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name: profile.GetName(), Namespace: fleetNamespace,
				Labels: map[string]string{kubeconfig.DefaultKubeconfigSecretLabel: "true"},
			},
			Data: map[string][]byte{kubeconfig.DefaultKubeconfigSecretKey: text},
		}
		// The Secret with the hub's own credentials may have the same name.
		secret.Name = "view-" + secret.Name
		if err := writer.Create(ctx, secret); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
	}
	return nil
}

package controller

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	apiv1 "fleet.example.org/yachts/api/v1"
	// +kubebuilder:scaffold:imports
)

var k8sClient client.Client

// TestMain runs all tests against one API server, with the controllers: Bareboat, which starts in milliseconds.
func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	ctrl.SetLogger(zap.New(zap.UseDevMode(true)))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	config, stop, err := serve()
	if err != nil {
		return 1, err
	}
	defer stop()
	_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		Paths:              []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfPathMissing: true,
	})
	if err != nil {
		return 1, err
	}
	if err := apiv1.AddToScheme(scheme.Scheme); err != nil {
		return 1, err
	}
	// +kubebuilder:scaffold:scheme
	if k8sClient, err = client.New(config, client.Options{Scheme: scheme.Scheme}); err != nil {
		return 1, err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme.Scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return 1, err
	}
	if err := (&YachtReconciler{Client: manager.GetClient(), Scheme: scheme.Scheme}).SetupWithManager(manager); err != nil {
		return 1, err
	}
	if err := (&CrewReconciler{Client: manager.GetClient(), Scheme: scheme.Scheme}).SetupWithManager(manager); err != nil {
		return 1, err
	}
	go func() { _ = manager.Start(ctx) }()
	return m.Run(), nil
}

// serve starts an API server in memory. BAREBOAT names the program if it is not in PATH.
func serve() (*rest.Config, func(), error) {
	program := os.Getenv("BAREBOAT")
	if program == "" {
		program = "bareboat"
	}
	dir, err := os.MkdirTemp("", "yachts-")
	if err != nil {
		return nil, nil, err
	}
	server := exec.Command(program, "serve", "--in-memory", "--bind", "127.0.0.1:0", "--data-dir", dir)
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		return nil, nil, fmt.Errorf("%w; set BAREBOAT to the program `bareboat`", err)
	}
	stop := func() {
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait()
		_ = os.RemoveAll(dir)
	}
	// The file appears when the server accepts connections.
	kubeconfig := filepath.Join(dir, "admin.kubeconfig")
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			continue
		}
		ready, err := rest.UnversionedRESTClientFor(withCodec(config))
		if err == nil && ready.Get().AbsPath("/readyz").Do(context.Background()).Error() == nil {
			return config, stop, nil
		}
	}
	stop()
	return nil, nil, fmt.Errorf("the server is not ready within a minute")
}

func withCodec(config *rest.Config) *rest.Config {
	copied := rest.CopyConfig(config)
	copied.NegotiatedSerializer = scheme.Codecs
	return copied
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

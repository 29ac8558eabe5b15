// The controller of cert-manager, with the controllers that it enables by default.
package main

import (
	"context"
	"fmt"

	defaults "github.com/cert-manager/cert-manager/internal/apis/config/controller/v1alpha1"
	"github.com/cert-manager/cert-manager/pkg/controller"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/acme"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/vault"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/venafi"
	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
)

const workers = 5

func controllers(ctx context.Context, log logr.Logger, arguments []string) error {
	flags := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "the kubeconfig of the controller")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:         *kubeconfig,
		KubernetesAPIQPS:   20,
		KubernetesAPIBurst: 50,
		IssuerOptions: controller.IssuerOptions{
			ClusterResourceNamespace:        "cert-manager",
			ClusterIssuerAmbientCredentials: true,
		},
		SchedulerOptions: controller.SchedulerOptions{MaxConcurrentChallenges: 60},
	})
	if err != nil {
		return err
	}
	shared, err := factory.Build()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	known := controller.Known()
	for _, name := range defaults.DefaultEnabledControllers {
		made, err := known[name](factory)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		log.Info("starting", "controller", name)
		group.Go(func() error { return made.Run(workers, ctx) })
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	shared.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	return group.Wait()
}

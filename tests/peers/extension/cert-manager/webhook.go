// The webhook of cert-manager: its admission plug-ins and its own certificate authority, on loopback.
package main

import (
	"context"
	"crypto/tls"

	config "github.com/cert-manager/cert-manager/internal/apis/config/webhook"
	"github.com/cert-manager/cert-manager/internal/apis/config/webhook/validation"
	cmwebhook "github.com/cert-manager/cert-manager/internal/webhook"
	"github.com/cert-manager/cert-manager/pkg/webhook/admission"
	"github.com/cert-manager/cert-manager/pkg/webhook/options"
	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
)

func configuration(arguments []string) (*config.WebhookConfiguration, error) {
	settings, err := options.NewWebhookConfiguration()
	if err != nil {
		return nil, err
	}
	flags := pflag.NewFlagSet("webhook", pflag.ContinueOnError)
	options.AddConfigFlags(flags, settings)
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	return settings, validation.ValidateWebhookConfiguration(settings, nil).ToAggregate()
}

func webhook(ctx context.Context, log logr.Logger, arguments []string) error {
	settings, err := configuration(arguments)
	if err != nil {
		return err
	}
	server, err := cmwebhook.NewCertManagerWebhookServer(log, *settings)
	if err != nil {
		return err
	}
	hooks := crwebhook.NewServer(crwebhook.Options{
		Host:    "127.0.0.1",
		Port:    server.ListenAddr,
		TLSOpts: []func(*tls.Config){func(tls *tls.Config) { tls.GetCertificate = server.CertificateSource.GetCertificate }},
	})
	hooks.Register("/mutate", admission.NewCustomMutationWebhook(server.MutationWebhook))
	hooks.Register("/validate", admission.NewCustomValidationWebhook(server.ResourceScheme, server.ValidationWebhook))
	// The plug-ins have their own client; the manager only runs the server and keeps its certificate.
	manager, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{
		Scheme:        server.ResourceScheme,
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: hooks,
	})
	if err != nil {
		return err
	}
	// Started with the manager from now on.
	manager.GetWebhookServer()
	if err := manager.Add(server.CertificateSource); err != nil {
		return err
	}
	return manager.Start(ctx)
}

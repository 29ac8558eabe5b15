// The test adapter of custom-metrics-apiserver: custom and external metrics, with the values that were written to it.
//
// It differs from the published program only in the address for writes: `--write-address` on loopback instead of :8080.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/component-base/logs"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/cmd"
	"sigs.k8s.io/custom-metrics-apiserver/test-adapter/provider"
)

func run() error {
	adapter := cmd.AdapterBase{Name: "test-adapter"}
	writes := adapter.Flags().String("write-address", "127.0.0.1:8080", "address for requests that write values")
	logs.AddFlags(adapter.Flags())
	if err := adapter.Flags().Parse(os.Args); err != nil {
		return err
	}
	client, err := adapter.DynamicClient()
	if err != nil {
		return err
	}
	mapper, err := adapter.RESTMapper()
	if err != nil {
		return err
	}
	values, service := provider.NewFakeProvider(client, mapper)
	adapter.WithCustomMetrics(values)
	adapter.WithExternalMetrics(values)
	failed := make(chan error, 2)
	go func() {
		failed <- http.ListenAndServe(*writes, restful.NewContainer().Add(service))
	}()
	go func() { failed <- adapter.Run(context.Background()) }()
	return <-failed
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

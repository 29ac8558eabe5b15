// The programs of cert-manager: controller, webhook and cainjector, as subcommands of one.
//
//	cert-manager controller --kubeconfig FILE
//	cert-manager cainjector --kubeconfig FILE
//	cert-manager webhook --kubeconfig FILE --secure-port PORT --dynamic-serving-…   (the flags of cert-manager's webhook)
//
// Everything they do is in the published packages of cert-manager. Unlike its own programs they listen on loopback only,
// and serve no metrics.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/cert-manager/cert-manager/internal/cmd/util"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	ctx, exit := util.SetupExitHandler(context.Background(), util.GracefulShutdown)
	defer exit()
	logf.InitLogs()
	defer logf.FlushLogs()
	ctrl.SetLogger(klog.Background())

	programs := map[string]func(context.Context, logr.Logger, []string) error{
		"controller": controllers,
		"webhook":    webhook,
		"cainjector": injector,
	}
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: cert-manager controller|webhook|cainjector [flags]")
		os.Exit(2)
	}
	name := os.Args[1]
	ctx = logf.NewContext(ctx, logf.Log, name)
	if err := programs[name](ctx, logf.FromContext(ctx), os.Args[2:]); err != nil {
		logf.Log.Error(err, "stopped", "program", name)
		util.SetExitCode(err)
	}
}

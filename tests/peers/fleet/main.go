// Command fleet-peers has what scripts/fleet.sh needs beside a hub: ghosts, which are members with computed objects, and
// clients of a fleet. Each subcommand prints JSON lines on stdout.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// A subcommand registers its flags and returns the function to run after parsing.
type subcommand struct {
	about string
	setup func(*flag.FlagSet) func(context.Context, *rest.Config) error
}

var subcommands = map[string]subcommand{
	"ghosts":     {"members with computed objects, on ports of this machine", ghosts},
	"reflect":    {"a reflector of client-go over the view of all members", reflect},
	"latency":    {"how long events of ghosts take until a watch of the view shows them", latency},
	"requests":   {"how long lists and gets of the views take", requests},
	"controller": {"a controller of multicluster-runtime over the members of a fleet", controller},
}

func main() {
	if len(os.Args) < 2 {
		usage()
	}
	chosen, known := subcommands[os.Args[1]]
	if !known {
		usage()
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", os.Getenv("KUBECONFIG"), "path of the kubeconfig of the hub")
	run := chosen.setup(flags)
	_ = flags.Parse(os.Args[2:])
	ctrl.SetLogger(klog.Background())
	var config *rest.Config
	if os.Args[1] != "ghosts" {
		read, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
		if err != nil {
			fail(err)
		}
		// The server is measured, not the client's own throttle.
		read.QPS, read.Burst = -1, -1
		config = read
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, config); err != nil {
		fail(err)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: fleet-peers SUBCOMMAND [--kubeconfig FILE] [flags]")
	for name, one := range subcommands {
		fmt.Fprintf(os.Stderr, "  %-12s %s\n", name, one.about)
	}
	os.Exit(2)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "fleet-peers:", err)
	os.Exit(1)
}

var saying sync.Mutex

// say prints a line of JSON.
func say(line any) {
	saying.Lock()
	defer saying.Unlock()
	_ = json.NewEncoder(os.Stdout).Encode(line)
}

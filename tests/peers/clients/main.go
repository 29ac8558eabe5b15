// Command peers is a set of real Kubernetes clients. Each runs one scenario against the server of a kubeconfig and
// prints the results as JSON lines on stdout.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sort"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// A subcommand registers its flags and returns the function to run after parsing.
type subcommand struct {
	about string
	setup func(*flag.FlagSet) func(context.Context, *rest.Config) error
}

var subcommands = map[string]subcommand{
	"informer":    {"shared informer of one resource: a line per event", informer},
	"leaderelect": {"leader election on a Lease, with recorded events", leaderElect},
	"typed":       {"create, read, change, list, watch and delete through typed protobuf clients", typed},
	"stress":      {"concurrent writers of one counter with optimistic concurrency", stress},
	"manager":     {"a controller-runtime manager reconciling a custom kind", manage},
	"webhooks":    {"defaulting, validating and conversion webhooks of a kubebuilder program", webhooks},
	"flux":        {"apply, drift and pruning as Flux does it", flux},
	"whoami":      {"the user of a kubeconfig, or of a pod without one", whoAmI},
	"metrics":     {"metrics of a controller-runtime manager, for authorized users only", metrics},
}

// errFailed is returned by a subcommand that has already printed the problem on stdout.
var errFailed = errors.New("failed")

func main() {
	if len(os.Args) < 2 {
		usage()
	}
	if os.Args[1] == "kubectl" {
		execKubectl(os.Args[2:])
	}
	chosen, known := subcommands[os.Args[1]]
	if !known {
		usage()
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", os.Getenv("KUBECONFIG"), "path of the kubeconfig")
	verbosity := flags.Int("v", 0, "log verbosity of the client libraries, on stderr")
	run := chosen.setup(flags)
	_ = flags.Parse(os.Args[2:])
	logging := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(logging)
	_ = logging.Set("v", fmt.Sprint(*verbosity))

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		fail(err)
	}
	// The server is under test, not the client's own throttle.
	config.QPS, config.Burst = -1, -1
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, config); err != nil {
		fail(err)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: peers SUBCOMMAND [--kubeconfig FILE] [flags]")
	names := make([]string, 0, len(subcommands))
	for name := range subcommands {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Fprintf(os.Stderr, "  %-12s %s\n", name, subcommands[name].about)
	}
	fmt.Fprintf(os.Stderr, "  %-12s %s\n", "kubectl", "the kubectl beside this program")
	os.Exit(2)
}

func fail(err error) {
	if !errors.Is(err, errFailed) {
		fmt.Fprintln(os.Stderr, "peers:", err)
	}
	os.Exit(1)
}

func execKubectl(args []string) {
	self, err := os.Executable()
	if err != nil {
		fail(err)
	}
	kubectl := filepath.Join(filepath.Dir(self), "kubectl")
	fail(syscall.Exec(kubectl, append([]string{"kubectl"}, args...), os.Environ()))
}

// asProtobuf returns a copy of config whose typed clients use protobuf.
func asProtobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf"
	return config
}

var stdout sync.Mutex

// say prints one JSON line.
func say(line any) {
	stdout.Lock()
	defer stdout.Unlock()
	_ = json.NewEncoder(os.Stdout).Encode(line)
}

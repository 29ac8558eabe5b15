// Command informer130 is a typed protobuf or dynamic informer built with the client library of Kubernetes 1.30: it
// lists, then watches, and prints one JSON line per event like `peers informer`.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	kubeconfig = flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "path of the kubeconfig")
	resource   = flag.String("resource", "v1/configmaps", "group/version/resource, or version/resource of the core group")
	namespace  = flag.String("namespace", metav1.NamespaceAll, "one namespace; all of them if empty")
	selector   = flag.String("selector", "", "label selector")
	fields     = flag.String("field-selector", "", "field selector")
	mode       = flag.String("mode", "typed", "typed (protobuf) or dynamic (JSON)")
	length     = flag.Duration("for", 10*time.Second, "how long to watch after the cache has synced; 0 for ever")
	patience   = flag.Duration("sync-within", 30*time.Second, "how long the first sync may take")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "informer130:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	shared, err := build()
	if err != nil {
		return err
	}
	err = shared.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
		say(map[string]any{"type": "ERROR", "message": err.Error()})
	})
	if err != nil {
		return err
	}
	handler, err := shared.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { tell("ADDED", object) },
		UpdateFunc: func(before, after any) {
			if version(before) == version(after) {
				tell("RELISTED", after)
			} else {
				tell("MODIFIED", after)
			}
		},
		DeleteFunc: func(object any) {
			if unseen, missed := object.(cache.DeletedFinalStateUnknown); missed {
				object = unseen.Obj
			}
			tell("DELETED", object)
		},
	})
	if err != nil {
		return err
	}
	go shared.Run(ctx.Done())
	syncing, cancel := context.WithTimeout(ctx, *patience)
	defer cancel()
	if !cache.WaitForCacheSync(syncing.Done(), handler.HasSynced) {
		return fmt.Errorf("the informer did not sync within %s", *patience)
	}
	summary := func(kind string) {
		say(map[string]any{"type": kind, "count": len(shared.GetStore().ListKeys()), "resourceVersion": shared.LastSyncResourceVersion()})
	}
	summary("SYNCED")
	if *length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *length)
		defer cancel()
	}
	<-ctx.Done()
	summary("DONE")
	return nil
}

func build() (cache.SharedIndexInformer, error) {
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(strings.TrimPrefix(*resource, "/"), "/")
	gvr := schema.GroupVersionResource{}
	switch len(parts) {
	case 2:
		gvr.Version, gvr.Resource = parts[0], parts[1]
	case 3:
		gvr.Group, gvr.Version, gvr.Resource = parts[0], parts[1], parts[2]
	default:
		return nil, fmt.Errorf("--resource %q: want group/version/resource", *resource)
	}
	tweak := func(options *metav1.ListOptions) {
		options.LabelSelector = *selector
		options.FieldSelector = *fields
	}
	switch *mode {
	case "typed":
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf"
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		generic, err := informers.NewSharedInformerFactoryWithOptions(client, 0,
			informers.WithNamespace(*namespace), informers.WithTweakListOptions(tweak)).ForResource(gvr)
		if err != nil {
			return nil, err
		}
		return generic.Informer(), nil
	case "dynamic":
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return dynamicinformer.NewFilteredDynamicInformer(client, gvr, *namespace, 0, cache.Indexers{}, tweak).Informer(), nil
	}
	return nil, fmt.Errorf("--mode %q: want typed or dynamic", *mode)
}

func tell(kind string, object any) {
	if facts, err := meta.Accessor(object); err == nil {
		say(map[string]any{
			"type": kind, "namespace": facts.GetNamespace(), "name": facts.GetName(),
			"resourceVersion": facts.GetResourceVersion(), "uid": facts.GetUID(),
		})
	}
}

func version(object any) string {
	facts, err := meta.Accessor(object)
	if err != nil {
		return ""
	}
	return facts.GetResourceVersion()
}

var stdout sync.Mutex

func say(line any) {
	stdout.Lock()
	defer stdout.Unlock()
	_ = json.NewEncoder(os.Stdout).Encode(line)
}

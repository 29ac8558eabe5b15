package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// event is one line of an informer: ADDED, MODIFIED, DELETED, or RELISTED for an object that a
// relist delivered unchanged.
type event struct {
	Type            string `json:"type"`
	Namespace       string `json:"namespace"`
	Name            string `json:"name"`
	ResourceVersion string `json:"resourceVersion"`
	UID             string `json:"uid"`
}

// notice is any other line of an informer: SYNCED with the number of objects, ERROR with a message, DONE with the
// number of objects at the end.
type notice struct {
	Type    string `json:"type"`
	Count   int    `json:"count"`
	Version string `json:"resourceVersion,omitempty"`
	Message string `json:"message,omitempty"`
}

func informer(flags *flag.FlagSet) func(context.Context, *rest.Config) error {
	resource := flags.String("resource", "v1/configmaps", "group/version/resource, or version/resource of the core group")
	namespace := flags.String("namespace", metav1.NamespaceAll, "one namespace; all of them if empty")
	selector := flags.String("selector", "", "label selector")
	fields := flags.String("field-selector", "", "field selector")
	mode := flags.String("mode", "typed", "typed (protobuf), dynamic (JSON) or metadata (protobuf)")
	length := flags.Duration("for", 10*time.Second, "how long to watch after the cache has synced; 0 for ever")
	patience := flags.Duration("sync-within", 30*time.Second, "how long the first sync may take")

	return func(ctx context.Context, config *rest.Config) error {
		gvr, err := parseResource(*resource)
		if err != nil {
			return err
		}
		tweak := func(options *metav1.ListOptions) {
			options.LabelSelector = *selector
			options.FieldSelector = *fields
		}
		shared, err := sharedInformer(config, *mode, gvr, *namespace, tweak)
		if err != nil {
			return err
		}
		return follow(ctx, shared, *length, *patience)
	}
}

func parseResource(text string) (schema.GroupVersionResource, error) {
	parts := strings.Split(strings.TrimPrefix(text, "/"), "/")
	switch len(parts) {
	case 2:
		return schema.GroupVersionResource{Version: parts[0], Resource: parts[1]}, nil
	case 3:
		return schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}, nil
	}
	return schema.GroupVersionResource{}, fmt.Errorf("--resource %q: want group/version/resource", text)
}

func sharedInformer(
	config *rest.Config, mode string, gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions),
) (cache.SharedIndexInformer, error) {
	switch mode {
	case "typed":
		client, err := kubernetes.NewForConfig(asProtobuf(config))
		if err != nil {
			return nil, err
		}
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
			informers.WithNamespace(namespace), informers.WithTweakListOptions(tweak))
		generic, err := factory.ForResource(gvr)
		if err != nil {
			return nil, err
		}
		return generic.Informer(), nil
	case "dynamic":
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return dynamicinformer.NewFilteredDynamicInformer(client, gvr, namespace, 0, cache.Indexers{}, tweak).Informer(), nil
	case "metadata":
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return metadatainformer.NewFilteredMetadataInformer(client, gvr, namespace, 0, cache.Indexers{}, tweak).Informer(), nil
	}
	return nil, fmt.Errorf("--mode %q: want typed, dynamic or metadata", mode)
}

// follow runs the informer and prints its events until the time is up.
func follow(ctx context.Context, shared cache.SharedIndexInformer, length, patience time.Duration) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	err := shared.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		say(notice{Type: "ERROR", Message: err.Error()})
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
	go shared.RunWithContext(ctx)
	syncing, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if !cache.WaitForCacheSync(syncing.Done(), handler.HasSynced) {
		return errors.New("the informer did not sync in time")
	}
	say(notice{Type: "SYNCED", Count: len(shared.GetStore().ListKeys()), Version: shared.LastSyncResourceVersion()})
	if length > 0 {
		select {
		case <-time.After(length):
		case <-ctx.Done():
		}
	} else {
		<-ctx.Done()
	}
	say(notice{Type: "DONE", Count: len(shared.GetStore().ListKeys()), Version: shared.LastSyncResourceVersion()})
	return nil
}

func tell(kind string, object any) {
	if facts, err := meta.Accessor(object); err == nil {
		say(event{kind, facts.GetNamespace(), facts.GetName(), facts.GetResourceVersion(), string(facts.GetUID())})
	}
}

func version(object any) string {
	facts, err := meta.Accessor(object)
	if err != nil {
		return ""
	}
	return facts.GetResourceVersion()
}

// Command hello uses Foos of examples/hello-extended with a clientset, an informer and listers that k8s.io/code-generator made.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	v1 "bareboat/tests/peers/hello/api/v1"
	v2 "bareboat/tests/peers/hello/api/v2"
	"bareboat/tests/peers/hello/generated/clientset/versioned"
	"bareboat/tests/peers/hello/generated/informers/externalversions"
)

func main() {
	if err := run(os.Getenv("KUBECONFIG")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := externalversions.NewSharedInformerFactory(clients, 0)
	informer := factory.Hello().V2().Foos()
	events := make(chan string, 100)
	note := func(what string) func(any) {
		return func(object any) {
			if foo, ok := object.(*v2.Foo); ok && foo.Name == "from-go" {
				events <- what
			}
		}
	}
	if _, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    note("added"),
		UpdateFunc: func(_, object any) { note("updated")(object) },
		DeleteFunc: note("deleted"),
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("the cache of %v did not sync", kind)
		}
	}

	// Written as v1, read as v2: the server converts.
	old := &v1.Foo{ObjectMeta: metav1.ObjectMeta{Name: "from-go"}, Spec: v1.FooSpec{Msg: "hello"}}
	if _, err := clients.HelloV1().Foos("default").Create(ctx, old, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := expect(ctx, events, "added"); err != nil {
		return err
	}
	foo, err := informer.Lister().Foos("default").Get("from-go")
	if err != nil {
		return err
	}
	if foo.Spec.Config.Msg != "hello" || foo.Spec.Image == "" {
		return fmt.Errorf("the lister has %+v", foo.Spec)
	}
	all, err := informer.Lister().List(labels.Everything())
	if err != nil || len(all) == 0 {
		return fmt.Errorf("the lister has %d Foos: %v", len(all), err)
	}

	foo = foo.DeepCopy()
	foo.Status = &v2.FooStatus{Phase: "Ready"}
	if _, err := clients.HelloV2().Foos("default").UpdateStatus(ctx, foo, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err := expect(ctx, events, "updated"); err != nil {
		return err
	}

	// The admission rule, and a stale resourceVersion.
	bad := &v1.Foo{ObjectMeta: metav1.ObjectMeta{Name: "bad"}, Spec: v1.FooSpec{Msg: "forbidden"}}
	if _, err := clients.HelloV1().Foos("default").Create(ctx, bad, metav1.CreateOptions{}); !errors.IsForbidden(err) {
		return fmt.Errorf("a forbidden word is answered with %v", err)
	}
	foo.Spec.Image = "other:1"
	if _, err := clients.HelloV2().Foos("default").Update(ctx, foo, metav1.UpdateOptions{}); !errors.IsConflict(err) {
		return fmt.Errorf("a stale write is answered with %v", err)
	}

	if err := clients.HelloV2().Foos("default").Delete(ctx, "from-go", metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := expect(ctx, events, "deleted"); err != nil {
		return err
	}
	fmt.Println("clientset, lister and informer work")
	return nil
}

func expect(ctx context.Context, events <-chan string, wanted string) error {
	select {
	case found := <-events:
		if found != wanted {
			return fmt.Errorf("the informer reports %s instead of %s", found, wanted)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the informer did not report %s", wanted)
	}
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	views          = "/apis/clusterpedia.io/v1beta1/resources"
	clusterName    = "shadow.clusterpedia.io/cluster-name"
	sentAnnotation = "example.com/sent"
)

// view makes a client of the view of one member, or of all.
func view(config *rest.Config, member string) (dynamic.Interface, error) {
	own := rest.CopyConfig(config)
	own.Host = strings.TrimSuffix(own.Host, "/") + views
	if member != "" {
		own.Host += "/clusters/" + member
	}
	return dynamic.NewForConfig(own)
}

// place is the key of an object of a fleet: namespace and name alone are not unique.
func place(object any) (string, error) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		return gone.Key, nil
	}
	one, ok := object.(*unstructured.Unstructured)
	if !ok {
		return "", fmt.Errorf("unexpected object %T", object)
	}
	return one.GetAnnotations()[clusterName] + "/" + one.GetNamespace() + "/" + one.GetName(), nil
}

func resourceOf(text string) (schema.GroupVersionResource, error) {
	parts := strings.Split(text, "/")
	switch len(parts) {
	case 2:
		return schema.GroupVersionResource{Version: parts[0], Resource: parts[1]}, nil
	case 3:
		return schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}, nil
	}
	return schema.GroupVersionResource{}, fmt.Errorf("--resource %q: want group/version/resource", text)
}

// reflect fills a store from a view with client-go's reflector, and follows it.
func reflect(flags *flag.FlagSet) func(context.Context, *rest.Config) error {
	resource := flags.String("resource", "v1/pods", "group/version/resource, or version/resource of the core group")
	// With WatchList, client-go itself keeps the first state by namespace and name, which are not unique in the view of all members.
	member := flags.String("member", "", "the member of a one-member view; all members if empty")
	expect := flags.Int("expect", 0, "how many objects there must be in the end; 0 for any")
	length := flags.Duration("for", 0, "how long to follow after the first sync")
	patience := flags.Duration("sync-within", 10*time.Minute, "how long the first sync may take")

	return func(ctx context.Context, config *rest.Config) error {
		gvr, err := resourceOf(*resource)
		if err != nil {
			return err
		}
		client, err := view(config, *member)
		if err != nil {
			return err
		}
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		var lists int
		source := &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				lists++
				return client.Resource(gvr).List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return client.Resource(gvr).Watch(ctx, options)
			},
		}
		store := cache.NewStore(place)
		reflector := cache.NewReflectorWithOptions(source, &unstructured.Unstructured{}, store, cache.ReflectorOptions{Name: "view"})
		begun := time.Now()
		go reflector.RunWithContext(ctx)
		for reflector.LastSyncResourceVersion() == "" {
			if time.Since(begun) > *patience {
				return errors.New("the reflector does not sync")
			}
			time.Sleep(5 * time.Millisecond)
		}
		say(map[string]any{"type": "SYNCED", "count": len(store.ListKeys()), "seconds": time.Since(begun).Seconds(), "lists": lists})
		select {
		case <-ctx.Done():
		case <-time.After(*length):
		}
		// What changed last may still be on its way.
		end := time.Now().Add(30 * time.Second)
		for *expect > 0 && len(store.ListKeys()) != *expect && time.Now().Before(end) {
			time.Sleep(50 * time.Millisecond)
		}
		count := len(store.ListKeys())
		say(map[string]any{"type": "DONE", "count": count, "lists": lists, "resourceVersion": reflector.LastSyncResourceVersion()})
		if *expect > 0 && count != *expect {
			return fmt.Errorf("the store has %d objects instead of %d", count, *expect)
		}
		return nil
	}
}

// quantiles prints times in milliseconds.
func quantiles(all []time.Duration) map[string]any {
	sort.Slice(all, func(a, b int) bool { return all[a] < all[b] })
	at := func(part float64) float64 {
		if len(all) == 0 {
			return -1
		}
		return float64(all[int(float64(len(all)-1)*part)].Microseconds()) / 1000
	}
	return map[string]any{"count": len(all), "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1)}
}

// latency lets ghosts change at a rate, and measures when a watch of the view shows it.
func latency(flags *flag.FlagSet) func(context.Context, *rest.Config) error {
	ghosts := flags.String("control", "", "the control of the ghosts")
	members := flags.Int("members", 100, "how many ghosts change, from the first on")
	rate := flags.Int("rate", 2000, "events per second of all of them")
	length := flags.Duration("for", 20*time.Second, "how long they change")

	return func(ctx context.Context, config *rest.Config) error {
		client, err := view(config, "")
		if err != nil {
			return err
		}
		pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
		first, err := client.Resource(pods).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return err
		}
		following, err := client.Resource(pods).Watch(ctx, metav1.ListOptions{ResourceVersion: first.GetResourceVersion()})
		if err != nil {
			return err
		}
		defer following.Stop()
		var lock sync.Mutex
		var all []time.Duration
		seen := func() int {
			lock.Lock()
			defer lock.Unlock()
			return len(all)
		}
		counted := map[string]bool{}
		for number := range *members {
			counted[fmt.Sprintf("ghost-%03d", number)] = true
		}
		begun := time.Now().UnixNano()
		go func() {
			for event := range following.ResultChan() {
				object, ok := event.Object.(*unstructured.Unstructured)
				if !ok || !counted[object.GetAnnotations()[clusterName]] {
					continue
				}
				sent, err := strconv.ParseInt(object.GetAnnotations()[sentAnnotation], 10, 64)
				if err != nil || sent < begun {
					continue
				}
				lock.Lock()
				all = append(all, time.Duration(time.Now().UnixNano()-sent))
				lock.Unlock()
			}
		}()
		const ticks = 100
		sent := 0
		ticker := time.NewTicker(time.Second / ticks)
		defer ticker.Stop()
		end := time.Now().Add(*length)
		for time.Now().Before(end) {
			<-ticker.C
			due := int(time.Since(end.Add(-*length)).Seconds() * float64(*rate))
			for sent < due {
				// Events of one member come one by one.
				target := fmt.Sprintf("%s/change?member=%d&first=%d&count=1", *ghosts, rand.IntN(*members), sent)
				answer, err := http.Post(target, "", nil)
				if err != nil {
					return err
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				sent++
			}
		}
		took := time.Since(end.Add(-*length))
		for wait := time.Now(); seen() < sent && time.Since(wait) < 30*time.Second; {
			time.Sleep(10 * time.Millisecond)
		}
		lock.Lock()
		defer lock.Unlock()
		line := quantiles(all)
		line["type"], line["sent"], line["perSecond"] = "LATENCY", sent, float64(sent)/took.Seconds()
		say(line)
		if len(all) < sent {
			return fmt.Errorf("the watch showed %d of %d events", len(all), sent)
		}
		return nil
	}
}

// requests measures paths of the views, each several times.
func requests(flags *flag.FlagSet) func(context.Context, *rest.Config) error {
	times := flags.Int("times", 50, "how often each path is asked for")
	members := flags.Int("members", 100, "how many ghosts there are")
	pods := flags.Int("pods", 1000, "how many Pods each has")

	return func(ctx context.Context, config *rest.Config) error {
		transport, err := rest.HTTPClientFor(config)
		if err != nil {
			return err
		}
		uncompressed := rest.CopyConfig(config)
		uncompressed.DisableCompression = true
		plain, err := rest.HTTPClientFor(uncompressed)
		if err != nil {
			return err
		}
		ask := func(transport *http.Client, path string) (time.Duration, int, error) {
			begun := time.Now()
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+views+path, nil)
			if err != nil {
				return 0, 0, err
			}
			answer, err := transport.Do(request)
			if err != nil {
				return 0, 0, err
			}
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			took := time.Since(begun)
			if err != nil {
				return 0, 0, err
			}
			if answer.StatusCode != http.StatusOK {
				return 0, 0, fmt.Errorf("%s: %s: %.300s", path, answer.Status, text)
			}
			var list struct {
				Items  []json.RawMessage `json:"items"`
				Groups []json.RawMessage `json:"groups"`
			}
			_ = json.Unmarshal(text, &list)
			return took, len(list.Items) + len(list.Groups), nil
		}
		// measure says what a question takes beside its target in milliseconds.
		measure := func(transport *http.Client, what string, target, times int, path func(int) string) error {
			var all []time.Duration
			found := 0
			for round := range times {
				took, count, err := ask(transport, path(round))
				if err != nil {
					return err
				}
				all, found = append(all, took), count
			}
			line := quantiles(all)
			line["type"], line["what"], line["found"], line["target"] = "REQUEST", what, found, target
			say(line)
			return nil
		}
		one := func(round int) int { return rand.IntN(*members) }
		scans := min(*times, 5)
		return errors.Join(
			measure(transport, "get by name", 1, *times*4, func(round int) string {
				number := rand.IntN(*pods)
				return fmt.Sprintf("/clusters/ghost-%03d/api/v1/namespaces/namespace-%02d/pods/object-%06d", one(round), number%50, number)
			}),
			measure(transport, "page of 500 Pods of all members, compressed with gzip as client-go asks", 5, *times, func(int) string { return "/api/v1/pods?limit=500" }),
			measure(plain, "page of 500 Pods of all members, not compressed", 5, *times, func(int) string { return "/api/v1/pods?limit=500" }),
			measure(transport, "Pods by a declared field", 5, *times, func(round int) string {
				return fmt.Sprintf("/api/v1/pods?fieldSelector=spec.nodeName%%3Dnode-%d-%d", one(round), rand.IntN(10))
			}),
			measure(transport, "Pods by a rare label, no index", 80, scans, func(round int) string {
				return fmt.Sprintf("/api/v1/pods?labelSelector=team%%3Dteam-%d", rand.IntN(1000))
			}),
			measure(transport, "Pods by another field, no index", 500, scans, func(int) string {
				return "/api/v1/pods?limit=500&fieldSelector=" + url.QueryEscape("spec.containers[].image=nothing")
			}),
			// Every object contains this text, so none is passed over at a glance.
			measure(transport, "Pods by another field, no index, with a text that every body contains", 500, scans, func(int) string {
				return "/api/v1/pods?limit=500&fieldSelector=" + url.QueryEscape("spec.containers[].args="+sideImage)
			}),
			measure(transport, "Pods by cluster and phase", 300, scans, func(int) string { return "/api/v1/pods?summary=cluster,status.phase" }),
		)
	}
}
